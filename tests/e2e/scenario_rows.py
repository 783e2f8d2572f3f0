"""What each scenario of the stand-in shows on /metrics: one row per scenario, the same at any speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from e2e.statements import Statement, absent, between, exactly, state, suspected, suspects_of
from specbudget.catalog import series
from specbudget.catalog.alerts import AlertDef, burn, length, memory, sidecar, speculation, staging
from specbudget.catalog.lines import LINES, STAGING
from specbudget.catalog.series import SeriesDef
from specbudget.demo.readings import Reading

REAL_TIME = 1.0
SPEEDS = (REAL_TIME, 20.0)

ON_THE_WAY = {"unknown", "ok"}
REACHED_BY = {"breach": {"at_risk", "breach"}, "at_risk": {"at_risk"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What holds in the end, all of it together and from then on; the defaults are a healthy engine's.

    `lines` are the states of the lines that are not ok, `suspects` the only causes that are named, `speculation` the
    state of every rank, `shows` what else holds, `still` what no longer moves. No page on the way there shows a
    breach, a risk or a cause that the row does not name. `within` is by how many seconds after the last phase all of
    this shows. `alerts` are those that people are told of, and no other. `fast` replaces fields at a speed at which the
    time before the change is too short to be known.
    """

    lines: Mapping[str, str] = field(default_factory=dict)
    suspects: tuple[str, ...] = ()
    speculation: str = "active"
    shows: tuple[Statement, ...] = ()
    still: tuple[SeriesDef, ...] = ()
    within: float = 150.0
    alerts: tuple[AlertDef, ...] = ()
    fast: Mapping[str, Any] = field(default_factory=dict)

    def at(self, speed: float) -> Row:
        """The row at a speed."""
        return self if speed == REAL_TIME else replace(self, **self.fast)

    @property
    def usual(self) -> tuple[Statement, ...]:
        """What every row says: five line states, the speculation state, the suspects."""
        lines = (state(series.LINE_STATE, self.lines.get(line.id, "ok"), line=line.id) for line in LINES)
        return (*lines, state(series.SPECULATION_STATE, self.speculation), suspected(*self.suspects))

    @property
    def is_healthy(self) -> bool:
        """Whether the page of the end looks like the page of a healthy engine."""
        return not self.lines and not self.suspects and self.speculation == HEALTHY.speculation

    def never(self, reading: Reading) -> list[Statement]:
        """Breaches, risks and causes of a page that the row does not name, each as the statement that it breaks."""
        broken = []
        # how long a start has taken so far is known to the second in which its lines are read, which is much of a
        # start of two seconds: it is judged once it is over
        over = reading.value(series.STARTUP_STAGE_OFFSET, artifact="both", stage="first_generation") is not None
        judged = [line for line in LINES if line is not STAGING or over]
        for line in judged:
            allowed = ON_THE_WAY | REACHED_BY.get(self.lines.get(line.id, "ok"), set())
            if reading.state_of(series.LINE_STATE, line=line.id) not in allowed:
                broken.append(state(series.LINE_STATE, f"{' or '.join(sorted(allowed))} at any time", line=line.id))
        if not suspects_of(reading) <= set(self.suspects):
            broken.append(suspected(*self.suspects))
        return broken


HEALTHY = Row()
"""What every scenario with a change shows before it, at real speed."""


def rolling(least: float, most: float) -> Statement:
    """The acceptance length of the last minute's requests."""
    return between(series.ROLLING_ACCEPTANCE_LENGTH, least, most, scope="request", window="1m")


def used(line: str, budget: str, *, least: float = 0.0, most: float = float("inf")) -> Statement:
    """The used ratio of a budget."""
    return between(series.BUDGET_USED_RATIO, least, most, line=line, budget=budget)


GOOD = between(series.SLO_EVENTS, 100, verdict="good")
NOTHING_BURNS = used("acceptance", "burn_fast", most=0.2)
BURNS_FAST = used("acceptance", "burn_fast", least=1.0)
BELOW_BREAK_EVEN = used("acceptance", "break_even", least=1.0)
WELL = (rolling(4.4, 4.8), GOOD, NOTHING_BURNS, exactly(series.KV_RETRACTIONS, 0))
ONE_START = (exactly(series.STARTUPS, 1), exactly(series.STARTUPS, 1, outcome="ok"))
TWO_STARTS = (exactly(series.STARTUPS, 2), exactly(series.STARTUPS, 2, outcome="ok"))
NO_RECHECK = exactly(series.RECHECK_DUE, 0)

ROWS: dict[str, Row] = {
    "steady": Row(shows=(*WELL, *ONE_START, NO_RECHECK, between(series.DEVICE_MEMORY_BYTES, 1, rank="0", use="other"))),
    "acceptance-drop": Row(
        alerts=(burn.FAST_BURN, length.BELOW_BREAK_EVEN),
        lines={"acceptance": "breach"},
        shows=(rolling(1.8, 2.0), between(series.SLO_EVENTS, 100, verdict="bad"), BURNS_FAST, BELOW_BREAK_EVEN),
    ),
    "collapse": Row(
        alerts=(length.COLLAPSED, burn.FAST_BURN, length.BELOW_BREAK_EVEN),
        lines={"acceptance": "breach"},
        shows=(rolling(1.0, 1.3), between(series.SLO_EVENTS, 100, verdict="bad"), BURNS_FAST, BELOW_BREAK_EVEN),
    ),
    "slow-decay": Row(
        alerts=(length.DECAYING,),
        suspects=("decay",),
        shows=(rolling(3.1, 3.4), GOOD, NOTHING_BURNS),
        # a fall within half a minute is a step: the slots in which a decay is looked for are minutes
        fast={"suspects": ()},
    ),
    "mix-shift": Row(
        suspects=("mix",),
        shows=(
            rolling(3.2, 3.6),
            NOTHING_BURNS,
            between(series.SLO_EVENTS, 20, verdict="good", profile="default"),
            between(series.SLO_EVENTS, 100, verdict="good", profile="hard"),
        ),
        # of the earlier mix there are fewer requests than a baseline needs
        fast={"suspects": ()},
    ),
    "over-strong": Row(
        alerts=(speculation.SURPLUS,),
        shows=(
            rolling(7.8, 8.4),
            GOOD,
            exactly(series.ACCEPTANCE_WINDOW, 9),
            used("acceptance", "target_length", most=0.5),
        ),
    ),
    "kv-pressure": Row(
        alerts=(memory.PRESSURE,),
        lines={"kv": "at_risk"},
        suspects=("kv_pressure",),
        shows=(
            between(series.KV_RETRACTIONS, 5, rank="0"),
            between(series.ENGINE_QUEUED, 20, rank="0"),
            used("kv", "high_water", least=1.0),
            NOTHING_BURNS,
        ),
    ),
    "capacity-shrank": Row(
        alerts=(memory.SHRANK,),
        shows=(
            *WELL,
            *TWO_STARTS,
            between(series.KV_POOL_CAPACITY_TOKENS, 1_100_000, 1_300_000, artifact="target"),
            between(series.KV_POOL_CAPACITY_TOKENS, 1_100_000, 1_300_000, artifact="drafter"),
        ),
    ),
    "cold-start-slow": Row(
        alerts=(staging.OVER_BUDGET,),
        lines={"staging": "breach"},
        shows=(
            *WELL,
            exactly(series.STARTUPS, 1),
            exactly(series.STARTUPS, 1, outcome="over_budget"),
            used("staging", "cold_start", least=1.0),
            between(series.STARTUP_STAGE_DURATION, 2.3, artifact="drafter", stage="load"),
        ),
    ),
    "stuck-start": Row(
        alerts=(staging.STUCK,),
        lines={"staging": "breach", "kv": "unknown", "acceptance": "unknown"},
        speculation="no_data",
        shows=(
            exactly(series.STARTUPS, 1),
            exactly(series.STARTUPS, 1, outcome="stuck"),
            between(series.STARTUP_STAGE_DURATION, 590, artifact="drafter", stage="load"),
            exactly(series.SLO_EVENTS, 0),
        ),
        within=720.0,
    ),
    "drafter-swapped": Row(
        alerts=(staging.RECHECK, memory.CHANGED),
        lines={"codesign": "at_risk"},
        suspects=("drafter_changed",),
        shows=(*WELL, exactly(series.RECHECK_DUE, 1), exactly(series.RECHECK_DUE, 1, plan="kv")),
    ),
    "pair-unfit": Row(
        alerts=(staging.UNFIT, length.BAD_FROM_BOOT),
        lines={"codesign": "breach", "acceptance": "breach"},
        suspects=("from_boot",),
        shows=(
            rolling(1.0, 1.1),
            exactly(series.CODESIGN_CHECK, 1, check="taps_range", result="fail"),
            exactly(series.SLO_EVENTS, 0, verdict="good"),
            BURNS_FAST,
            BELOW_BREAK_EVEN,
            absent(series.RECHECK_DUE),
        ),
    ),
    "speculation-off": Row(
        alerts=(speculation.OFF,),
        lines={"acceptance": "at_risk"},
        speculation="off",
        shows=(between(series.SLO_EXCLUDED, 100, reason="no_speculation"), NOTHING_BURNS),
        still=(series.VERIFY_STEPS, series.SLO_EVENTS),
    ),
    "idle": Row(
        speculation="idle",
        shows=(exactly(series.ENGINE_RUNNING, 0), NOTHING_BURNS),
        still=(series.VERIFY_STEPS, series.GENERATED_TOKENS, series.SLO_EVENTS),
        # no quantile of so few events is known
        fast={"lines": {"acceptance": "unknown"}},
    ),
    "frozen": Row(
        alerts=(speculation.FROZEN,),
        lines={"acceptance": "at_risk"},
        speculation="frozen",
        shows=(between(series.ENGINE_RUNNING, 1, rank="0"), NOTHING_BURNS),
        still=(series.VERIFY_STEPS, series.GENERATED_TOKENS, series.SLO_EVENTS),
    ),
    "restart": Row(shows=(*WELL, *TWO_STARTS, NO_RECHECK)),
    "dp2": Row(
        shows=(
            *WELL,
            *ONE_START,
            *(
                between(gauge, 1, rank=rank)
                for gauge in (series.ACCEPTANCE_WINDOW, series.KV_COST_TOKENS, series.VERIFY_STEPS)
                for rank in ("0", "1")
            ),
            *(
                between(series.KV_POOL_CAPACITY_TOKENS, 1, artifact=artifact, rank=rank)
                for artifact in ("target", "drafter")
                for rank in ("0", "1")
            ),
        )
    ),
    "spec-adaptive": Row(
        shows=(rolling(3.6, 4.2), GOOD, NOTHING_BURNS, *ONE_START, between(series.ACCEPTANCE_WINDOW, 2, 8))
    ),
    "pd-prefill": Row(
        # a prefill engine runs no verify steps: there is nothing to judge
        lines={"acceptance": "unknown"},
        speculation="idle",
        shows=(
            *ONE_START,
            exactly(series.ENGINE_INFO, 1, role="prefill"),
            between(series.SLO_EXCLUDED, 100, reason="few_tokens"),
            exactly(series.SLO_EVENTS, 0),
            exactly(series.VERIFY_STEPS, 0),
        ),
    ),
    "log-rotation": Row(shows=(*WELL, *ONE_START)),
    "sidecar-blind": Row(
        alerts=(sidecar.SOURCE_FAILING,),
        lines={"kv": "unknown", "acceptance": "unknown"},
        speculation="no_data",
        shows=(
            exactly(series.SOURCE_UP, 0, source="metrics"),
            exactly(series.SOURCE_UP, 0, source="loads"),
            exactly(series.SOURCE_UP, 0, source="server_info"),
            exactly(series.SOURCE_UP, 1, source="request_log"),
            between(series.SOURCE_ERRORS, 1, source="metrics", reason="http_status"),
            absent(series.ENGINE_RUNNING),
            rolling(4.4, 4.8),
        ),
    ),
}
