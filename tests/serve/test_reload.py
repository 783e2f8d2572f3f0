"""The budget file and the key while the sidecar runs: replaced, broken, mended."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import CAPTURED, READINGS, Answer, ScriptedEngine
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import Running, running

from specbudget.serve import publish
from specbudget.serve import sidecar as sidecar_module

NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's content is looked at, and a page made, ten times a second."""
    monkeypatch.setattr(sidecar_module, "RELOAD_SECONDS", 0.1)
    monkeypatch.setattr(publish, "PUBLISH_SECONDS", 0.1)


def budget(target: float, **more: Any) -> str:
    """A budget file with this target length."""
    engine = {"url": NOBODY} | more.pop("engine", {})
    return json.dumps(
        {"service": "chat", "engine": engine, "budget": {"acceptance": {"target_length": target}}, **more}
    )


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Log lines of budgets that were not taken into force."""
    return [record.getMessage() for record in caplog.records if "not loaded" in record.getMessage()]


async def in_force(sidecar: Running, target: float, *, ok: float = 1) -> None:
    """Waits until this target and this outcome show, and asserts it."""

    def shows(page: Any) -> bool:
        told = (
            page.value("acceptance_target_length", profile="default"),
            page.value("config_last_reload_successful"),
        )
        return bool(told == (target, ok))

    assert shows(await sidecar.page_when(shows))


async def test_a_mounted_folder_that_swaps_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A symlink swap changes the content and not the file: v2 comes into force, a broken v3 keeps it, v4 mends."""
    for name, text in (
        ("a", budget(2.5)),
        ("b", budget(2.8)),
        ("c", '{"service": "chat",\n"budget": [2.8\n'),
    ):
        (tmp_path / f"..2026_{name}").mkdir()
        (tmp_path / f"..2026_{name}" / "budget.yaml").write_text(text)

    def swap(name: str) -> None:
        (tmp_path / "..new").symlink_to(f"..2026_{name}")
        (tmp_path / "..new").rename(tmp_path / "..data")

    swap("a")
    (tmp_path / "budget.yaml").symlink_to("..data/budget.yaml")
    async with running(tmp_path / "budget.yaml") as sidecar:
        await in_force(sidecar, 2.5)
        swap("b")
        await in_force(sidecar, 2.8)
        swap("c")
        await in_force(sidecar, 2.8, ok=0)
        # looked at again and again, told once
        for _ in range(5):
            await in_force(sidecar, 2.8, ok=0)
        told = refusals(caplog)
        assert len(told) == 1
        assert f"{tmp_path / 'budget.yaml'}:" in told[0]
        assert "\n" not in told[0]
        swap("b")
        await in_force(sidecar, 2.8, ok=1)
        swap("a")
        await in_force(sidecar, 2.5)


async def test_a_file_that_goes_away_keeps_the_budget(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A missing file is a failed reload, told once; its return with the same content is a good one."""
    path = tmp_path / "budget.yaml"
    path.write_text(budget(2.5))
    async with running(path) as sidecar:
        await in_force(sidecar, 2.5)
        path.unlink()
        await in_force(sidecar, 2.5, ok=0)
        assert len(refusals(caplog)) == 1
        path.write_text(budget(2.5))
        await in_force(sidecar, 2.5, ok=1)


async def test_reload_by_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGHUP takes the file into force, good or bad."""
    monkeypatch.setattr(sidecar_module, "RELOAD_SECONDS", 3600.0)
    path = tmp_path / "budget.yaml"
    path.write_text(budget(2.5))
    async with running(path) as sidecar:
        for text, target, ok in ((budget(3.5), 3.5, 1), ("service: [", 3.5, 0), (budget(2.0), 2.0, 1)):
            path.write_text(text)
            os.kill(os.getpid(), signal.SIGHUP)
            await in_force(sidecar, target, ok=ok)


async def test_reload_by_post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POST /-/reload says what came of it: 200, or 400 with file, line and key; GET changes nothing."""
    monkeypatch.setattr(sidecar_module, "RELOAD_SECONDS", 3600.0)
    path = tmp_path / "budget.yaml"
    path.write_text(budget(2.5))
    async with running(path) as sidecar:
        path.write_text(budget(3.0))
        assert (await sidecar.get("/-/reload"))[0] == 405
        await in_force(sidecar, 2.5)
        assert (await sidecar.post("/-/reload"))[0] == 200
        await in_force(sidecar, 3.0)
        path.write_text("service: chat\nengin:\n  url: http://127.0.0.1:9\n")
        status, text = await sidecar.post("/-/reload")
        assert status == 400
        assert f"{path}:2: engin:" in text
        assert "did you mean" in text
        await in_force(sidecar, 3.0, ok=0)


async def test_a_reload_of_the_same_budget_stops_nothing(tmp_path: Path) -> None:
    """A comment changes the content and not the budget: the engine is not asked anew, and the time of loading moves."""
    async with ScriptedEngine({"/metrics": Answer(b"sglang:num_running_reqs 3\n")}) as engine:
        path = write_budget(tmp_path, engine.url, engine={"poll_interval": "300s"})
        async with running(path) as sidecar:
            page = await sidecar.page_when(lambda page: page.value("source_up", source="metrics") == 1)
            loaded = page.value("config_last_reload_success_timestamp_seconds")
            path.write_text(f"# a comment\n{path.read_text()}")
            page = await sidecar.page_when(
                lambda page: page.value("config_last_reload_success_timestamp_seconds") != loaded
            )
            assert page.value("config_last_reload_success_timestamp_seconds") != loaded
            assert page.value("engine_running_requests", rank="0") == 3
            assert engine.count("/metrics") == 1


async def test_an_engine_that_left_the_budget_leaves_the_page(tmp_path: Path) -> None:
    """After a reload to another engine no gauge of the old one is left, also where the new one does not answer."""
    body = (READINGS / "pinned_and_resident" / "metrics.prom").read_bytes()
    async with ScriptedEngine({"/metrics": Answer(body)}) as engine:
        path = write_budget(tmp_path, engine.url)
        async with running(path) as sidecar:
            await sidecar.page_when(lambda page: page.of("kv_pool_used_tokens") != [])
            write_budget(tmp_path, NOBODY)
            assert (await sidecar.post("/-/reload"))[0] == 200
            page = await sidecar.page_when(lambda page: page.of("kv_pool_used_tokens") == [])
            assert page.of("kv_pool_used_tokens") == []
            assert page.of("engine_info") == []
            page = await sidecar.page_when(lambda page: page.value("source_up", source="metrics") == 0)
            assert page.value("source_up", source="metrics") == 0
            asked = engine.count("/metrics")
            await sidecar.page_when(lambda page: sum(page.of("source_errors_total", source="metrics")) >= 1)
            assert engine.count("/metrics") == asked


async def test_counters_go_on_through_a_reload(tmp_path: Path) -> None:
    """Another target is another policy; what was counted stays, and the engine's growth is counted once."""
    steps = iter(range(1000, 10**6, 10))
    answers = {
        "/metrics": Answer(
            lambda: f"sglang:num_running_reqs 1\nsglang:spec_verify_calls_total {next(steps)}\n".encode()
        )
    }
    async with ScriptedEngine(answers) as engine:
        path = tmp_path / "budget.yaml"
        path.write_text(budget(2.5, engine={"url": engine.url, "poll_interval": "1s"}))
        async with running(path) as sidecar:
            labels = {"rank": "0", "profile": "default"}
            page = await sidecar.page_when(lambda page: (page.value("verify_steps_total", **labels) or 0) >= 10)
            path.write_text(budget(3.0, engine={"url": engine.url, "poll_interval": "1s"}))
            await in_force(sidecar, 3.0)
            page = await sidecar.page_when(
                lambda page: page.value("verify_steps_total", **labels) == 10 * (engine.count("/metrics") - 1)
            )
            assert page.value("verify_steps_total", **labels) == 10 * (engine.count("/metrics") - 1)


async def test_a_reload_while_catching_up_counts_everything_once(tmp_path: Path) -> None:
    """Reloads in the middle of a backlog: the loops that end and those that begin read no record twice."""
    log = tmp_path / "requests"
    log.mkdir()
    lines = next((CAPTURED / "0.5.23" / "requests_dspark_static").glob("*.log")).read_bytes()
    copies = (48 << 20) // len(lines)
    (log / "sglang-request-metrics-20261129_16.log").write_bytes(lines * copies)
    expected = copies * lines.count(b"\n")
    path = tmp_path / "budget.yaml"
    path.write_text(budget(2.5, engine={"request_log": str(log)}))
    async with running(path) as sidecar:
        records = sidecar.sidecar.desk.ledger.counters["records_total"]
        reloads, last = 0, 0.0
        for _ in range(5_000):
            if sum(records.values()) >= expected:
                break
            if reloads < 5 and sum(records.values()) > last:
                reloads += 1
                path.write_text(budget(2.5 + reloads / 10, engine={"request_log": str(log)}))
                assert sidecar.sidecar.reload() == []
                last = sum(records.values())
            await asyncio.sleep(0.001)
        assert reloads >= 3
        page = await sidecar.page_when(lambda page: page.value("source_backlog_bytes", source="request_log") == 0)
        assert sum(page.of("records_total", source="request_log")) == expected


async def test_a_rotated_key_needs_no_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next request carries the new key, its line end stripped; neither key is ever printed."""
    (tmp_path / "key").write_bytes(b"made-up-1\n")
    answers = {"/v1/loads": Answer(b'{"loads": [{"num_running_reqs": 3}]}', key="made-up-1")}
    with caplog.at_level(logging.DEBUG):
        async with ScriptedEngine(answers) as engine:
            path = write_budget(tmp_path, engine.url, engine={"api_key_file": "key", "poll_interval": "1s"})
            async with running(path) as sidecar:
                await sidecar.page_when(lambda page: page.value("source_up", source="loads") == 1)
                engine.answers["/v1/loads"].key = "made-up-2"
                page = await sidecar.page_when(lambda page: page.value("source_up", source="loads") == 0)
                assert page.value("source_errors_total", source="loads", reason="unauthorized") >= 1
                (tmp_path / "new").write_bytes(b"made-up-2\r\n")
                (tmp_path / "new").rename(tmp_path / "key")
                page = await sidecar.page_when(lambda page: page.value("source_up", source="loads") == 1)
                assert page.value("source_up", source="loads") == 1
                assert "made-up" not in page.text
                assert "Bearer made-up-2" in {seen.authorization for seen in engine.seen}
    assert "made-up-" not in caplog.text
