"""What /metrics shows of a start, told by the server log or by the engine's own metrics alone."""

from __future__ import annotations

import asyncio
import csv
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import FIXTURES, ScriptedEngine
from tests.serve.polled_desk import Page, PolledDesk

from specbudget.catalog.sets import Source
from specbudget.serve.ingest import ServerLogLoop

GIB = 1 << 30
STARTS = FIXTURES / "starts"
BUDGET = {"budget": {"staging": {"cold_start": "200s"}}}


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., PolledDesk]]:
    """Makes the desk of a budget beside an engine without any endpoint."""
    made: list[PolledDesk] = []
    async with ScriptedEngine() as engine:

        def build(**sections: Any) -> PolledDesk:
            made.append(PolledDesk(engine, tmp_path, **sections))
            return made[-1]

        yield build
        for polled in made:
            await polled.http.close()


def offset(page: Page, stage: str) -> float | None:
    """Seconds from the start of the process to a stage of both models."""
    return page.value("startup_stage_offset_seconds", artifact="both", stage=stage)


def duration(page: Page, stage: str) -> float | None:
    """Seconds of a stage of both models."""
    return page.value("startup_stage_duration_seconds", artifact="both", stage=stage)


async def test_a_total_is_shown_where_no_stage_was_measured(make: Callable[..., PolledDesk]) -> None:
    """221 s until ready, and a load of 0.0 that was never measured: the load is absent, not 0 s."""
    page = await make(**BUDGET).see((STARTS / "phases_before_0.5.18.prom").read_bytes())
    assert offset(page, "ready") == 221.0
    assert page.label("startup_stage_offset_seconds", "stage") == ["ready"]
    assert page.of("startup_stage_duration_seconds") == []
    # when it first generated nobody saw: that is not known, and no start is counted
    assert page.of("cold_start_seconds") == []
    assert page.state("line_state", line="staging") == "unknown"
    assert sum(page.of("startups_total")) == 0


async def test_measured_phases_leave_a_rest_and_a_hot_reload_is_none_of_them(make: Callable[..., PolledDesk]) -> None:
    """140 s of load and 35 s of graph capture until ready at 221 s: 46 s are neither; the swap of 12 s is no stage."""
    page = await make(**BUDGET).see((STARTS / "phases_by_label.prom").read_bytes())
    assert (duration(page, "load"), duration(page, "graph_capture"), offset(page, "ready")) == (140.0, 35.0, 221.0)
    assert 221.0 - sum(page.of("startup_stage_duration_seconds")) == 46.0
    assert page.of("cold_start_seconds") == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("phases_before_0.5.18", "ready=221"),
        ("phases_by_label", "ready=221 load=140 graph_capture=35 rest=46 latest_hot_reload=12"),
    ],
)
async def test_what_no_phase_explains_is_told_once(
    make: Callable[..., PolledDesk], caplog: pytest.LogCaptureFixture, name: str, told: str
) -> None:
    """The rest of the total and the latest hot reload stand in one line of the log; what was not measured does not."""
    polled = make(**BUDGET)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            await polled.read((STARTS / f"{name}.prom").read_bytes(), after=5)
    lines = [record.getMessage() for record in caplog.records if "measured by the engine" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].endswith(f"seconds: {told}")


async def test_a_hot_reload_alone_tells_of_no_start(make: Callable[..., PolledDesk]) -> None:
    """Weights swapped in 41.5 s: no cold start, no stage, nothing counted, although the budget is 30 s."""
    polled = make(budget={"staging": {"cold_start": "30s"}})
    page = await polled.see('sglang:weight_load_duration_seconds{tp_rank="0",source="disk"} 41.5\n')
    for name in ("cold_start_seconds", "startup_stage_duration_seconds", "startup_stage_offset_seconds"):
        assert page.of(name) == []
    assert sum(page.of("startups_total")) == 0
    assert page.state("line_state", line="staging") == "unknown"


async def test_an_engine_that_comes_up_shows_its_own_time_until_it_answers(make: Callable[..., PolledDesk]) -> None:
    """Refused, then up: what the engine says of its start is the start that was just seen."""
    polled = make(**BUDGET)
    polled.desk.starts.see_engine(answers=False, epoch=polled.now)
    page = await polled.see((STARTS / "phases_by_label.prom").read_bytes(), after=300)
    assert offset(page, "ready") == 221.0
    assert page.value("cold_start_seconds", kind="unknown") == 221.0
    assert page.value("budget_used_ratio", line="staging", budget="cold_start") == pytest.approx(221 / 200)
    assert page.value("engine_start_time_seconds", basis="observed") == polled.now - 221.0


async def read_log(polled: PolledDesk, folder: Path, text: str, *, quiet: float = 0.0) -> None:
    """Reads a server log that was last written to `quiet` seconds ago."""
    log = folder / "server.log"
    log.write_text(text)
    os.utime(log, (time.time() - quiet,) * 2)
    await ServerLogLoop(polled.desk, Source.SERVER_LOG, log, [], lambda: None).read()
    polled.desk.count_starts()


LOGGED = {"engine": {"server_log": "server.log"}, "budget": {"staging": {"cold_start": "240s"}}}


async def test_ready_and_the_first_generation_are_two_times(make: Callable[..., PolledDesk], tmp_path: Path) -> None:
    """Ready at 180 s, answering at 305 s: the start took 305 s and is over the budget of 240 s that 180 would meet."""
    with (STARTS / "generation_long_after_health.csv").open() as file:
        seen = {(row["probe"], row["status"]): float(row["t_s"]) for row in csv.DictReader(file)}
    up, healthy, answered = (seen[k, "200"] for k in ("/v1/models", "/health", "/generate"))
    polled = make(**(LOGGED | {"engine": {"server_log": "server.log", "request_log": "requests"}}))
    now = time.time()

    def line(seconds: float, text: str) -> str:
        return f"{time.strftime('[%Y-%m-%d %H:%M:%S]', time.localtime(now - answered + seconds))} {text}\n"

    await read_log(
        polled,
        tmp_path,
        line(0, "server_args={'skip_server_warmup': True}")
        + line(up, "INFO:     Application startup complete.")
        + line(healthy, "The server is fired up and ready to roll!"),
    )
    page = polled.page()
    assert (offset(page, "ready"), offset(page, "first_generation")) == (180.0, None)
    assert page.value("budget_spent_seconds", line="staging", budget="cold_start") == 180.0
    # asked when it was ready, answered after two minutes
    polled.desk.starts.see_record(now, answered - healthy, time.monotonic())
    polled.desk.count_starts()
    page = polled.page()
    assert offset(page, "ready") == 180.0
    assert offset(page, "first_generation") == pytest.approx(305.0, abs=1.0)
    assert page.value("cold_start_seconds", kind="unknown") == pytest.approx(305.0, abs=1.0)
    assert page.value("startups_total", outcome="over_budget") == 1
    assert page.value("startups_total", outcome="ok") == 0
    assert page.state("line_state", line="staging") == "breach"


async def test_an_open_stage_grows_while_nothing_is_printed(make: Callable[..., PolledDesk], tmp_path: Path) -> None:
    """360 s of load, then 1500 s of silence: stuck, and a start of 1865 s so far, shown before it ever ends."""
    polled = make(**LOGGED)
    await read_log(polled, tmp_path, (STARTS / "silent_after_load.log").read_text(), quiet=1500.0)
    page = polled.page()
    assert page.value("startup_stage_duration_seconds", artifact="target", stage="load") == 360.0
    assert duration(page, "post_load") == pytest.approx(1500.0, abs=5.0)
    assert page.value("cold_start_seconds", kind="unknown") == pytest.approx(1865.0, abs=5.0)
    assert page.value("startups_total", outcome="stuck") == 1
    assert page.state("line_state", line="staging") == "breach"
    before = duration(page, "post_load")
    await asyncio.sleep(0.05)
    after = duration(polled.page(), "post_load")
    assert before is not None
    assert after is not None
    assert after > before


async def test_ranks_that_write_in_between_each_other_have_one_time(
    make: Callable[..., PolledDesk], tmp_path: Path
) -> None:
    """Loads of 120 and 150 s are 150 s, of 6 and 4 s are 6 s; each device holds 32 and 2.5 GiB of weights."""
    polled = make(engine={"server_log": "server.log"}, drafter={"algorithm": "mtp"})
    await read_log(polled, tmp_path, (STARTS / "interleaved_ranks.log").read_text())
    page = await polled.see("sglang:num_running_reqs 0\n")
    load = {a: page.value("startup_stage_duration_seconds", artifact=a, stage="load") for a in ("target", "drafter")}
    assert load == {"target": 150.0, "drafter": 6.0}
    assert min(page.of("startup_stage_duration_seconds")) >= 0
    held = {use: page.value("device_memory_bytes", rank="0", use=use) for use in ("target_weights", "drafter_weights")}
    assert held == {"target_weights": 32 * GIB, "drafter_weights": 2.5 * GIB}
