"""The week in Prometheus's own rule engine: minutes of processor time, so that `make week` runs it and `make test` not.

`test_week.py` judges the same weeks in vmalert, in seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.prometheus_tools import Suite

from week.conftest import RULES, Drawn
from week.promtool_week import probes, run, written

SUITES = (Suite.USUAL, Suite.NEWEST)


@pytest.mark.parametrize("suite", SUITES)
def test_a_healthy_week_raises_nothing(healthy: Drawn, suite: Suite, tmp_path: Path) -> None:
    """No alert of any severity at any minute."""
    done = run(written(tmp_path, healthy.fleet.samples, RULES, list(probes(()))), suite)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("suite", SUITES)
def test_each_planted_incident_is_told_in_time(troubled: Drawn, suite: Suite, tmp_path: Path) -> None:
    """By the same moments as in vmalert, and nothing else fires."""
    done = run(written(tmp_path, troubled.fleet.samples, RULES, list(probes(troubled.spans))), suite)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
