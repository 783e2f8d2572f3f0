"""What is looked at on a change: staging, artifacts and co-design of a fleet."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.memory import ARTIFACTS_OVER
from specbudget.catalog.alerts.staging import OVER_BUDGET, RECHECK, UNFIT
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import ARTIFACTS, STAGING
from specbudget.catalog.promql import none_of
from specbudget.catalog.sets import CheckResult
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import (
    by,
    limit,
    starts,
)
from specbudget.generate.dashboards.view import View

OF_SERVICE = f"{{{{{SERVICE_LABEL}}}}}"


def cold_starts(view: View) -> house.Placed:
    """The latest start of each service against its budget."""
    budget = STAGING.budget("cold_start")
    head = house.Head(
        title="Cold start",
        reads="Seconds from the start of the process to the first generation of the latest start, the slowest replica.",
        good="below the dashed budget.",
        unit="s",
        empty="no start seen",
        links=(to(Dashboard.STARTUP, "Stage by stage"), *runbook(view, OVER_BUDGET)),
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"max{by(SERVICE_LABEL)} ({view.of(series.COLD_START)})", legend=OF_SERVICE),
            house.Query(
                expr=limit(view, STAGING, budget, SERVICE_LABEL),
                legend=f"budget {OF_SERVICE}",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        steps=True,
    )


def outcomes(view: View) -> house.Placed:
    """How starts ended."""
    head = house.Head(
        title="Starts in this time range",
        reads="Starts of engines by how they ended. Stuck: one that does not end.",
        good="ok only.",
        unit="short",
        empty="no start seen",
        links=(to(Dashboard.STARTUP, "Which start, which stage"),),
    )
    return panels.number(
        head,
        [house.Query(expr=starts(view, "$__range", "outcome"), legend="{{outcome}}")],
        thresholds=house.plain(colours.QUIET),
        mappings=house.none_is_quiet(),
        named=True,
        decimals=0,
        overrides=house.coloured(colours.OF_OUTCOME),
    )


def on_disk(view: View) -> house.Placed:
    """Weights on disk against their budgets."""
    target, drafter = ARTIFACTS.budget("target"), ARTIFACTS.budget("drafter")
    head = house.Head(
        title="Weights on disk",
        reads="Loadable bytes of both checkpoints, by index and tensor headers. Dashed: their budgets.",
        good="each below its own dashed line.",
        unit="bytes",
        empty="unknown: a checkpoint cannot be read",
        links=runbook(view, ARTIFACTS_OVER),
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"max by (artifact) ({view.of(series.ARTIFACT_BYTES)})", legend="{{artifact}}"),
            house.Query(expr=limit(view, ARTIFACTS, target), legend="budget target", colour=colours.TARGET,
                        dashed=True),
            house.Query(expr=limit(view, ARTIFACTS, drafter), legend="budget drafter", colour=colours.DRAFTER,
                        dashed=True),
        ],
        steps=True,
        overrides=house.coloured(colours.OF_ARTIFACT),
    )  # fmt: skip


def models_of(view: View) -> house.Placed:
    """Which checkpoints the replicas serve."""
    labels = (SERVICE_LABEL, "artifact", "architecture", "dtype", "fingerprint")
    head = house.Head(
        title="Models in service",
        reads="Architecture, type and fingerprint of each checkpoint, and how many replicas have it.",
        good="one fingerprint per service and model.",
        unit="none",
        empty="unknown: a checkpoint cannot be read",
    )
    return panels.rows(
        head,
        [house.Query(expr=f"count{by(*labels)} ({view.of(series.ARTIFACT_INFO)})")],
        {
            SERVICE_LABEL: "Service",
            "artifact": "Model",
            "architecture": "Architecture",
            "dtype": "Type",
            "fingerprint": "Fingerprint",
            "Value": "Replicas",
        },
        by_columns={
            "Service": panels.at_least(110),
            "Model": panels.narrow(80),
            "Architecture": panels.at_least(130),
            "Type": panels.narrow(85),
            "Fingerprint": panels.at_least(120),
            "Replicas": panels.narrow(85),
        },
    )


def rules(view: View) -> house.Placed:
    """Co-design rules by result."""
    results: dict[str, str] = {CheckResult.PASS: colours.OK, CheckResult.WARN: colours.AT_RISK,
               CheckResult.FAIL: colours.BREACH, CheckResult.UNKNOWN: colours.UNKNOWN}  # fmt: skip
    head = house.Head(
        title="Co-design rules",
        reads="How many rules of target, drafter and engine pass, warn, fail, or cannot be judged.",
        good="no fail, and little that is unknown.",
        unit="short",
        links=runbook(view, UNFIT),
        width=house.THIRD,
    )
    return panels.number(
        head,
        [house.Query(expr=f"max by (result) ({view.of(series.CODESIGN_CHECKS)})", legend="{{result}}")],
        thresholds=house.plain(colours.QUIET),
        mappings=house.none_is_quiet(),
        named=True,
        decimals=0,
        overrides=house.coloured(results),
    )


def broken(view: View) -> house.Placed:
    """The rules that fail or warn, by name."""
    chosen = view.of(series.CODESIGN_CHECK, none_of("result", (CheckResult.UNKNOWN,)))
    head = house.Head(
        title="Rules that do not pass",
        reads="`specbudget check --explain codesign.RULE` says what does not fit and why it matters.",
        good="empty.",
        unit="none",
        empty="no failing rule is told",
        links=runbook(view, UNFIT),
        width=house.THIRD,
    )
    return panels.rows(
        head,
        [house.Query(expr=f"max{by(SERVICE_LABEL, 'check', 'result')} ({chosen})")],
        {"result": "Result", "check": "Rule", SERVICE_LABEL: "Service"},
        by_columns={"Result": panels.narrow(75), "Service": panels.at_least(110)},
    )


def rechecks(view: View) -> house.Placed:
    """Plans that a change of the pair made old."""
    head = house.Head(
        title="Plans to make again",
        reads="1 where a model of the approved pair changed, so that what was planned with it is open again.",
        good="0 everywhere.",
        unit="none",
        empty="unknown: no budget.lock to compare with",
        links=runbook(view, RECHECK),
        width=house.THIRD,
    )
    due = [(0.0, "in force", colours.OK), (1.0, "due", colours.AT_RISK)]
    return panels.number(
        head,
        [house.Query(expr=f"max by (plan) ({view.of(series.RECHECK_DUE)})", legend="{{plan}}")],
        thresholds=house.plain(colours.UNKNOWN),
        mappings=house.words(due),
        named=True,
    )
