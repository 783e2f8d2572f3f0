"""Alerts on what is judged at all: speculation off or frozen, strange lengths, coverage, missing records, surplus."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, inside, number, one_of
from specbudget.catalog.recording import LENGTHS_OF_HOUR
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import RecordOutcome, Role, SliForm, Source, Suspect
from specbudget.domain.speculation import SpeculationState

LEAST_COVERAGE = 0.5
"""Share of the requests that an SLO is about: with fewer it speaks for the minority."""

COVERAGE_REQUESTS = 200
UNCOVERED = ("few_tokens", "window_below_target", "invalid")
"""Why a request with speculation is no event; aborted ones say nothing, those without speculation have an alert."""

WORKING = (SpeculationState.ACTIVE, SpeculationState.CAPPED, SpeculationState.OFF)
"""States in which tokens flow."""

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
            bound="0.9",
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


_STATE = 'specbudget_speculation_state{specbudget_service="$SERVICE"} == 1'

OFF = AlertDef(
    name="SpecbudgetSpeculationOff",
    severity=Severity.TICKET,
    line="acceptance",
    condition=lambda s: _in_state(s, SpeculationState.OFF),
    for_seconds=600.0,
    summary="[service]: no speculation on [replicas]",
    description=(
        "The budget pays for a drafter and the engine does not use it: its weights and its KV take memory from "
        "the target for nothing."
    ),
    dashboard=Dashboard.ACCEPTANCE,
    means="Tokens come one a step. Either speculation was turned off and left so, or the engine never turned it on.",
    confirm=(_STATE, 'specbudget_engine_info{specbudget_service="$SERVICE"}', "curl -s http://ENGINE:30000/v1/loads"),
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
    line="acceptance",
    condition=lambda s: _in_state(s, SpeculationState.FROZEN),
    for_seconds=120.0,
    summary="[service]: requests are held and no token is made on [replicas]",
    description="Requests run and no token counter has moved for a minute and longer; prefill counts, too.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The engine's scheduler stands still while it answers its endpoints. The length shown is of the past.",
    confirm=(_STATE, 'sum by (pod, instance) (specbudget_engine_running_requests{specbudget_service="$SERVICE"})'),
    causes=("a hang of a collective or of a kernel", "a deadlock of the scheduler", "a device that fell off the bus"),
    actions=("Take the replica out of traffic.", "Keep its stack (`py-spy dump`) and its log, then restart it."),
)

SUSPICIOUS = AlertDef(
    name="SpecbudgetAcceptanceSuspicious",
    severity=Severity.TICKET,
    line="acceptance",
    condition=_suspicious,
    for_seconds=900.0,
    summary="[service]: the acceptance length is too good to be true on [replicas]",
    description="It is at the verify window, the same to the digit, or outside what is possible. Likely cause:[cause]",
    dashboard=Dashboard.ACCEPTANCE,
    means=(
        "Text that repeats itself, a simulated length, or a number that cannot be: nothing that is read from it, "
        "the SLO included, is worth much."
    ),
    confirm=(_STATE, 'max by (cause) (specbudget_acceptance_suspect{specbudget_service="$SERVICE"}) == 1'),
    causes=(
        "a model in a loop: look at the answers",
        "SGLANG_SIMULATE_ACC_LEN is set",
        "a benchmark that sends one prompt again and again",
    ),
    actions=("Look at what is generated.", "Remove the simulation from the environment and restart."),
)

COVERAGE = AlertDef(
    name="SpecbudgetSloCoverageLow",
    severity=Severity.TICKET,
    line="acceptance",
    condition=_coverage,
    reads_hours=True,
    for_seconds=1800.0,
    summary="[service]: the acceptance SLO judges only [percent] of the requests",
    description="Over 6h most requests were too short or had a verify window below the target, so nobody judges them.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The SLO speaks for a minority: it can be green while most requests are slow.",
    confirm=('sum by (reason) (increase(specbudget_slo_excluded_requests_total{specbudget_service="$SERVICE"}[6h]))',),
    causes=("answers are shorter than min_output_tokens", "the engine caps or adapts its window below the target"),
    actions=("Lower min_output_tokens, or choose `sli: step`, which counts every verify step.",),
)

NO_RECORDS = AlertDef(
    name="SpecbudgetTokensWithoutRecords",
    severity=Severity.TICKET,
    line="acceptance",
    condition=_no_records,
    for_seconds=900.0,
    summary="[service]: tokens, and no record of them, on [replicas]",
    description="For 30m tokens flowed and no record was counted: the SLO sees none of this traffic.",
    dashboard=Dashboard.ACCEPTANCE,
    means="The engine works and its request log is not written, or not where the sidecar looks.",
    confirm=(
        'sum by (source, outcome) (increase(specbudget_records_total{specbudget_service="$SERVICE"}[30m]))',
        "ls -l REQUEST_LOG_FOLDER",
    ),
    causes=(
        "the engine was started without --export-metrics-to-file",
        "the folder is not the one that the sidecar mounts, or the disk is full",
        "a new engine version with another record format: see `malformed`",
    ),
    actions=("Compare the engine's --export-metrics-to-file-dir with engine.request_log of the budget.",),
)

SURPLUS = AlertDef(
    name="SpecbudgetAcceptanceOverProvisioned",
    severity=Severity.INFO,
    line="acceptance",
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
    confirm=(
        "histogram_quantile(0.1, sum by (profile, le) (increase("
        'specbudget_request_acceptance_length_bucket{specbudget_service="$SERVICE"}[3d])))',
        'max(specbudget_kv_cost_tokens{specbudget_service="$SERVICE"})',
    ),
    causes=("the target was set before the drafter was improved", "traffic that drafts easily"),
    actions=("Raise target_length: `specbudget init --sidecar` proposes one.", "Try a smaller drafter or window."),
)

RETARGETED = AlertDef(
    name="SpecbudgetAcceptanceTargetChanged",
    severity=Severity.INFO,
    line="acceptance",
    condition=_retargeted,
    keeps=("profile",),
    summary="[service]: the target of profile {{ $labels.profile }} is now [value]",
    description="Events of before were judged by the old target: burn rates mix both until their windows are over.",
    dashboard=Dashboard.ACCEPTANCE,
    means="Somebody changed the SLO. It is marked, not back-dated.",
    confirm=('max by (profile) (specbudget_acceptance_target_length{specbudget_service="$SERVICE"})',),
    causes=("a new budget file",),
    actions=("Generate the rules anew when objective, window or guards changed with it.",),
)

JUDGED = (OFF, FROZEN, SUSPICIOUS, COVERAGE, NO_RECORDS, SURPLUS, RETARGETED)
