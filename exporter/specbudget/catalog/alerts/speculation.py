"""Alerts on what is judged at all: speculation off or frozen, strange lengths, coverage, missing records, surplus."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.causes import named
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.catalog.looks import (
    COST_TOKENS,
    ENGINE_ALGORITHM,
    ENGINE_LENGTH,
    ENGINES,
    RUNNING,
    SPECULATION,
    SUSPECTS,
    Command,
    Query,
    grew,
    reads,
)
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, inside, number, one_of
from specbudget.catalog.recording import LENGTHS_OF_HOUR
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import RecordOutcome, Role, SliForm, Source, Suspect
from specbudget.domain.speculation import FROZEN_SECONDS, SpeculationState
from specbudget.words import percent, span

LEAST_COVERAGE = 0.5
"""Share of the requests that an SLO is about: with fewer it speaks for the minority."""

COVERAGE_REQUESTS = 200
UNCOVERED = ("few_tokens", "window_below_target", "invalid")
"""Why a request with speculation is no event; aborted ones say nothing, those without speculation have an alert."""

WORKING = (SpeculationState.ACTIVE, SpeculationState.CAPPED, SpeculationState.OFF)
"""States in which tokens flow."""

MOSTLY = 0.9
"""Share of the time for which an engine works that has something to write."""

FAR_ABOVE_TARGET = 2.0
SURPLUS_REQUESTS = 500


def _in_state(s: RuleSettings, state: SpeculationState) -> Condition:
    """How many replicas have a rank in a state."""
    in_state = s.of(series.SPECULATION_STATE, equals("state", state))
    return Condition(
        first=Clause(query=f"max {s.by_replica()} ({in_state})", op="==", bound="1"), outer=f"count {s.by()}"
    )


def _suspicious(s: RuleSettings) -> Condition:
    suspect = s.of(series.ACCEPTANCE_SUSPECT, one_of("cause", (Suspect.REPETITION, Suspect.SIMULATED)))
    return Condition(
        first=Clause(query=f"max {s.by_replica()} ({suspect})", op="==", bound="1"),
        outer=f"count {s.by()}",
        otherwise=(_in_state(s, SpeculationState.INVALID),),
    )


def _coverage(s: RuleSettings) -> Condition | None:
    if not s.pages or s.sli is not SliForm.REQUEST:
        return None
    # where nothing is speculated there is nothing to judge: a prefill engine, one with speculation turned off
    prefill = s.of(series.ENGINE_INFO, equals("role", Role.PREFILL))
    off = s.of(series.SPECULATION_STATE, equals("state", SpeculationState.OFF))
    on = ", ".join(s.replica)

    def requests(selector: str) -> str:
        counted = f"increase({selector}[6h])\nunless on ({on}) {prefill}\nunless on ({on}) ({off} == 1)"
        return f"sum {s.by()} {inside(counted)}"

    events = requests(s.of(series.SLO_EVENTS))
    every = f"{events}\n+\n{requests(s.of(series.SLO_EXCLUDED, one_of('reason', UNCOVERED)))}"
    return Condition(
        first=Clause(query=f"{events}\n/\n({every})", op="<", bound=number(LEAST_COVERAGE)),
        rest=(
            Joined(
                join=Join.AND, on=s.labels, part=Clause(query=f"({every})", op=">=", bound=number(COVERAGE_REQUESTS))
            ),
        ),
    )


def _no_records(s: RuleSettings) -> Condition:
    working = s.of(series.SPECULATION_STATE, one_of("state", WORKING))
    records = s.of(series.RECORDS, equals("source", Source.REQUEST_LOG), equals("outcome", RecordOutcome.OK))
    counting = s.of(series.ACCEPTANCE_SOURCE_INFO, equals("source", Source.REQUEST_LOG))
    return Condition(
        first=Clause(
            query=f"max {s.by_replica()} (sum {s.by_replica('rank')} (avg_over_time({working}[30m])))",
            op=">",
            bound=number(MOSTLY),
        ),
        rest=(
            Joined(
                join=Join.AND,
                on=s.replica,
                part=Clause(query=f"sum {s.by_replica()} (increase({records}[30m]))", op="==", bound="0"),
            ),
            Joined(join=Join.AND, on=s.replica, part=Clause(query=counting)),
        ),
        outer=f"count {s.by()}",
    )


def _surplus(s: RuleSettings) -> Condition | None:
    if not s.pages:
        return None
    count = s.of(series.REQUEST_ACCEPTANCE_LENGTH, suffix="_count")
    kept = (*s.labels, "profile")
    return Condition(
        first=Clause(
            query=f"histogram_quantile(0.1, sum_over_time({LENGTHS_OF_HOUR}{s.own}[3d]))",
            op=">",
            bound=f"{number(FAR_ABOVE_TARGET)} * max {s.by('profile')} ({s.of(series.ACCEPTANCE_TARGET)})",
        ),
        rest=(
            Joined(
                join=Join.AND,
                on=kept,
                part=Clause(
                    query=f"sum {s.by('profile')} (increase({count}[3d]))", op=">=", bound=number(SURPLUS_REQUESTS)
                ),
            ),
        ),
    )


def _retargeted(s: RuleSettings) -> Condition | None:
    if not s.pages:
        return None
    target = s.of(series.ACCEPTANCE_TARGET)
    now = f"max {s.by('profile')} ({target})"
    # to VictoriaMetrics a side without a sample differs from any: a new service would have got a new target
    before = f"max {s.by('profile')} ({target} offset 1h)\nor\n{now}"
    return Condition(first=Clause(query=now, op="!=", bound=inside(before)))


OFF = AlertDef(
    name="SpecbudgetSpeculationOff",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: _in_state(s, SpeculationState.OFF),
    for_seconds=600.0,
    summary="[service]: no speculation on [replicas]",
    description=(
        "The budget pays for a drafter and the engine does not use it: its weights and its KV take memory from "
        "the target for nothing."
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="Tokens come one a step. Either speculation was turned off and left so, or the engine never turned it on.",
    when=lambda s: "A rank of a replica is in the state `off`.",
    confirm=(SPECULATION, ENGINES, ENGINE_ALGORITHM),
    causes=(
        "it was turned off in an incident and not turned on again",
        "a flag of the engine that excludes speculation",
        "an engine version that renamed its arguments or its metrics",
    ),
    actions=("Turn it on again, or take the drafter out of the launch and out of the budget.",),
)

FROZEN = AlertDef(
    name="SpecbudgetSpeculationFrozen",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: _in_state(s, SpeculationState.FROZEN),
    for_seconds=120.0,
    summary="[service]: requests are held and no token is made on [replicas]",
    description="Requests run and no token counter has moved for a minute and longer; prefill counts, too.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The engine's scheduler stands still while it answers its endpoints. The length shown is of the past.",
    when=lambda s: (
        f"A rank is in the state `frozen`: requests run, and no token counter has moved for {span(FROZEN_SECONDS)}."
    ),
    confirm=(SPECULATION, RUNNING),
    causes=("a hang of a collective or of a kernel", "a deadlock of the scheduler", "a device that fell off the bus"),
    actions=("Take the replica out of traffic.", "Keep its stack (`py-spy dump`) and its log, then restart it."),
)

SUSPICIOUS = AlertDef(
    name="SpecbudgetAcceptanceSuspicious",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=_suspicious,
    for_seconds=900.0,
    summary="[service]: the acceptance length is too good to be true on [replicas]",
    description="It is at the verify window, the same to the digit, or outside what is possible. [cause]",
    dashboard=Dashboard.ACCEPTANCE,
    means=(
        "Text that repeats itself, a simulated length, or a number that cannot be: nothing that is read from it, "
        "the SLO included, is worth much."
    ),
    when=lambda s: (
        f"A sidecar names the cause {named(Suspect.REPETITION)} or {named(Suspect.SIMULATED)}, or a rank is in the "
        f"state "
        "`invalid`."
    ),
    confirm=(SPECULATION, SUSPECTS, ENGINE_LENGTH),
    causes=(
        "a model in a loop: look at the answers",
        "[simulated]",
        "a benchmark that sends one prompt again and again",
    ),
    actions=("Look at what is generated.", "Remove the simulation from the environment and restart."),
)

COVERAGE = AlertDef(
    name="SpecbudgetSloCoverageLow",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=_coverage,
    reads_hours=True,
    for_seconds=1800.0,
    summary="[service]: the acceptance SLO judges only [percent] of the requests",
    description="Over 6h most requests were too short or had a verify window below the target, so nobody judges them.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The SLO speaks for a minority: it can be green while most requests are slow.",
    when=lambda s: (
        f"Over 6 hours fewer than {percent(LEAST_COVERAGE)} of {COVERAGE_REQUESTS} or more requests are valid events."
    ),
    confirm=(grew("Why requests are no events.", series.SLO_EXCLUDED, "6h", by="reason"),),
    causes=("answers are shorter than min_output_tokens", "the engine caps or adapts its window below the target"),
    actions=("Lower min_output_tokens, or choose `sli: step`, which counts every verify step.",),
)

NO_RECORDS = AlertDef(
    name="SpecbudgetTokensWithoutRecords",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=_no_records,
    for_seconds=900.0,
    summary="[service]: tokens, and no record of them, on [replicas]",
    description="For 30m tokens flowed and no record was counted: the SLO sees none of this traffic.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The engine works and its request log is not written, or not where the sidecar looks.",
    when=lambda s: (
        f"Of 30 minutes a rank worked more than {percent(MOSTLY)}, and not one record of the request log was counted."
    ),
    confirm=(
        grew("Records that were counted.", series.RECORDS, "30m", by="source, outcome"),
        Command(shows="The newest records of the folder.", text="ls -lt [request log] | head -n 5"),
    ),
    causes=(
        "[no records]",
        "the folder is not the one that the sidecar mounts, or the disk is full",
        "a new engine version with another record format: see `malformed`",
    ),
    actions=("Compare [records] with engine.request_log of the budget.",),
)

SURPLUS = AlertDef(
    name="SpecbudgetAcceptanceOverProvisioned",
    severity=Severity.INFO,
    line=ACCEPTANCE.id,
    condition=_surplus,
    reads_hours=True,
    for_seconds=900.0,
    keeps=("profile",),
    summary="[service]: profile {{ $labels.profile }} reaches far more than its target",
    description=(
        f"Nine of ten requests of the last 3d reach [value], more than {number(FAR_ABOVE_TARGET)} times the target: "
        "memory is paid for latency that nobody asked for."
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="The target could be raised, or a smaller drafter would do.",
    when=lambda s: (
        f"Nine of ten requests of 3 days reach more than {number(FAR_ABOVE_TARGET)} times the target of their "
        f"profile, of "
        f"{SURPLUS_REQUESTS} requests or more."
    ),
    confirm=(
        Query(
            shows="What nine of ten requests reach, by profile.",
            text=lambda s: (
                f"histogram_quantile(0.1, sum by (profile, le) "
                f"(increase({s.of(series.REQUEST_ACCEPTANCE_LENGTH, suffix='_bucket')}[3d])))"
            ),
        ),
        COST_TOKENS,
    ),
    causes=("the target was set before the drafter was improved", "traffic that drafts easily"),
    actions=(
        "Raise target_length: `specbudget init --target [target] --drafter [drafter] --sidecar [sidecar]` proposes "
        "one.",
        "Try a smaller drafter or window.",
    ),
)

RETARGETED = AlertDef(
    name="SpecbudgetAcceptanceTargetChanged",
    severity=Severity.INFO,
    line=ACCEPTANCE.id,
    condition=_retargeted,
    keeps=("profile",),
    summary="[service]: the target of profile {{ $labels.profile }} is now [value]",
    description="Events of before were judged by the old target: burn rates mix both until their windows are over.",
    dashboard=Dashboard.ACCEPTANCE,
    means="Somebody changed the SLO. It is marked, not back-dated.",
    when=lambda s: "The target of a profile is not what it was an hour ago.",
    confirm=(reads("The targets in force.", series.ACCEPTANCE_TARGET, by="profile"),),
    causes=("a new budget file",),
    actions=("Generate the rules anew when objective, window or guards changed with it.",),
)

JUDGED = (OFF, FROZEN, SUSPICIOUS, COVERAGE, NO_RECORDS, SURPLUS, RETARGETED)
