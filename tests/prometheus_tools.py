"""The programs of the Prometheus family that `make tools` fetched: one of each age that is supported."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import pytest

FETCHED = Path(__file__).parents[1] / ".cache" / "prometheus"


class Suite(StrEnum):
    """Debian's suites by the age of what they hold."""

    OLDEST = "bookworm"
    """Prometheus 2.42, Alertmanager 0.25, VictoriaMetrics 1.79."""
    USUAL = "trixie"
    """Prometheus 2.53, Alertmanager 0.28, VictoriaMetrics 1.112; what a test uses unless it is about ages."""
    NEWEST = "sid"
    """Prometheus 3, Alertmanager 0.33, VictoriaMetrics 1.145; this one moves, and may be missing."""


def tool(name: str, suite: Suite = Suite.USUAL) -> Path:
    """A fetched program. Where it is missing the test is skipped; in a pipeline it fails, unless the suite moves."""
    path = FETCHED / suite / "usr" / "bin" / name
    if not path.exists():
        missing = f"{name} of {suite} is not there: make tools"
        may_miss = suite is Suite.NEWEST or not os.environ.get("CI")
        pytest.skip(missing) if may_miss else pytest.fail(missing)
    return path
