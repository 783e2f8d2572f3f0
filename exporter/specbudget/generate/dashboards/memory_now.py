"""The memory line in numbers of now."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.memory import BELOW_FLOOR, PRESSURE, SHRANK
from specbudget.catalog.lines import KV
from specbudget.catalog.promql import equals
from specbudget.catalog.sets import Artifact
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.line_tile import line_tile
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import (
    drafter_share,
    limit,
    occupancy,
)
from specbudget.generate.dashboards.view import View

NO_POOL = "unknown: no pool is read"


def at_a_glance(view: View) -> tuple[house.Placed, ...]:
    """The line's state, how full, and the drafter's price."""
    return (line_now(view), fullest(view), share(view), cost_now(view), left(view), lost(view))


def line_now(view: View) -> house.Placed:
    """The state of the line."""
    return line_tile(view, KV, "KV line", "a pool beyond its budget, at risk one above its mark")


def fullest(view: View) -> house.Placed:
    """The fullest pool."""
    head = house.Head(
        title="Fullest pool",
        reads="Used ÷ capacity of the fullest pool of the ranks that are chosen; a graph below has high water.",
        good="below high water.",
        unit="percentunit",
        empty=NO_POOL,
        links=runbook(view, PRESSURE),
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head, [house.Query(expr=occupancy(view))], thresholds=house.plain(colours.TARGET), trend=True, decimals=0
    )


def share(view: View) -> house.Placed:
    """The sentence on the drafter's price."""
    head = house.Head(
        title="The drafter takes",
        reads=(
            "Share of the tokens that the target's pool could hold which the drafter takes, its KV and its weights: "
            "cost ÷ (cost + what the target has)."
        ),
        good="the share that was planned; what it buys stands in the acceptance dashboard.",
        unit="percentunit",
        empty=NO_POOL,
        links=(to(Dashboard.ACCEPTANCE, "What it buys"), *runbook(view, BELOW_FLOOR)),
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head, [house.Query(expr=drafter_share(view))], thresholds=house.plain(colours.DRAFTER), decimals=1
    )


def cost_now(view: View) -> house.Placed:
    """The price in tokens."""
    head = house.Head(
        title="Cost in target tokens",
        reads="Tokens that the target's pool would hold more without the drafter, the dearest rank.",
        good="what the plan says.",
        unit="short",
        empty=NO_POOL,
        links=runbook(view, BELOW_FLOOR),
        width=house.SIXTH,
        height=house.LOW,
    )
    expr = f"max ({view.of(series.KV_COST_TOKENS)})"
    return panels.number(head, [house.Query(expr=expr)], thresholds=house.plain(colours.DRAFTER))


def left(view: View) -> house.Placed:
    """What the target has against its floor."""
    head = house.Head(
        title="Target tokens",
        reads="Tokens that the smallest target pool holds, and the floor that the budget sets, if it sets one.",
        good="the first number above the second.",
        unit="short",
        empty=NO_POOL,
        links=runbook(view, BELOW_FLOOR, SHRANK),
        width=house.SIXTH,
        height=house.LOW,
    )
    target = view.of(series.KV_POOL_CAPACITY_TOKENS, equals("artifact", Artifact.TARGET))
    return panels.number(
        head,
        [
            house.Query(expr=f"min ({target})", legend="has", colour=colours.TARGET),
            house.Query(expr=limit(view, KV, KV.budget("min_target_tokens")), legend="floor", colour=colours.REFERENCE),
        ],
        thresholds=house.plain(colours.TARGET),
        named=True,
    )


def lost(view: View) -> house.Placed:
    """Retractions in the time range."""
    head = house.Head(
        title="Retracted in range",
        reads="Requests of this time range that lost their KV to others and started again.",
        good="0.",
        unit="short",
        empty="unknown: not read",
        links=runbook(view, PRESSURE),
        width=house.SIXTH,
        height=house.LOW,
    )
    expr = f"round(sum (increase({view.of(series.KV_RETRACTIONS)}[$__range])))"
    marks = house.steps((None, colours.OK), (1.0, colours.AT_RISK))
    return panels.number(head, [house.Query(expr=expr)], thresholds=marks, decimals=0)
