"""Alerts on the KV pools and on the artifacts on disk."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.lines import ARTIFACTS, KV, LineDef
from specbudget.catalog.looks import (
    BY_REPLICA,
    CHECK,
    COST_TOKENS,
    FINGERPRINTS,
    KV_RATIOS,
    POOL_BYTES,
    POOL_TOKENS,
    Command,
    Query,
    grew,
    reads,
)
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, number, one_of
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import CHECKPOINT_SOURCES, Artifact, NeedBasis
from specbudget.words import percent, span

PRESSURE_SECONDS = 900
QUEUE_GROWTH = 5.0
"""Requests by which a queue grows in that time before it counts as growing."""

KEPT_CAPACITY = 0.95
"""A pool below this share of what it was is another pool, and not a page more or less."""

FAR_ABOVE_NEED = 2.0


def over_budget(s: RuleSettings, line: LineDef, *budgets: str) -> Condition | None:
    """A budget of the line is spent beyond its limit; None where none of them has one."""
    if not s.has_limit(line, *(line.budget(budget) for budget in budgets)):
        return None
    chosen = one_of("budget", (line.budget(budget).id for budget in budgets))
    used = s.of(series.BUDGET_USED_RATIO, equals("line", line.id), chosen)
    return Condition(first=Clause(query=f"max {s.by('budget')} ({used})", op=">", bound="1"))


def _pressure(s: RuleSettings) -> Condition | None:
    if not s.has_limit(KV, KV.budget("high_water")):
        return None
    used = s.of(series.BUDGET_USED_RATIO, equals("line", KV.id), equals("budget", KV.budget("high_water").id))
    retracted = s.of(series.KV_RETRACTIONS)
    grown = f"sum {s.by_replica()} (deriv({s.of(series.ENGINE_QUEUED)}[15m])) * {PRESSURE_SECONDS}"
    suffers = Condition(
        first=Clause(query=f"sum {s.by_replica()} (increase({retracted}[15m]))", op=">", bound="0"),
        otherwise=(Condition(first=Clause(query=grown, op=">", bound=number(QUEUE_GROWTH))),),
    )
    return Condition(
        first=Clause(query=f"max {s.by_replica()} (avg_over_time({used}[15m]))", op=">", bound="1"),
        rest=(Joined(join=Join.AND, on=s.replica, part=suffers),),
        outer=f"count {s.by()}",
    )


def _shrank(s: RuleSettings) -> Condition:
    """Against what this replica had within a day, or what the smallest had a day ago: pods get new names.

    A day ago means within an hour of it: a smallest replica that was not scraped at that moment had no larger pool.
    """
    capacity = s.of(series.KV_POOL_CAPACITY_TOKENS, equals("artifact", Artifact.TARGET))
    kept = number(KEPT_CAPACITY)
    return Condition(
        first=Clause(
            query=f"min {s.by_replica('rank')} ({capacity})",
            op="<",
            bound=f"{kept} * min {s.by_replica('rank')} (max_over_time({capacity}[1d]))",
        ),
        outer=f"count {s.by()}",
        otherwise=(
            Condition(
                first=Clause(
                    query=f"min {s.by()} ({capacity})",
                    op="<",
                    bound=f"{kept} * min {s.by()} (last_over_time({capacity}[1h] offset 1d))",
                ),
                outer=f"count {s.by()}",
            ),
        ),
    )


def _far_above_need(s: RuleSettings) -> Condition:
    allocated = s.of(series.KV_POOL_CAPACITY_BYTES, equals("artifact", Artifact.DRAFTER))
    need = s.of(series.KV_NEED_BYTES, equals("artifact", Artifact.DRAFTER), equals("basis", NeedBasis.PLANNED))
    return Condition(
        first=Clause(
            query=f"max {s.by()} (\n  max {s.by_replica()} ({allocated})\n  / max {s.by_replica()} ({need})\n)",
            op=">",
            bound=number(FAR_ABOVE_NEED),
        )
    )


def _changed(s: RuleSettings) -> Condition:
    """Two fingerprints within a day, unless a lock says that the present one is approved."""
    seen = f"last_over_time({s.of(series.ARTIFACT_INFO)}[1d])"
    return Condition(
        first=Clause(
            query=f"count {s.by('artifact')} (group {s.by('artifact', 'fingerprint')} ({seen}))", op=">", bound="1"
        ),
        rest=(
            Joined(
                join=Join.UNLESS,
                on=s.labels,
                part=Clause(query=f"max {s.by()} ({s.of(series.RECHECK_DUE)})", op="==", bound="0"),
            ),
        ),
    )


def _incomplete(s: RuleSettings) -> Condition:
    up = s.of(series.SOURCE_UP, one_of("source", CHECKPOINT_SOURCES))
    return Condition(first=Clause(query=f"min {s.by('source')} ({up})", op="==", bound="0"))


PRESSURE = AlertDef(
    name="SpecbudgetKvPressure",
    severity=Severity.TICKET,
    line=KV.id,
    condition=_pressure,
    for_seconds=300.0,
    summary="[service]: the KV pool is full and requests suffer on [replicas]",
    description=(
        "Over 15m the fuller of the two pools was above high_water, and requests were retracted or the queue grew."
    ),
    dashboard=Dashboard.MEMORY,
    means="The pool is too small for the load: requests lose their KV, start again, or wait.",
    when=lambda s: (
        f"Over {span(PRESSURE_SECONDS)} the fuller pool of a replica is above high_water, and requests were "
        f"retracted or "
        f"the queue grew by more than {number(QUEUE_GROWTH)}."
    ),
    confirm=(
        KV_RATIOS,
        grew("Requests that lost their KV.", series.KV_RETRACTIONS, "15m", by=BY_REPLICA),
        Query(shows="Requests that wait.", text=lambda s: f"sum by ({BY_REPLICA}) ({s.of(series.ENGINE_QUEUED)})"),
        COST_TOKENS,
    ),
    causes=(
        "more or longer requests than planned",
        "the drafter's KV takes the room: see the cost in target tokens",
        "the pool came out smaller at the last start",
    ),
    actions=(
        "Add replicas or lower the limit of running requests.",
        "See what the drafter costs, and whether it pays.",
    ),
    off="if requests must be served now, replicas cannot be added, and the drafter costs much of the pool",
)

SHRANK = AlertDef(
    name="SpecbudgetKvCapacityShrank",
    severity=Severity.TICKET,
    line=KV.id,
    condition=_shrank,
    reads_hours=True,
    summary="[service]: a KV pool of the target is smaller than at the last start",
    description=f"At least one pool holds less than {KEPT_CAPACITY:.0%} of the tokens that it held within a day.",
    dashboard=Dashboard.MEMORY,
    means="The same engine got less memory for its KV: it serves fewer requests at once than planned.",
    when=lambda s: (
        f"The target's pool of a replica holds less than {percent(KEPT_CAPACITY)} of the tokens that it held within a "
        f"day, or that "
        "the smallest pool of the service held a day ago."
    ),
    confirm=(
        POOL_TOKENS,
        reads("Where the device's memory went at the start.", series.DEVICE_MEMORY_BYTES),
    ),
    causes=(
        "another process holds memory of the device",
        "a larger drafter, more graphs or another memory fraction",
        "memory that a crashed process has not given back",
    ),
    actions=(
        "Compare the memory split of both starts.",
        "Restart on a clean device.",
        "If it is meant, change the budget.",
    ),
)

FAR_ABOVE = AlertDef(
    name="SpecbudgetKvOverAllocated",
    severity=Severity.TICKET,
    line=KV.id,
    condition=_far_above_need,
    for_seconds=1800.0,
    summary="[service]: the drafter's KV pool is [value] times what it needs",
    description="The engine gives the drafter more KV than the planned requests can use; the target could have it.",
    dashboard=Dashboard.MEMORY,
    means="Memory lies idle that would hold requests.",
    when=lambda s: f"The drafter's pool is more than {number(FAR_ABOVE_NEED)} times what the planned requests need.",
    confirm=(
        reads(
            "What the drafter needs.",
            series.KV_NEED_BYTES,
            matchers=(equals("artifact", Artifact.DRAFTER),),
        ),
        reads(
            "What the engine gives it.",
            series.KV_POOL_CAPACITY_BYTES,
            matchers=(equals("artifact", Artifact.DRAFTER),),
        ),
        COST_TOKENS,
    ),
    causes=("the plan's concurrency or tokens_per_request is too small", "the engine sizes both pools alike"),
    actions=("Correct the plan, or limit the pool ([pool limit]).", "Choose a drafter with a narrower window."),
)

POOL_OVER = AlertDef(
    name="SpecbudgetKvPoolOverBudget",
    severity=Severity.TICKET,
    line=KV.id,
    condition=lambda s: over_budget(s, KV, "target", "drafter"),
    for_seconds=600.0,
    keeps=("budget",),
    summary="[service]: the KV pool of the {{ $labels.budget }} takes [percent] of its budget",
    description="A pool is larger than budgeted, per device.",
    dashboard=Dashboard.MEMORY,
    means="More device memory goes into this pool than was planned.",
    when=lambda s: f"A pool takes more bytes than the line {KV.id} allows, per device.",
    confirm=(KV_RATIOS, POOL_BYTES),
    causes=("another memory fraction", "another geometry of the drafter: layers, heads, dtype"),
    actions=("Correct the launch arguments or the budget.",),
)

BELOW_FLOOR = AlertDef(
    name="SpecbudgetKvTargetTokensShort",
    severity=Severity.TICKET,
    line=KV.id,
    condition=lambda s: over_budget(s, KV, "min_target_tokens"),
    for_seconds=600.0,
    keeps=("budget",),
    summary="[service]: the drafter leaves the target too few KV tokens",
    description="The target's pool holds fewer tokens than min_target_tokens; the budget is [percent] spent.",
    dashboard=Dashboard.MEMORY,
    means="What the drafter costs in tokens of the target is more than the plan allows.",
    when=lambda s: "The target's pool holds fewer tokens than min_target_tokens.",
    confirm=(POOL_TOKENS, COST_TOKENS),
    causes=("a drafter whose token costs more KV", "less free memory at the start"),
    actions=(
        "Choose a cheaper drafter, more devices, or a smaller floor.",
        "`specbudget check --budget [budget] --explain kv.min_target_tokens` shows the arithmetic.",
    ),
)

ARTIFACTS_OVER = AlertDef(
    name="SpecbudgetArtifactsOverBudget",
    severity=Severity.TICKET,
    line=ARTIFACTS.id,
    condition=lambda s: over_budget(s, ARTIFACTS, *(budget.id for budget in ARTIFACTS.budgets)),
    for_seconds=600.0,
    keeps=("budget",),
    summary="[service]: artifacts take [percent] of the budget {{ $labels.budget }}",
    description="Loadable weights on disk are more than the budget allows.",
    dashboard=Dashboard.MEMORY,
    means="Image, disk or download take more than planned.",
    when=lambda s: f"More loadable bytes are on disk than a budget of the line {ARTIFACTS.id} allows.",
    confirm=(reads("Loadable bytes on disk.", series.ARTIFACT_BYTES),),
    causes=("another dtype", "a second copy of the weights in the folder", "a larger model under the same name"),
    actions=("Remove what is not loaded, or change the budget.",),
)

CHANGED = AlertDef(
    name="SpecbudgetArtifactsChanged",
    severity=Severity.TICKET,
    line=ARTIFACTS.id,
    condition=_changed,
    reads_hours=True,
    keeps=("artifact",),
    summary="[service]: the {{ $labels.artifact }} on disk changed, and no lock approves it",
    description="Within a day [count] fingerprints of it were seen.",
    dashboard=Dashboard.MEMORY,
    means="The next start loads another model than the one that was checked.",
    when=lambda s: "Within a day two fingerprints of a model were seen, and no lock approves the present pair.",
    confirm=(FINGERPRINTS, CHECK),
    causes=(
        "a rollout without `specbudget check --budget [budget] --approve`",
        "a folder that is shared and was overwritten",
    ),
    actions=("Run `specbudget check --budget [budget] --approve` with the new pair, or put the old model back.",),
)

INCOMPLETE = AlertDef(
    name="SpecbudgetArtifactsIncomplete",
    severity=Severity.TICKET,
    line=ARTIFACTS.id,
    condition=_incomplete,
    for_seconds=600.0,
    keeps=("source",),
    summary="[service]: {{ $labels.source }} cannot be read whole",
    description="Files of the checkpoint are missing, cut off or git-lfs pointers. The next start would fail.",
    dashboard=Dashboard.MEMORY,
    means="The running engine is not touched; a restart would be.",
    when=lambda s: "A checkpoint cannot be read, or is not whole.",
    confirm=(
        grew("Why it cannot be read.", series.SOURCE_ERRORS, "1h", by="source, reason", after=" > 0"),
        Command(shows="Sizes of the files: a git-lfs pointer has 130 bytes.", text="ls -l [target] [drafter]"),
        CHECK,
    ),
    causes=("a download that was cut off", "git-lfs pointers instead of weights", "a mount that went away"),
    actions=("Bring the checkpoint again and compare its fingerprint.",),
)

KV_ALERTS = (PRESSURE, SHRANK, FAR_ABOVE, POOL_OVER, BELOW_FLOOR)
ARTIFACT_ALERTS = (ARTIFACTS_OVER, CHANGED, INCOMPLETE)
