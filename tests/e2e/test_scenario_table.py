"""Each scenario of the stand-in through real processes against its row: what pages show, and what people are told.

At real speed all scenarios run beside each other under one Prometheus with the generated rules and one Alertmanager
with the generated configuration, at a quickened pace. At speed 20 their pages alone are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Semaphore

import pytest

from e2e.alert_runs import RUNS, AlertRun
from e2e.alert_watch import TimeToPage, settle
from e2e.alerting import Alerting, alerting
from e2e.pace import QUICK
from e2e.scenario_rows import REAL_TIME, ROWS
from e2e.scenario_watch import follow, is_long, run_without_row
from specbudget.simulate.scenarios import SCENARIOS

pytestmark = pytest.mark.slow

AT_ONCE = 13
"""Deployments that run beside each other: they wait most of the time, and each wants a twentieth of a processor."""

STARTING_AT_ONCE = 2
"""Deployments that start at once, which takes two seconds of a processor each."""

FAST = 20.0
LONG = [name for name in ROWS if is_long(name, FAST)]
"""What takes as long at any speed: it runs beside those at real speed."""
SHORT = [name for name in ROWS if name not in LONG]


def test_every_scenario_has_a_row() -> None:
    """A new scenario is one declaration and one row."""
    assert list(ROWS) == list(SCENARIOS)


@pytest.mark.longest
def test_every_scenario_shows_and_tells_what_its_row_says(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """In the end, for good and with nothing worse before; people hear of its alerts at a webhook and of no other.

    Each page says by how much, why, and what to do, and comes within the time that arithmetic promises.
    """
    starting = Semaphore(STARTING_AT_ONCE)
    chained = tmp_path / "chain"
    chained.mkdir()
    with alerting(RUNS, QUICK, chained) as chain, ThreadPoolExecutor(len(RUNS) + len(LONG)) as threads:
        beside = [threads.submit(_to_the_row, name, tmp_path / f"{name}@{FAST:g}", starting) for name in LONG]
        longest_first = sorted(RUNS, key=lambda run: not is_long(run.scenario, REAL_TIME))
        followed = [threads.submit(_to_the_alerts, run, chain, tmp_path / run.name, starting) for run in longest_first]
    _no_problems([*followed, *beside])
    for run in followed:
        for time_to_page in run.result():
            record_property("time to page", str(time_to_page))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SHORT[at : at + AT_ONCE], id=" ".join(SHORT[at : at + AT_ONCE]))
        for at in range(0, len(SHORT), AT_ONCE)
    ],
)
def test_a_scenario_shows_what_its_row_says_at_speed_20(names: list[str], tmp_path: Path) -> None:
    """Every statement holds in the end, all of them together and for a while, and no page shows anything worse."""
    starting = Semaphore(STARTING_AT_ONCE)
    with ThreadPoolExecutor(len(names)) as threads:
        followed = [threads.submit(_to_the_row, name, tmp_path / name, starting) for name in names]
    _no_problems(followed)


def _to_the_row(name: str, folder: Path, starting: Semaphore) -> None:
    folder.mkdir()
    follow(name, FAST, folder, starting)


def _to_the_alerts(run: AlertRun, chain: Alerting, folder: Path, starting: Semaphore) -> list[TimeToPage]:
    folder.mkdir()
    found: list[TimeToPage] = []
    port = chain.ports[run.name]
    if run.name == run.scenario:
        follow(
            run.scenario,
            REAL_TIME,
            folder,
            starting,
            port=port,
            afterwards=lambda d, at: found.extend(settle(run, d, chain, until=at)),
        )
        return found
    with ExitStack() as stack:
        deployment, changed = run_without_row(run.scenario, folder, starting, stack, port=port, budgeted=run.budgeted)
        return settle(run, deployment, chain, until=changed)


def _no_problems(followed: Iterable[Future[object]]) -> None:
    problems = [error for run in followed if (error := run.exception()) is not None]
    assert not problems, "\n\n".join(
        str(error) if isinstance(error, AssertionError) else repr(error) for error in problems
    )
