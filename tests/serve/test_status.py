"""The status JSON: the five lines, why something is not known, and what no series holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.scripted_engine import FIXTURES, READINGS, Answer, ScriptedEngine
from tests.serve.polled_desk import PolledDesk, write_budget
from tests.serve.running_sidecar import running

from specbudget.catalog.lines import LINES
from specbudget.serve.status import status, status_json, status_schema
from specbudget.serve.status_model import Status

STARTS = FIXTURES / "starts"
LINES_BUDGETED = {
    "artifacts": {"target": "1GiB"},
    "kv": {"min_target_tokens": 1000},
    "acceptance": {"target_length": 2.6},
    "staging": {"cold_start": "90s"},
}


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


def read(polled: PolledDesk) -> Status:
    """The status as a reader gets it, held against its own types."""
    return msgspec.json.decode(status_json(polled.desk, polled.now), type=Status)


async def test_every_line_is_there_with_what_is_missing(make: Callable[..., PolledDesk]) -> None:
    """Before anything is read each budgeted line is unknown and says why; nothing is zero."""
    told = read(make(budget=LINES_BUDGETED, target={"path": "nothing"}))
    assert [line.line for line in told.lines] == [line.id for line in LINES]
    for line in told.lines:
        if line.line in LINES_BUDGETED:
            assert line.budgeted
            assert any(budget.spent is None and budget.why for budget in line.budgets), line.line
    assert told.start is None
    assert {source.source: source.up for source in told.sources}["metrics"] is None


async def test_an_unbudgeted_line_says_so(make: Callable[..., PolledDesk]) -> None:
    """Without limits a line is not budgeted; it is shown as such."""
    told = read(make())
    assert {line.line for line in told.lines if line.budgeted} == set()


async def test_lengths_since_start_are_by_rank_and_are_no_window(make: Callable[..., PolledDesk]) -> None:
    """Two ranks of 3.0 and 1.4 since their start: both are shown, neither enters a rolling length."""
    polled = make(parallelism={"data": 2})
    folder = READINGS / "lifetime_length"
    info = next(path for path in sorted(folder.iterdir()) if "dp2" in path.name or "two" in path.name)
    ranks = "".join(
        f'sglang:num_running_reqs{{model_name="m",engine_type="unified",tp_rank="0",pp_rank="0",dp_rank="{rank}"}} 1\n'
        for rank in (0, 1)
    )
    polled.engine.answers["/server_info"] = Answer(info.read_bytes())
    polled.engine.answers["/metrics"] = Answer(ranks.encode())
    await polled.poll()
    told = read(polled)
    assert [(rank.rank, rank.length_since_start) for rank in told.acceptance.ranks] == [("0", 3.0), ("1", 1.4)]
    assert set(told.acceptance.rolling.values()) == {None}


@pytest.mark.parametrize(
    ("name", "ready", "rest", "reload"),
    [("phases_before_0.5.18", 221.0, None, 12.0), ("phases_by_label", 221.0, 46.0, 12.0)],
)
async def test_a_start_shows_its_rest_and_a_hot_reload_apart(
    make: Callable[..., PolledDesk], name: str, ready: float, rest: float | None, reload: float
) -> None:
    """The total, what no phase explains, and the swap of weights in the live process."""
    polled = make()
    await polled.read((STARTS / f"{name}.prom").read_bytes())
    start = read(polled).start
    assert start is not None
    assert (start.ready_seconds, start.unexplained_seconds) == (ready, rest)
    assert start.hot_reload_seconds in (reload, None)
    assert all(stage.seconds != 0.0 for stage in start.stages)


async def test_the_schema_describes_what_is_told(make: Callable[..., PolledDesk]) -> None:
    """Every key of the answer is declared, and the page in the repository is that schema."""
    told = json.loads(status_json(make(budget=LINES_BUDGETED).desk, 1.0))
    schema = status_schema()
    declared = schema["$defs"]["Status"]
    assert set(told) == set(declared["properties"]) == set(declared["required"])
    page = Path(__file__).parents[2] / "docs" / "reference" / "status.schema.json"
    assert json.loads(page.read_text()) == schema


async def test_asking_for_the_status_changes_nothing(make: Callable[..., PolledDesk]) -> None:
    """It reads memory: two answers of one moment are alike, and counters stay."""
    polled = make(budget=LINES_BUDGETED)
    before = polled.page().text
    assert status(polled.desk, polled.now) == status(polled.desk, polled.now)
    assert polled.page().text == before


async def test_the_running_sidecar_answers(tmp_path: Path) -> None:
    """The route is there, says JSON, and no key of the engine is in it."""
    answers = {"/server_info": Answer(b'{"version":"0.5.23","api_key":"made-up-key"}')}
    async with (
        ScriptedEngine(answers) as engine,
        running(write_budget(tmp_path, engine.url, budget=LINES_BUDGETED)) as sidecar,
    ):
        code, kind, text = await sidecar.get("/api/v1/status")
        landing = (await sidecar.get("/"))[2]
    assert "api/v1/status" in landing
    assert code == 200
    assert kind.startswith("application/json")
    assert msgspec.json.decode(text, type=Status).service == "chat"
    assert "made-up-key" not in text
