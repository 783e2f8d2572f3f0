"""Each scenario of the stand-in through real processes, at real speed and at speed 20, against its row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore

import pytest

from e2e.scenario_rows import ROWS, SPEEDS
from e2e.scenario_watch import follow, is_long
from specbudget.simulate.scenarios import SCENARIOS

pytestmark = pytest.mark.slow

AT_ONCE = 13
"""Deployments that run beside each other: they wait most of the time, and each wants a twentieth of a processor."""

STARTING_AT_ONCE = 2
"""Deployments that start at once, which takes two seconds of a processor each."""

Run = tuple[str, float]

RUNS: list[Run] = [(name, speed) for name in ROWS for speed in SPEEDS]
LONG = [run for run in RUNS if is_long(*run)]
SHORT = [run for run in RUNS if run not in LONG]


def called(runs: list[Run]) -> str:
    """The name of a group, so that -k finds a scenario in it."""
    return " ".join(f"{name}@{speed:g}" for name, speed in runs)


def test_every_scenario_has_a_row() -> None:
    """A new scenario is one declaration and one row."""
    assert list(ROWS) == list(SCENARIOS)


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(LONG, id=called(LONG), marks=pytest.mark.longest),
        *(
            pytest.param(SHORT[at : at + AT_ONCE], id=called(SHORT[at : at + AT_ONCE]))
            for at in range(0, len(SHORT), AT_ONCE)
        ),
    ],
)
def test_a_scenario_shows_what_its_row_says(runs: list[Run], tmp_path: Path) -> None:
    """Every statement holds in the end, all of them together and for a while, and no page shows anything worse."""
    starting = Semaphore(STARTING_AT_ONCE)
    with ThreadPoolExecutor(len(runs)) as threads:
        followed = []
        for name, speed in runs:
            folder = tmp_path / f"{name}@{speed:g}"
            folder.mkdir()
            followed.append(threads.submit(follow, name, speed, folder, starting))
    problems = [error for run in followed if (error := run.exception()) is not None]
    assert not problems, "\n\n".join(
        str(error) if isinstance(error, AssertionError) else repr(error) for error in problems
    )
