"""Alerts on starts, and on whether the pair fits."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.alerts.texts import broken_rules
from specbudget.catalog.lines import CODESIGN, STAGING
from specbudget.catalog.looks import BROKEN_RULES, CHECK, FINGERPRINTS, OUTCOMES, SERVER_LOG, STAGED, STAGES, reads
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, none_of, number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import CheckResult, Stage, StartOutcome

FAILING_STARTS = 2
"""Failed starts within an hour: one is mended by the next."""


def _ended(s: RuleSettings, outcome: StartOutcome) -> str:
    return s.of(series.STARTUPS, equals("outcome", outcome))


def _over_budget(s: RuleSettings) -> Condition | None:
    """An increase, or a replica that was not there an hour ago and whose first sample counts its start already.

    Not there for an hour: a scrape that was missed an hour ago makes no replica new.
    """
    if not s.has_limit(STAGING, STAGING.budget("cold_start")):
        return None
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


OVER_BUDGET = AlertDef(
    name="SpecbudgetColdStartOverBudget",
    severity=Severity.TICKET,
    line=STAGING.id,
    condition=_over_budget,
    summary="[service]: a start took longer than its budget",
    description="Within the last hour an engine came to its first generation later than cold_start allows.",
    dashboard=Dashboard.STARTUP,
    means="Scaling out and restarting are slower than planned.",
    when=lambda s: "Within an hour an engine came to its first generation later than cold_start allows.",
    confirm=(
        STAGES,
        reads("How long the latest start took.", series.COLD_START, by="kind"),
        OUTCOMES,
    ),
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
    line=STAGING.id,
    condition=_stuck,
    reads_hours=True,
    summary="[service]: stuck in a stage of the start: [replicas]",
    description="A start has not moved for longer than a start may take, and the engine is not ready.",
    dashboard=Dashboard.STARTUP,
    means="The replica serves nothing and nobody restarts it.",
    when=lambda s: "Within a day a start was called stuck, and the engine is not ready.",
    confirm=(STAGES, SERVER_LOG),
    causes=("storage that hangs", "a rank that waits for another", "a kernel that compiles without end"),
    actions=("Look at the last line of the engine's log.", "Restart the replica elsewhere."),
)

FAILING = AlertDef(
    name="SpecbudgetStartsFailing",
    severity=Severity.TICKET,
    line=STAGING.id,
    condition=_failing,
    summary="[service]: [count] starts failed within an hour",
    description="Engines end before their first generation, again and again.",
    dashboard=Dashboard.STARTUP,
    means="A crash loop: the replica never serves.",
    when=lambda s: f"Within an hour {FAILING_STARTS} or more starts failed.",
    confirm=(OUTCOMES, SERVER_LOG),
    causes=("memory that does not suffice for both models", "arguments that the engine refuses", "a broken checkpoint"),
    actions=(
        "Read the error in the engine's log.",
        "Run `specbudget check --budget [budget]` with the same arguments.",
        "Undo the rollout.",
    ),
)

UNPLANNED = AlertDef(
    name="SpecbudgetStagingNotAsPlanned",
    severity=Severity.TICKET,
    line=STAGING.id,
    condition=_unplanned,
    for_seconds=600.0,
    keeps=("mode", "order"),
    summary="[service]: staged in mode {{ $labels.mode }}, order {{ $labels.order }}: [replicas]",
    description="The budget plans another mode or order of loading target and drafter.",
    dashboard=Dashboard.STARTUP,
    means="The start-up budget was made for another way of loading.",
    when=lambda s: "A replica was staged in another mode or order than the budget plans.",
    confirm=(STAGED,),
    causes=("a launch argument was lost", "an engine version with another default"),
    actions=("Compare the launch arguments with the plan.",),
)

WARMUP_MISSING = AlertDef(
    name="SpecbudgetWarmupMissing",
    severity=Severity.TICKET,
    line=STAGING.id,
    condition=_cold,
    for_seconds=600.0,
    summary="[service]: started without a warm-up: [replicas]",
    description="The budget requires one; the first users pay for compilation and capture instead.",
    dashboard=Dashboard.STARTUP,
    means="Ready came before the engine had generated anything.",
    when=lambda s: "A replica started without the warm-up that the budget requires.",
    confirm=(STAGED,),
    causes=("[no warm-up]",),
    actions=("Remove the argument, or make the warm-up optional in the budget.",),
)

UNFIT = AlertDef(
    name="SpecbudgetPairUnfit",
    severity=Severity.TICKET,
    line=CODESIGN.id,
    condition=_unfit,
    for_seconds=60.0,
    summary="[service]: this drafter does not fit this target",
    description="[count] co-design rules fail.[broken]",
    words=lambda s: {"broken": broken_rules(s, " They are:")},
    dashboard=Dashboard.OVERVIEW,
    means="The drafter was made for something else: what it drafts is refused, or will be.",
    when=lambda s: "One co-design rule or more fails.",
    confirm=(BROKEN_RULES, CHECK),
    causes=("the target was replaced", "a drafter of another size or another training", "a wrong path"),
    actions=(
        "`specbudget check --budget [budget] --explain codesign.RULE` says what does not fit.",
        "Go back to the pair in budget.lock.",
    ),
    off="if requests are served by this pair and its length pays for no drafter",
)

RECHECK = AlertDef(
    name="SpecbudgetRecheckDue",
    severity=Severity.TICKET,
    line=CODESIGN.id,
    condition=_recheck,
    for_seconds=60.0,
    keeps=("plan",),
    summary="[service]: the plan {{ $labels.plan }} must be made again",
    description="A model of the approved pair changed: what was measured and budgeted with the old one is open again.",
    dashboard=Dashboard.OVERVIEW,
    means=(
        "A model of the approved pair is another now. Plan `acceptance`: the target changed, measure the length again. "
        "`kv`: the drafter changed, budget its KV again. `two_model`: both changed, everything."
    ),
    when=lambda s: "A model of the approved pair changed.",
    confirm=(reads("Which plan must be made again.", series.RECHECK_DUE, by="plan"), FINGERPRINTS, CHECK),
    causes=("a rollout of a model without the gate",),
    actions=("Run `specbudget check --budget [budget]`, and again with `--approve` once it passes.",),
)

STAGING_ALERTS = (OVER_BUDGET, STUCK, FAILING, UNPLANNED, WARMUP_MISSING)
CODESIGN_ALERTS = (UNFIT, RECHECK)
