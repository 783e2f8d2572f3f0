"""Each scenario of the stand-in through real processes: line states and series are what its row says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.deployment import deployed
from specbudget.catalog import series
from specbudget.catalog.series import SeriesDef
from specbudget.demo.readings import Reading

pytestmark = pytest.mark.slow

Holds = Callable[[Reading], bool]


def state(line: str, *states: str) -> Holds:
    """The line is in one of these states."""
    return lambda r: r.state_of(series.LINE_STATE, line=line) in states


def speculation(now_in: str) -> Holds:
    """Rank 0 is in this state."""
    return lambda r: r.state_of(series.SPECULATION_STATE, rank="0") == now_in


def suspected(cause: str) -> Holds:
    """The cause is named."""
    return lambda r: r.value(series.ACCEPTANCE_SUSPECT, cause=cause) == 1.0


def above(gauge: SeriesDef, least: float, **labels: str) -> Holds:
    """The sample with exactly these labels is larger."""
    return lambda r: (value := r.value(gauge, **labels)) is not None and value > least


def below(gauge: SeriesDef, most: float, **labels: str) -> Holds:
    """The sample with exactly these labels is there and smaller."""
    return lambda r: (value := r.value(gauge, **labels)) is not None and value < most


def failing(check: str) -> Holds:
    """The co-design rule fails."""
    return lambda r: r.value(series.CODESIGN_CHECK, check=check, result="fail") == 1.0


MINUTE = {"scope": "request", "window": "1m"}
ROWS: dict[str, tuple[float, dict[str, Holds]]] = {
    "steady": (
        1.0,
        {
            "every line ok": lambda r: all(
                state(line, "ok")(r) for line in ("artifacts", "kv", "acceptance", "staging", "codesign")
            ),
            "active": speculation("active"),
            "one start counted": lambda r: r.value(series.STARTUPS, outcome="ok") == 1.0,
            "memory explained": above(series.DEVICE_MEMORY_BYTES, 0, rank="0", use="other"),
            "nothing suspected": lambda r: sum(r.all(series.ACCEPTANCE_SUSPECT).values()) == 0,
        },
    ),
    "collapse": (
        20.0,
        {
            "acceptance in breach": state("acceptance", "breach"),
            "length near 1": below(series.ROLLING_ACCEPTANCE_LENGTH, 1.6, **MINUTE),
        },
    ),
    "over-strong": (20.0, {"near the window": above(series.ROLLING_ACCEPTANCE_LENGTH, 7.5, **MINUTE)}),
    "kv-pressure": (
        20.0,
        {
            "pools above the mark": state("kv", "at_risk"),
            "retractions counted": above(series.KV_RETRACTIONS, 0, rank="0"),
            "pressure suspected": suspected("kv_pressure"),
        },
    ),
    "capacity-shrank": (
        20.0,
        {
            "two starts": lambda r: r.value(series.STARTUPS, outcome="ok") == 2.0,
            "fewer slots": below(series.KV_POOL_CAPACITY_TOKENS, 1_300_000, artifact="target", rank="0"),
            "still within the budget": state("kv", "ok"),
        },
    ),
    "cold-start-slow": (
        1.0,
        {
            "over budget": state("staging", "breach"),
            "counted once": lambda r: r.value(series.STARTUPS, outcome="over_budget") == 1.0,
            "the drafter's load": above(series.STARTUP_STAGE_DURATION, 4.0, artifact="drafter", stage="load"),
        },
    ),
    "stuck-start": (
        1.0,
        {
            "over budget while it goes on": state("staging", "breach"),
            "open stage": above(series.STARTUP_STAGE_DURATION, 5.0, artifact="drafter", stage="load"),
            "nothing counted": lambda r: sum(r.all(series.STARTUPS).values()) == 0,
            "no data": speculation("no_data"),
        },
    ),
    "pair-unfit": (
        1.0,
        {
            "pair in breach": state("codesign", "breach"),
            "taps named": failing("taps_range"),
            "bad from boot": suspected("from_boot"),
        },
    ),
    "mix-shift": (
        1.0,
        {
            "profiles apart": above(series.GENERATED_TOKENS, 0, rank="0", profile="hard"),
            "mix suspected": suspected("mix"),
            "both targets met": state("acceptance", "ok", "at_risk"),
        },
    ),
    "spec-adaptive": (
        1.0,
        {
            "events counted": above(series.SLO_EVENTS, 30, sli="request", verdict="good", profile="default"),
            "none invalid": lambda r: r.value(series.SLO_EXCLUDED, reason="invalid", profile="default") == 0.0,
        },
    ),
    "pd-prefill": (
        1.0,
        {
            "role": lambda r: any(("role", "prefill") in key for key in r.all(series.ENGINE_INFO)),
            "idle": speculation("idle"),
            "excluded": above(series.SLO_EXCLUDED, 20, reason="few_tokens", profile="default"),
            "no events": lambda r: sum(r.all(series.SLO_EVENTS).values()) == 0,
        },
    ),
}


@pytest.mark.parametrize("scenario", list(ROWS))
def test_what_a_scenario_shows(scenario: str, tmp_path: Path) -> None:
    """Every statement of the row holds at some moment within a minute, all of them at the end together."""
    speed, statements = ROWS[scenario]
    with deployed(scenario, tmp_path, speed=speed) as deployment:
        for what, holds in statements.items():
            deployment.wait_for(f"{scenario}: {what}", holds, seconds=60.0)


def test_what_takes_a_minute_to_show(tmp_path: Path) -> None:
    """A frozen engine, one that answers 500, and a drafter that is swapped under a running engine."""
    rows: dict[str, dict[str, Holds]] = {
        "frozen": {"frozen": speculation("frozen")},
        "sidecar-blind": {
            "metrics down": lambda r: r.value(series.SOURCE_UP, source="metrics") == 0.0,
            "counted": above(series.SOURCE_ERRORS, 0, source="metrics", reason="http_status"),
            "gauges gone": lambda r: not r.all(series.ENGINE_RUNNING),
            "records go on": above(series.RECORDS, 500, source="request_log", outcome="ok"),
        },
        "drafter-swapped": {"drafter suspected": suspected("drafter_changed")},
    }
    with ExitStack() as stack:
        running = {}
        for scenario in rows:
            folder = tmp_path / scenario
            folder.mkdir()
            running[scenario] = stack.enter_context(deployed(scenario, folder))
        for scenario, statements in rows.items():
            for what, holds in statements.items():
                running[scenario].wait_for(f"{scenario}: {what}", holds, seconds=120.0)
