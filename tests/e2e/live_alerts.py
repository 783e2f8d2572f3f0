"""Every scenario beside each other for eighteen minutes, everything as it is written.

`make alerts-live` runs this; it is no part of `make test`. Nothing is quickened: windows, waits, `for`, and Prometheus
scrapes and evaluates four times a minute. It prints what people were told and when, and fails on any difference.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Semaphore

import pytest

from e2e.alert_runs import RUNS, AlertRun
from e2e.alert_watch import check, in_time
from e2e.alerting import Alerting, alerting
from e2e.pace import PRODUCTION
from e2e.scenario_watch import run_without_row

LASTS = 1080.0
"""Seconds for which each deployment runs: a start is stuck after ten minutes, seen within two, and told after five.
What waits for longer has to be on its way."""
STARTING_AT_ONCE = 2


def test_every_scenario_tells_people_what_its_row_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exactly its alerts at the webhook; what cannot be there yet is on its way, and nothing else is."""
    starting = Semaphore(STARTING_AT_ONCE)
    chained = tmp_path / "chain"
    chained.mkdir()
    problems = []
    with alerting(RUNS, PRODUCTION, chained) as chain, ThreadPoolExecutor(len(RUNS)) as threads:
        watched = [threads.submit(_watch, run, chain, tmp_path / run.name, starting) for run in RUNS]
        for told in watched:
            error = told.exception()
            line = str(error) if error is not None else told.result()
            problems += [line] if error is not None else []
            with capsys.disabled():
                print(f"{'DIFFERS ' if error is not None else ''}{line}", flush=True)
    assert not problems, "\n\n".join(problems)


def _watch(run: AlertRun, chain: Alerting, folder: Path, starting: Semaphore) -> str:
    """What people were told of a run; raises AssertionError where that is not what its row says."""
    folder.mkdir()
    with ExitStack() as stack:
        deployment, _ = run_without_row(
            run.scenario, folder, starting, stack, port=chain.ports[run.name], budgeted=run.budgeted
        )
        began = time.time()
        time.sleep(max(0.0, began + LASTS - time.time()))
        assert deployment.sidecar.poll() is None, f"{run.name}: the sidecar has ended"
        pages = check(run, deployment, chain, in_time(run, chain, LASTS))
        later = sorted(alert.name for alert in run.alerts if alert not in in_time(run, chain, LASTS))
    told = [f"{name} {at - began:.0f} s" for name, at in sorted(chain.told(run).items(), key=lambda each: each[1])]
    said = ", ".join([*told, *(f"{name} on its way" for name in later)]) or "nothing"
    return "\n    ".join([f"{run.name}: {said}", *map(str, pages)])
