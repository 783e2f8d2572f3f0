"""The most telling panels of each line, for a fleet of services."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.burn import FAST_BURN
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.alerts.memory import BELOW_FLOOR, PRESSURE
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import ACCEPTANCE, KV
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import (
    RATE,
    by,
    drafter_share,
    limit,
    occupancy,
    recorded_length,
    speculation,
    speculation_states,
    used,
)
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View

OF_SERVICE = f"{{{{{SERVICE_LABEL}}}}}"


def lengths(view: View) -> house.Placed:
    """Acceptance length of each service against its target and break-even."""
    even = ACCEPTANCE.budget("break_even")
    head = house.Head(
        title="Acceptance length",
        reads=(
            "Tokens that one verify step emits, over 5 minutes. Dashed: the least that a good request reaches, and "
            "break-even, under which two models are slower than one."
        ),
        good="well above both dashed lines, and level.",
        unit="short",
        empty="unknown: no verify steps are counted",
        links=(to(Dashboard.ACCEPTANCE, "Whose requests, since when, and why"), *runbook(view, COLLAPSED)),
    )
    target = f"max by ({SERVICE_LABEL}, profile) ({view.of(series.ACCEPTANCE_TARGET)})"
    return panels.lines(
        head,
        [
            house.Query(expr=recorded_length(view, SERVICE_LABEL), legend=OF_SERVICE),
            house.Query(expr=target, legend=f"target {{{{profile}}}} {OF_SERVICE}", colour=colours.LIMIT, dashed=True),
            house.Query(
                expr=limit(view, ACCEPTANCE, even, SERVICE_LABEL),
                legend=f"break-even {OF_SERVICE}",
                colour=colours.REFERENCE,
                dashed=True,
            ),
        ],
        axis="tokens per verify step",
        least=1.0,
        decimals=2,
    )


def burns(view: View) -> house.Placed:
    """How near each service is to its pages."""
    head = house.Head(
        title="SLO burn against the page factors",
        reads=(
            "Burn ÷ factor of the fast and of the slow page: from 100 % on a page condition holds. The sidecar's own "
            "figure, the worst replica of each service."
        ),
        good="near 0.",
        unit="percentunit",
        empty="unknown: no SLO is budgeted, or no event is seen",
        links=(to(Dashboard.ACCEPTANCE, "How much of the error budget is left"), *runbook(view, FAST_BURN)),
    )
    queries = []
    for budget, name in ((ACCEPTANCE.budget("burn_fast"), "fast"), (ACCEPTANCE.budget("burn_slow"), "slow")):
        queries.append(house.Query(expr=used(view, ACCEPTANCE, budget, SERVICE_LABEL), legend=f"{name} {OF_SERVICE}"))
    queries.append(house.Query(expr="vector(1)", legend="page", colour=colours.LIMIT, dashed=True))
    return panels.lines(head, queries, most=1.0)


def pools(view: View) -> house.Placed:
    """How full the pools are against high water."""
    mark = KV.budget("high_water")
    head = house.Head(
        title="KV pools in use",
        reads=(
            "Used ÷ capacity of the fullest pool of each service; what running requests hold, without evictable "
            "cache. Dashed: high water."
        ),
        good="below the dashed line; above it requests are retracted or wait.",
        unit="percentunit",
        empty="unknown: the engine's metrics are not read",
        links=(to(Dashboard.MEMORY, "Which pool, which rank, what it costs"), *runbook(view, PRESSURE)),
        width=house.HALF,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=occupancy(view, SERVICE_LABEL), legend=OF_SERVICE),
            house.Query(
                expr=limit(view, KV, mark, SERVICE_LABEL),
                legend=f"high water {OF_SERVICE}",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        most=1.0,
    )


def cost(view: View) -> house.Placed:
    """What the drafter costs."""
    head = house.Head(
        title="The drafter takes",
        reads=(
            "Share of the tokens that the target could hold on this device which the drafter takes instead, its KV and "
            "its weights. What the pair was budgeted with is the right value; a rise is a smaller target pool."
        ),
        good="the share that the plan says.",
        unit="percentunit",
        empty="unknown: no pool is read",
        links=(to(Dashboard.MEMORY, "Need, allocated and cost in tokens"), *runbook(view, BELOW_FLOOR)),
        width=house.QUARTER,
    )
    query = house.Query(expr=drafter_share(view, SERVICE_LABEL), legend=OF_SERVICE)
    return panels.number(head, [query], thresholds=house.plain(colours.DRAFTER), decimals=1)


def retractions(view: View) -> house.Placed:
    """Requests that lost their KV."""
    head = house.Head(
        title="Retractions",
        reads="Requests per second that lost their KV to others and start again.",
        good="none.",
        unit="reqps",
        empty="unknown: the engine's metrics are not read",
        links=runbook(view, PRESSURE),
        width=house.QUARTER,
    )
    expr = f"sum{by(SERVICE_LABEL)} (rate({view.of(series.KV_RETRACTIONS)}[{RATE}]))"
    return panels.lines(head, [house.Query(expr=expr, legend=OF_SERVICE)], most=1.0)


def speculating(view: View) -> house.Placed:
    """What speculation does on each replica."""
    head = house.Head(
        title="Speculation by replica",
        reads=(
            "Off: paid for and not used. Frozen: requests run and no counter moves. Capped: the engine verifies less "
            "than the window. A gap: the sidecar tells nothing."
        ),
        good="active; idle without traffic.",
        unit="none",
        links=(to(Dashboard.ACCEPTANCE, "Rank by rank"),),
        width=house.FULL,
    )
    query = house.Query(expr=speculation(view, *view.replica), legend=REPLICA_LEGEND)
    return panels.states(head, [query], speculation_states())
