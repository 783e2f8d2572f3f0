"""Alerts on the acceptance length itself: collapse, break-even, a replica beside its service, decay, a bad start."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.causes import named
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.catalog.looks import (
    BROKEN_RULES,
    ENGINE_LENGTH,
    ENGINES,
    FINGERPRINTS,
    LENGTH_BY_PROFILE,
    LENGTH_BY_REPLICA,
    RUNNING,
    STATUS,
    SUSPECTS,
    Query,
)
from specbudget.catalog.promql import Clause, Condition, Join, Joined, duration, equals, number
from specbudget.catalog.recording import (
    ACCEPTED,
    BREAK_EVEN_OF_SERVICE,
    EVENTS,
    RUNNING_OF_REPLICA,
    RUNNING_OF_SERVICE,
    STEPS,
    Level,
)
from specbudget.catalog.rule_settings import BREAK_EVEN_SECONDS, COLLAPSE_SECONDS, OUTLIER_SECONDS, RuleSettings
from specbudget.catalog.sets import Suspect
from specbudget.domain.suspects import CLEARLY_LOWER, CONTRIBUTES_NOTHING, MIN_STEPS
from specbudget.words import percent, span

BUSY_RUNNING = 1.0
"""Running requests per replica from which a fleet is busy: speculation costs people time, and not idle devices."""


def _paging_length(s: RuleSettings, seconds: float) -> str:
    return f"1 + {ACCEPTED.paging(seconds)}{s.own} / {STEPS.paging(seconds)}{s.own}"


def _guards(s: RuleSettings, seconds: float) -> tuple[Joined, ...]:
    """Enough verify steps in the window and, where there is an SLO, enough events."""
    steps = Clause(query=f"{STEPS.paging(seconds)}{s.own}", op=">=", bound=str(s.guard_steps))
    guards = (Joined(join=Join.AND, on=s.labels, part=steps),)
    if not s.pages:
        return guards
    events = Clause(query=f"{EVENTS.paging(seconds)}{s.own}", op=">=", bound=str(s.guard_events))
    return (*guards, Joined(join=Join.AND, on=s.labels, part=events))


def _collapsed(s: RuleSettings) -> Condition:
    return Condition(
        first=Clause(query=_paging_length(s, COLLAPSE_SECONDS), op="<=", bound=number(CONTRIBUTES_NOTHING)),
        rest=_guards(s, COLLAPSE_SECONDS),
    )


def _below_break_even(s: RuleSettings) -> Condition | None:
    if not s.has_break_even:
        return None
    busy = f"{RUNNING_OF_SERVICE}{s.own} / on ({', '.join(s.labels)}) count {s.by()} ({RUNNING_OF_REPLICA}{s.own})"
    return Condition(
        first=Clause(query=_paging_length(s, BREAK_EVEN_SECONDS), op="<", bound=f"{BREAK_EVEN_OF_SERVICE}{s.own}"),
        rest=(
            Joined(join=Join.AND, on=s.labels, part=Clause(query=busy, op=">=", bound=number(BUSY_RUNNING))),
            *_guards(s, BREAK_EVEN_SECONDS),
        ),
    )


def _outlier(s: RuleSettings) -> Condition:
    def length(level: Level) -> str:
        return f"1 + {ACCEPTED.at(level, OUTLIER_SECONDS)}{s.own} / {STEPS.at(level, OUTLIER_SECONDS)}{s.own}"

    return Condition(
        first=Clause(
            query=length(Level.REPLICA),
            op="<",
            matching=f"on ({', '.join(s.labels)}) group_left ()",
            bound=f"{number(CLEARLY_LOWER)} * ({length(Level.SERVICE)})",
        ),
        rest=(
            Joined(
                join=Join.AND,
                on=s.replica,
                part=Clause(
                    query=f"{STEPS.at(Level.REPLICA, OUTLIER_SECONDS)}{s.own}", op=">=", bound=str(s.guard_steps)
                ),
            ),
        ),
    )


def _suspected(s: RuleSettings, cause: Suspect) -> Condition:
    """How many replicas name a cause; the sidecar names one only on enough verify steps."""
    suspect = s.of(series.ACCEPTANCE_SUSPECT, equals("cause", cause))
    return Condition(
        first=Clause(query=f"max {s.by_replica()} ({suspect})", op="==", bound="1"), outer=f"count {s.by()}"
    )


def _guarded(s: RuleSettings) -> str:
    events = f" and {s.guard_events} events or more" if s.pages else ""
    return f"with {s.guard_steps} verify steps or more{events}"


COLLAPSED = AlertDef(
    name="SpecbudgetAcceptanceCollapsed",
    severity=Severity.PAGE,
    line=ACCEPTANCE.id,
    condition=_collapsed,
    for_seconds=120.0,
    summary="[service]: the drafter contributes nothing, acceptance length [value]",
    description=(
        f"Over {duration(COLLAPSE_SECONDS)} a verify step emitted [value] tokens; from "
        f"{number(CONTRIBUTES_NOTHING)} down nothing pays for the drafter. [cause] [worst] "
        "[off]"
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means=(
        "Nearly every draft is refused: each request pays for drafting and verifying and gets one token a step. "
        "The answers are right; they are slow and cost more than without a drafter."
    ),
    when=lambda s: (
        f"The length over {span(COLLAPSE_SECONDS)} is {number(CONTRIBUTES_NOTHING)} or less, {_guarded(s)} in that "
        f"time."
    ),
    confirm=(LENGTH_BY_REPLICA, SUSPECTS, ENGINE_LENGTH, STATUS),
    causes=(
        "the drafter on disk or in memory is not the one that was trained for this target",
        "the target was replaced or quantised under a running drafter",
        "a regression of the engine, after an upgrade or a change of its flags",
        "the drafter's KV is corrupt: prefix cache, page size or attention backend",
    ),
    actions=(
        "Restart one replica: when it comes back healthy, restart the others one by one.",
        "Compare the pair with budget.lock: `specbudget check --budget [budget]`. Go back to what was approved.",
    ),
    off="if one restarted replica is as bad as before, or if you do not know the cause within ten minutes",
)

BELOW_BREAK_EVEN = AlertDef(
    name="SpecbudgetAcceptanceBelowBreakEven",
    severity=Severity.PAGE,
    line=ACCEPTANCE.id,
    condition=_below_break_even,
    for_seconds=600.0,
    summary="[service]: two models are slower than one, acceptance length [value]",
    description=(
        f"Over {duration(BREAK_EVEN_SECONDS)} a verify step emitted [value] tokens, fewer than it takes to pay for "
        "the drafter at the present batch[break-even], and the fleet is busy. [cause] [worst] "
        "[off]"
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="Without the drafter every request would be faster at this load.",
    when=lambda s: (
        f"The length over {span(BREAK_EVEN_SECONDS)} is below break-even at the running requests of that time, there "
        f"are {number(BUSY_RUNNING)} or more of them on a replica, {_guarded(s)} in that time."
    ),
    confirm=(
        LENGTH_BY_REPLICA,
        Query(
            shows="Break-even at the present batch: what the length is held against.",
            text=lambda s: f"avg({s.of(series.BREAK_EVEN)})",
        ),
        RUNNING,
        SUSPECTS,
    ),
    causes=(
        "the batch grew: break-even rises with it while the length stays",
        "the length fell, see the likely causes",
        "break-even was measured on another engine version or another device",
    ),
    actions=(
        "If the batch grew, add replicas or lower the limit of running requests.",
        "If the length fell, follow the likely cause.",
    ),
    off="for as long as the load lasts, if neither the load nor the length can be changed within half an hour",
)

OUTLIER = AlertDef(
    name="SpecbudgetReplicaOutlier",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=_outlier,
    for_seconds=300.0,
    keeps=("pod", "instance"),
    summary="[service]: replica {{ $labels.pod }} {{ $labels.instance }} has an acceptance length of [value]",
    description=(
        f"Over {duration(OUTLIER_SECONDS)} this replica's length was below {number(CLEARLY_LOWER)} of its "
        "service's. [worst 15m]"
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="One replica is clearly worse than the others on the same traffic.",
    when=lambda s: (
        f"The length of a replica over {span(OUTLIER_SECONDS)} is below {percent(CLEARLY_LOWER)} of its service's, "
        f"with "
        f"{s.guard_steps} verify steps or more on that replica."
    ),
    confirm=(LENGTH_BY_REPLICA, FINGERPRINTS, ENGINES),
    causes=(
        "it loaded another drafter or another engine version",
        "its traffic differs: session affinity, a profile that only it serves",
        "its device or its KV is faulty",
    ),
    actions=(
        "Compare its fingerprints and its engine version with the others'.",
        "Take it out of traffic, restart it.",
    ),
)

DECAYING = AlertDef(
    name="SpecbudgetAcceptanceDecaying",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: _suspected(s, Suspect.DECAY),
    for_seconds=300.0,
    summary="[service]: the acceptance length falls steadily on [replicas]",
    description=(
        "Nothing has stepped: the length goes down over minutes or hours, and the target is not missed yet. "
        "[cause] [worst]"
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="The length falls on a line over at most six hours, by 8 % and more. A step or a new mix is none.",
    when=lambda s: (
        f"A sidecar names the cause {named(Suspect.DECAY)}: the length falls on a line, and nothing has stepped."
    ),
    confirm=(
        LENGTH_BY_REPLICA,
        LENGTH_BY_PROFILE,
        SUSPECTS,
    ),
    causes=(
        "the target is updated in place and the drafter is not (training, adapters)",
        "contexts grow over the day and the drafter reads only a window of them",
        "state of the engine that wears: fragmented prefix cache, leaked pages",
    ),
    actions=(
        "See whether a restarted replica starts high again: then the state wears, and a restart buys time.",
        "Otherwise compare the traffic of now with that of the morning, by profile.",
    ),
)

BAD_FROM_BOOT = AlertDef(
    name="SpecbudgetAcceptanceBadFromBoot",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: _suspected(s, Suspect.FROM_BOOT),
    for_seconds=300.0,
    summary="[service]: the acceptance target was never reached since the start on [replicas]",
    description="It was not lost, it was never there: look at the pair and the rollout. [worst] [cause]",
    dashboard=Dashboard.ACCEPTANCE,
    means=(
        "Since its start the engine has not once reached the target. Such a replica does not page and is left out of "
        "the burn alerts: it is a rollout to undo, and nothing that broke."
    ),
    when=lambda s: (
        f"A sidecar names the cause {named(Suspect.FROM_BOOT)}: since the engine started its length was never at the "
        f"target, "
        f"over {MIN_STEPS} verify steps or more."
    ),
    confirm=(LENGTH_BY_REPLICA, BROKEN_RULES, STATUS),
    causes=(
        "the drafter was made for another target, or with other taps",
        "quantisation that the drafter was not trained with",
        "another tokenizer, or a vocabulary that is mapped wrongly",
        "the target length was budgeted from other traffic",
    ),
    actions=(
        "Undo the rollout.",
        "Run `specbudget check --budget [budget]` on the pair and follow its findings.",
    ),
    off="if the rollout cannot be undone: the target alone is faster than a drafter that was never good",
)

LENGTHS = (COLLAPSED, BELOW_BREAK_EVEN, DECAYING, BAD_FROM_BOOT, OUTLIER)
