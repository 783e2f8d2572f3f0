"""The start-up dashboard: where the latest start's time went, and how starts went before."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.staging import FAILING, OVER_BUDGET, STUCK, UNPLANNED, WARMUP_MISSING
from specbudget.catalog.lines import STAGING
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards import startup_timeline as bars
from specbudget.generate.dashboards.layout import Section
from specbudget.generate.dashboards.line_tile import line_tile
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import by, limit, starts, used
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View

COLD_START = STAGING.budget("cold_start")
NO_START = "no start seen"


def sections(view: View) -> list[Section]:
    """The latest start stage by stage, then the history."""
    return [
        Section(
            panels=(line_now(view), cold_start(view), budget(view), overlap(view), ended(view), bars.timeline(view))
        ),
        Section(title="How it was staged", panels=(staged(view), bars.stages(view))),
        Section(title="Starts before", panels=(history(view), outcomes(view))),
        Section(title="Where the time went over starts", panels=(stages_then(view), ages(view))),
    ]


def line_now(view: View) -> house.Placed:
    """The state of the line."""
    return line_tile(view, STAGING, "Staging line", "a start over its budget, or one that failed")


def cold_start(view: View) -> house.Placed:
    """The latest start, the slowest replica."""
    head = house.Head(
        title="Cold start",
        reads=(
            "Start of the process to the first successful generation, the engine's own warm-up counting; the slowest "
            "replica's latest start. Cold or warm: whether the page cache held the weights, on evidence only."
        ),
        good="below the budget beside it.",
        unit="s",
        empty=NO_START,
        links=runbook(view, OVER_BUDGET),
        width=house.SIXTH,
        height=house.LOW,
    )
    expr = f"max by (kind) ({view.of(series.COLD_START)})"
    return panels.number(
        head,
        [house.Query(expr=expr, legend="page cache {{kind}}")],
        thresholds=house.plain(colours.TARGET),
        named=True,
        decimals=1,
    )


def budget(view: View) -> house.Placed:
    """How much of the budget it took."""
    head = house.Head(
        title="Of the start-up budget",
        reads="Seconds of the slowest latest start ÷ the budget's seconds, and the budget.",
        good="below 90 %: some starts are slower than others.",
        unit="percentunit",
        empty="not budgeted, or no start seen",
        links=runbook(view, OVER_BUDGET),
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head,
        [
            house.Query(expr=used(view, STAGING, COLD_START), legend="used"),
            house.Query(expr=limit(view, STAGING, COLD_START), legend="budget", unit="s", colour=colours.REFERENCE),
        ],
        thresholds=house.used_ratio(),
        named=True,
        decimals=0,
    )


def overlap(view: View) -> house.Placed:
    """How much of the shorter load ran beside the other."""
    head = house.Head(
        title="Overlap of the loads",
        reads=(
            "Share of the shorter load that ran beside the other: 0 % one after the other, 100 % hidden behind it. "
            "SGLang loads two models one after the other; prefetching into the page cache is what can be gained."
        ),
        good="what the plan says.",
        unit="percentunit",
        empty="unknown: two loads are not told apart",
        links=runbook(view, UNPLANNED),
        width=house.SIXTH,
        height=house.LOW,
    )
    expr = f"min ({view.of(series.STAGING_OVERLAP)})"
    return panels.number(head, [house.Query(expr=expr)], thresholds=house.plain(colours.QUIET), decimals=0)


def ended(view: View) -> house.Placed:
    """How starts of the time range ended."""
    head = house.Head(
        title="Starts in this time range",
        reads="Starts of all replicas that are chosen, by how they ended. Stuck: one that does not end.",
        good="ok only.",
        unit="short",
        empty=NO_START,
        links=runbook(view, FAILING, STUCK),
        width=house.THIRD,
        height=house.LOW,
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


def staged(view: View) -> house.Placed:
    """Mode, order and warm-up as run."""
    head = house.Head(
        title="Mode, order, warm-up",
        reads="How the latest start loaded its models, on how many replicas. With speculation SGLang cannot overlap.",
        good="one row, and that of the plan.",
        unit="none",
        empty=NO_START,
        links=runbook(view, UNPLANNED, WARMUP_MISSING),
        width=house.THIRD,
    )
    return panels.rows(
        head,
        [house.Query(expr=f"count by (mode, order, warmup) ({view.of(series.STAGING_INFO)})")],
        {"mode": "Mode", "order": "Order", "warmup": "Warm-up", "Value": "Replicas"},
        by_columns={
            "Mode": panels.at_least(90),
            "Order": panels.at_least(120),
            "Warm-up": panels.at_least(110),
            "Replicas": panels.narrow(85),
        },
    )


def history(view: View) -> house.Placed:
    """Cold starts over time against the budget."""
    head = house.Head(
        title="Cold starts over time",
        reads=(
            "Each replica's latest cold start; a step is a new start. Dashed: the budget. A slow climb over weeks is "
            "storage, or a checkpoint that grows."
        ),
        good="below the dashed budget, and level.",
        unit="s",
        empty=NO_START,
        links=runbook(view, OVER_BUDGET),
        width=house.TWO_THIRDS,
        height=house.HIGH,
    )
    # the largest between two points, so that a start is not lost between them when the range is long
    largest = f"max{by(*view.replica)} (max_over_time({view.of(series.COLD_START)}[$__interval]))"
    return panels.lines(
        head,
        [
            house.Query(expr=largest, legend=REPLICA_LEGEND),
            house.Query(expr=limit(view, STAGING, COLD_START), legend="budget", colour=colours.LIMIT, dashed=True),
        ],
        steps=True,
        interval="1m",
    )


def outcomes(view: View) -> house.Placed:
    """When starts ended how."""
    head = house.Head(
        title="Starts by outcome",
        reads="Starts per interval, by how they ended. Failed ones in a row are a crash loop.",
        good="ok only, and few.",
        unit="short",
        empty=NO_START,
        links=runbook(view, FAILING),
        width=house.THIRD,
        height=house.HIGH,
    )
    return panels.lines(
        head,
        [house.Query(expr=f"{starts(view, '$__interval', 'outcome')} > 0", legend="{{outcome}}")],
        bars=True,
        stacked=True,
        decimals=0,
        overrides=house.coloured(colours.OF_OUTCOME),
        interval="5m",
    )


def stages_then(view: View) -> house.Placed:
    """Which stage grew."""
    head = house.Head(
        title="Stages over starts",
        reads="How long each stage of the latest start took, the slowest replica's. Ask the stage that grew.",
        good="level.",
        unit="s",
        empty=NO_START,
        links=runbook(view, OVER_BUDGET),
    )
    expr = f"max by (artifact, stage) ({view.of(series.STARTUP_STAGE_DURATION)})"
    return panels.lines(head, [house.Query(expr=expr, legend="{{artifact}} {{stage}}")], steps=True, table_legend=True)


def ages(view: View) -> house.Placed:
    """How long engines have run, and how that is known."""
    head = house.Head(
        title="Age of the engines",
        reads=(
            "Seconds since each process started, and how its beginning is known: launch and pid_namespace are exact, "
            "first_log_line and observed are later than the truth."
        ),
        good="lines that only rise.",
        unit="s",
        empty="unknown: no start is known",
        links=(to(Dashboard.MEMORY, "What each start left for the pools"),),
    )
    expr = f"time() - max{by(*view.replica, 'basis')} ({view.of(series.ENGINE_START_TIME)})"
    return panels.lines(head, [house.Query(expr=expr, legend=f"{REPLICA_LEGEND} {{{{basis}}}}")])
