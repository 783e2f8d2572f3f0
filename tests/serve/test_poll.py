"""Polling: one request at a time, slower when the engine is slow, whoever reads us, and never a generating endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from tests.scripted_engine import CAPTURED, Answer, ScriptedEngine
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import running

from specbudget.catalog.series import SOURCE_ERRORS
from specbudget.catalog.sets import ErrorReason, Source
from specbudget.errors import SourceError
from specbudget.serve import poll
from specbudget.serve.engine_loops import METRICS_TIMEOUT, SERVER_INFO_TIMEOUT
from specbudget.serve.health import SourceHealth
from specbudget.serve.ledger import Ledger
from specbudget.serve.poll import poll_forever, read_once
from specbudget.sources.exposition import ExpositionError
from specbudget.sources.http import EngineHttp

READ = ("/metrics", "/v1/loads", "/server_info")


def captured_engine(*, seconds: float = 0.0) -> dict[str, Answer]:
    """What a captured engine answers; its generating endpoints hang."""
    files = {
        "/metrics": "metrics_v0.5.23_dspark_tp2.busy.prom",
        "/v1/loads": "v1_loads_v0.5.23_include_core_memory_spec.json",
        "/server_info": "server_info_v0.5.23_dspark.json",
    }
    answers = {p: Answer((CAPTURED / "0.5.23" / name).read_bytes(), seconds=seconds) for p, name in files.items()}
    return answers | {path: Answer(b"", seconds=25) for path in ("/health", "/health_generate", "/generate")}


async def test_no_generating_endpoint_is_ever_called(tmp_path: Path) -> None:
    """Some seconds of a whole sidecar: three endpoints by GET, never two requests of one at once, nothing else."""
    async with ScriptedEngine(captured_engine()) as engine:
        async with running(write_budget(tmp_path, engine.url, engine={"poll_interval": "1s"})) as sidecar:
            await sidecar.page_when(lambda page: page.value("source_up", source="server_info") == 1)
            await asyncio.sleep(2)
        assert {seen.path for seen in engine.seen} == set(READ)
        assert {seen.method for seen in engine.seen} == {"GET"}
        assert engine.count("/metrics") >= 2
        assert engine.count("/server_info") == 1
        assert set(engine.most_open.values()) == {1}


async def test_an_answer_after_more_than_a_second_is_no_failure(tmp_path: Path) -> None:
    """A busy engine is slow and not down: nothing is counted as failed, and no limit of ours is below 5 s."""
    assert min(METRICS_TIMEOUT, SERVER_INFO_TIMEOUT) >= 5
    async with ScriptedEngine(captured_engine(seconds=1.1)) as engine:
        async with running(write_budget(tmp_path, engine.url)) as sidecar:
            page = await sidecar.page_when(
                lambda page: all(page.value("source_up", source=s) == 1 for s in ("metrics", "loads", "server_info"))
            )
            assert page.of("source_up") == [1, 1, 1]
            assert sum(page.of("source_errors_total")) == 0
            assert page.value("source_poll_duration_seconds", source="metrics") > 1
        assert set(engine.most_open.values()) == {1}


async def test_readers_of_ours_cost_the_engine_nothing(tmp_path: Path) -> None:
    """Two scrapers at full speed for two poll intervals: the engine sees the polls of its interval and no more."""
    async with ScriptedEngine(captured_engine()) as engine:
        async with running(write_budget(tmp_path, engine.url, engine={"poll_interval": "1s"})) as sidecar:
            await sidecar.page_when(lambda page: page.value("source_up", source="metrics") == 1)
            before = {path: engine.count(path) for path in READ}
            end = asyncio.get_running_loop().time() + 2
            scrapes = 0
            while asyncio.get_running_loop().time() < end:
                await asyncio.gather(
                    sidecar.get("/metrics"), sidecar.get("/metrics", accept="application/openmetrics-text")
                )
                scrapes += 2
        assert scrapes > 4
        assert all(engine.count(path) - before[path] <= 3 for path in READ)


async def test_two_scrapers_read_the_same_counters(tmp_path: Path) -> None:
    """Ten records that are appended between two rounds are ten for both, and both pages agree in every counter."""
    log = tmp_path / "requests"
    log.mkdir()
    lines = next((CAPTURED / "0.5.23" / "requests_dspark_static").glob("*.log")).read_bytes().splitlines(keepends=True)
    file = log / "sglang-request-metrics-20261129_16.log"
    file.write_bytes(b"".join(lines[:5]))
    counters = ("_total", "_bucket", "_count", "_sum")
    async with ScriptedEngine(captured_engine()) as engine:
        budget = write_budget(tmp_path, engine.url, engine={"poll_interval": "300s", "request_log": str(log)})
        async with running(budget) as sidecar:
            for count in (5, 15):
                page = await sidecar.page_when(
                    lambda page, count=count: page.value("records_total", source="request_log", outcome="ok") == count
                )
                assert page.value("records_total", source="request_log", outcome="ok") == count
                first, second = await asyncio.gather(sidecar.page(), sidecar.page())
                told = [{(n, labels): v for n, labels, v in one if n.endswith(counters)} for one in (first, second)]
                assert told[0] == told[1]
                assert len(told[0]) > 50
                with file.open("ab") as appended:
                    appended.write(b"".join(lines[5:15]) if count == 5 else b"")


async def test_a_slow_engine_is_asked_less_often_and_never_twice_at_once() -> None:
    """An answer that takes 0.1 s is asked for every 0.4 s at most, although the interval is 0.02 s."""
    async with ScriptedEngine({"/metrics": Answer(b"", seconds=0.1)}) as engine:
        http = EngineHttp(engine.url)

        async def read() -> None:
            await http.get("/metrics", within=5, key_required=False)

        await run_for(2.0, SourceHealth(Source.METRICS, 0.02), read)
        await http.close()
        assert 2 <= engine.count("/metrics") <= 6
        assert engine.most_open["/metrics"] == 1


async def test_a_fast_engine_is_asked_at_its_interval() -> None:
    """Without delay the interval alone decides; it is kept from start to start."""
    asked = 0

    async def read() -> None:
        nonlocal asked
        asked += 1

    await run_for(1.0, SourceHealth(Source.METRICS, 0.1), read)
    assert 3 <= asked <= 11


async def test_an_engine_that_is_absent_is_asked_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """While connections are refused a long interval is not waited out; once it answers, it is."""
    monkeypatch.setattr(poll, "ABSENT_SECONDS", 0.05)
    asked = 0

    async def read() -> None:
        nonlocal asked
        asked += 1
        if asked < 4:
            raise SourceError(ErrorReason.REFUSED, "/server_info: cannot connect")

    await run_for(1.0, SourceHealth(Source.SERVER_INFO, 60.0), read)
    assert asked == 4


@pytest.mark.parametrize("reason", [ErrorReason.TIMEOUT, ErrorReason.UNAUTHORIZED, ErrorReason.HTTP_STATUS])
async def test_an_engine_that_fails_otherwise_is_not_pressed(
    monkeypatch: pytest.MonkeyPatch, reason: ErrorReason
) -> None:
    """An engine that is there and refuses, breaks or hangs is asked at its interval only."""
    monkeypatch.setattr(poll, "ABSENT_SECONDS", 0.05)
    asked = 0

    async def read() -> None:
        nonlocal asked
        asked += 1
        raise SourceError(reason, "/server_info: no")

    await run_for(0.5, SourceHealth(Source.SERVER_INFO, 60.0), read)
    assert asked == 1


async def run_for(seconds: float, health: SourceHealth, read: Callable[[], Awaitable[None]]) -> None:
    """Polls for so long."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(poll_forever(health, Ledger(), read, lambda: None), seconds)


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (SourceError(ErrorReason.TIMEOUT, "/metrics: no answer"), "timeout"),
        (ExpositionError(3, "sglang:x", "the labels cannot be read"), "malformed"),
        (msgspec.DecodeError("JSON is malformed"), "malformed"),
        (KeyError("made-up-prompt"), "internal"),
    ],
)
async def test_each_failure_is_counted_and_told_once(
    raised: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A poll never raises; a problem is logged when it comes and when it ends, not at every poll."""
    health, ledger, broken = SourceHealth(Source.METRICS, 5.0), Ledger(), True

    async def read() -> None:
        if broken:
            raise raised

    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await read_once(health, ledger, read, clock=lambda: 50.0)
        assert (health.up, health.last_success) == (False, None)
        broken = False
        for _ in range(3):
            await read_once(health, ledger, read, clock=lambda: 60.0)
    assert (health.up, health.last_success, health.problem) == (True, 60.0, "")
    assert ledger.counters[SOURCE_ERRORS.name] == {("metrics", reason): 3}
    told = [record.getMessage() for record in caplog.records]
    assert sum("source failed" in text for text in told) == 1
    assert sum("source is up" in text for text in told) == 1
    assert "made-up-prompt" not in caplog.text


@pytest.mark.parametrize(("interval", "limit"), [(5.0, 60.0), (60.0, 180.0)], ids=["a minute", "three polls"])
def test_staleness(interval: float, limit: float) -> None:
    """What was read last speaks for now until three polls and a minute have gone by; what was never read does not."""
    health = SourceHealth(Source.METRICS, interval)
    assert health.is_stale(0.0)
    health.succeeded(1000.0, 0.1)
    assert not health.is_stale(1000.0 + limit)
    assert health.is_stale(1000.1 + limit)
