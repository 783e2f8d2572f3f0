"""Alerts on starts, and on whether the pair fits."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.alerts.texts import broken_rules
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, none_of, number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import CheckResult, Stage, StartOutcome

FAILING_STARTS = 2
"""Failed starts within an hour: one is mended by the next."""


def _ended(s: RuleSettings, outcome: StartOutcome) -> str:
    return s.of(series.STARTUPS, equals("outcome", outcome))


def _over_budget(s: RuleSettings) -> Condition:
    """An increase, or a replica that was not there an hour ago and whose first sample counts its start already.

    Not there for an hour: a scrape that was missed an hour ago makes no replica new.
    """
    ended = _ended(s, StartOutcome.OVER_BUDGET)
    before = f"last_over_time({ended}[1h] offset 1h)"
    return Condition(
        first=Clause(query=f"sum {s.by()} (increase({ended}[1h]))", op=">", bound="0"),
        otherwise=(
            Condition(
                first=Clause(query=f"sum {s.by_replica()} ({ended})", op=">", bound="0"),
                rest=(Joined(join=Join.UNLESS, on=s.replica, part=Clause(query=before)),),
                outer=f"count {s.by()}",
            ),
        ),
    )


def _stuck(s: RuleSettings) -> Condition:
    """The latest start was called stuck and has not become ready."""
    ready = s.of(series.STARTUP_STAGE_OFFSET, equals("stage", Stage.READY))
    return Condition(
        first=Clause(query=f"sum {s.by_replica()} (increase({_ended(s, StartOutcome.STUCK)}[1d]))", op=">", bound="0"),
        rest=(Joined(join=Join.UNLESS, on=s.replica, part=Clause(query=ready)),),
        outer=f"count {s.by()}",
    )


def _failing(s: RuleSettings) -> Condition:
    failed = _ended(s, StartOutcome.FAILED)
    return Condition(
        first=Clause(query=f"sum {s.by()} (increase({failed}[1h]))", op=">=", bound=number(FAILING_STARTS))
    )


def _unplanned(s: RuleSettings) -> Condition | None:
    """Started otherwise than planned; what is not known of a start is held against nobody."""
    planned = {"mode": s.mode, "order": s.order}
    conditions = [
        Condition(
            first=Clause(
                query=f"count {s.by('mode', 'order')} ({s.of(series.STAGING_INFO, none_of(label, (plan, 'unknown')))})",
                op=">",
                bound="0",
            )
        )
        for label, plan in planned.items()
        if plan is not None
    ]
    if not conditions:
        return None
    first, *others = conditions
    return Condition(first=first.first, otherwise=tuple(others))


def _cold(s: RuleSettings) -> Condition | None:
    if not s.warmup_required:
        return None
    skipped = s.of(series.STAGING_INFO, equals("warmup", "skipped"))
    return Condition(first=Clause(query=f"count {s.by()} ({skipped})", op=">", bound="0"))


def _unfit(s: RuleSettings) -> Condition:
    failing = s.of(series.CODESIGN_CHECKS, equals("result", CheckResult.FAIL))
    return Condition(first=Clause(query=f"max {s.by()} ({failing})", op=">", bound="0"))


def _recheck(s: RuleSettings) -> Condition:
    return Condition(first=Clause(query=f"max {s.by('plan')} ({s.of(series.RECHECK_DUE)})", op="==", bound="1"))


_STAGES = 'specbudget_startup_stage_duration_seconds{specbudget_service="$SERVICE"}'
_OUTCOMES = 'sum by (outcome) (increase(specbudget_startups_total{specbudget_service="$SERVICE"}[1d]))'
_STAGED = 'specbudget_staging_info{specbudget_service="$SERVICE"}'

OVER_BUDGET = AlertDef(
    name="SpecbudgetColdStartOverBudget",
    severity=Severity.TICKET,
    line="staging",
    condition=_over_budget,
    summary="[service]: a start took longer than its budget",
    description="Within the last hour an engine came to its first generation later than cold_start allows.",
    dashboard=Dashboard.STARTUP,
    means="Scaling out and restarting are slower than planned.",
    confirm=(_STAGES, 'max by (kind) (specbudget_cold_start_seconds{specbudget_service="$SERVICE"})'),
    causes=(
        "storage or network is slower, or many replicas load at once",
        "the page cache was cold",
        "a larger drafter, more graphs to capture",
    ),
    actions=("Find the stage that grew, by artifact.", "Prefetch, add readers, or change the budget."),
)

STUCK = AlertDef(
    name="SpecbudgetStartStuck",
    severity=Severity.TICKET,
    line="staging",
    condition=_stuck,
    reads_hours=True,
    summary="[service]: stuck in a stage of the start: [replicas]",
    description="A start has not moved for longer than a start may take, and the engine is not ready.",
    dashboard=Dashboard.STARTUP,
    means="The replica serves nothing and nobody restarts it.",
    confirm=(_STAGES, "tail SERVER_LOG"),
    causes=("storage that hangs", "a rank that waits for another", "a kernel that compiles without end"),
    actions=("Look at the last line of the engine's log.", "Restart the replica elsewhere."),
)

FAILING = AlertDef(
    name="SpecbudgetStartsFailing",
    severity=Severity.TICKET,
    line="staging",
    condition=_failing,
    summary="[service]: [count] starts failed within an hour",
    description="Engines end before their first generation, again and again.",
    dashboard=Dashboard.STARTUP,
    means="A crash loop: the replica never serves.",
    confirm=(_OUTCOMES, "tail SERVER_LOG"),
    causes=("memory that does not suffice for both models", "arguments that the engine refuses", "a broken checkpoint"),
    actions=(
        "Read the error in the engine's log.",
        "Run `specbudget check` with the same arguments.",
        "Undo the rollout.",
    ),
)

UNPLANNED = AlertDef(
    name="SpecbudgetStagingNotAsPlanned",
    severity=Severity.TICKET,
    line="staging",
    condition=_unplanned,
    for_seconds=600.0,
    keeps=("mode", "order"),
    summary="[service]: staged in mode {{ $labels.mode }}, order {{ $labels.order }}: [replicas]",
    description="The budget plans another mode or order of loading target and drafter.",
    dashboard=Dashboard.STARTUP,
    means="The start-up budget was made for another way of loading.",
    confirm=(_STAGED,),
    causes=("a launch argument was lost", "an engine version with another default"),
    actions=("Compare the launch arguments with the plan.",),
)

WARMUP_MISSING = AlertDef(
    name="SpecbudgetWarmupMissing",
    severity=Severity.TICKET,
    line="staging",
    condition=_cold,
    for_seconds=600.0,
    summary="[service]: started without a warm-up: [replicas]",
    description="The budget requires one; the first users pay for compilation and capture instead.",
    dashboard=Dashboard.STARTUP,
    means="Ready came before the engine had generated anything.",
    confirm=(_STAGED,),
    causes=("--skip-server-warmup in the launch arguments",),
    actions=("Remove the argument, or make the warm-up optional in the budget.",),
)

UNFIT = AlertDef(
    name="SpecbudgetPairUnfit",
    severity=Severity.TICKET,
    line="codesign",
    condition=_unfit,
    for_seconds=60.0,
    summary="[service]: this drafter does not fit this target",
    description="[count] co-design rules fail.[broken]",
    words=lambda s: {"broken": broken_rules(s, " They are:")},
    dashboard=Dashboard.OVERVIEW,
    means="The drafter was made for something else: what it drafts is refused, or will be.",
    confirm=(
        'specbudget_codesign_check{specbudget_service="$SERVICE",result="fail"}',
        "specbudget check --budget budget.yaml --verbose",
    ),
    causes=("the target was replaced", "a drafter of another size or another training", "a wrong path"),
    actions=(
        "`specbudget check --explain codesign.RULE` says what does not fit.",
        "Go back to the pair in budget.lock.",
    ),
)

RECHECK = AlertDef(
    name="SpecbudgetRecheckDue",
    severity=Severity.TICKET,
    line="codesign",
    condition=_recheck,
    for_seconds=60.0,
    keeps=("plan",),
    summary="[service]: the plan {{ $labels.plan }} must be made again",
    description="A model of the approved pair changed: what was measured and budgeted with the old one is open again.",
    dashboard=Dashboard.OVERVIEW,
    means=(
        "acceptance: the target changed, measure the length again. kv: the drafter changed, budget its KV again. "
        "two_model: both changed, everything."
    ),
    confirm=('max by (plan) (specbudget_recheck_due{specbudget_service="$SERVICE"})',),
    causes=("a rollout of a model without the gate",),
    actions=("Run `specbudget check`, and `--approve` once it passes.",),
)

STAGING_ALERTS = (OVER_BUDGET, STUCK, FAILING, UNPLANNED, WARMUP_MISSING)
CODESIGN_ALERTS = (UNFIT, RECHECK)
