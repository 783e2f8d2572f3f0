"""What /metrics shows of a start that only the engine's own metrics tell of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import FIXTURES, ScriptedEngine
from tests.serve.polled_desk import Page, PolledDesk

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
