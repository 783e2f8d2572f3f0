"""The KV pools: how full, and what the drafter's needs, gets and costs."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.memory import BELOW_FLOOR, FAR_ABOVE, POOL_OVER, PRESSURE, SHRANK
from specbudget.catalog.lines import KV
from specbudget.catalog.promql import equals
from specbudget.catalog.sets import Artifact, NeedBasis
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import (
    RATE,
    by,
    limit,
    occupancy,
)
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View

NO_POOL = "unknown: no pool is read"
NEEDS = {
    NeedBasis.BLOCK_FLOOR: "its blocks alone would need",
    NeedBasis.PLANNED: "the planned requests need",
    NeedBasis.LIVE_UPPER: "what runs now needs at most",
}

UNDER = house.override("byName", Artifact.DRAFTER.value, {"custom.lineWidth": 6})
"""Both pools have the same slots, so that one line would hide the other: the drafter's shows on both sides of it."""


def occupied(view: View) -> house.Placed:
    """Both pools against high water."""
    head = house.Head(
        title="Used ÷ capacity",
        reads=(
            "What running requests hold of each pool, in tokens, the fullest rank. Dashed: high water, above which "
            "requests are retracted or wait."
        ),
        good="both lines below the dashed one.",
        unit="percentunit",
        empty=NO_POOL,
        links=runbook(view, PRESSURE),
        width=house.TWO_THIRDS,
        height=house.HIGH,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=occupancy(view, "artifact"), legend="{{artifact}}"),
            house.Query(
                expr=limit(view, KV, KV.budget("high_water")), legend="high water", colour=colours.LIMIT, dashed=True
            ),
        ],
        most=1.0,
        overrides=(*house.coloured(colours.OF_ARTIFACT), UNDER),
    )


def in_bytes(view: View) -> house.Placed:
    """Used, resident and capacity."""
    # from what is used up to what is there: the deeper the colour, the more it is needed
    kinds = (
        (series.KV_POOL_USED_BYTES, "used"),
        (series.KV_POOL_RESIDENT_BYTES, "with evictable cache"),
        (series.KV_POOL_CAPACITY_BYTES, "capacity"),
    )
    queries = [
        house.Query(expr=f"max by (artifact) ({view.of(one)})", legend=f"{{{{artifact}}}} {word}")
        for one, word in kinds
    ]
    limits = [
        house.Query(
            expr=limit(view, KV, KV.budget(model)),
            legend=f"{model} budget",
            colour=colours.OF_ARTIFACT[model],
            dashed=True,
        )
        for model in Artifact
    ]
    names = {
        f"{model} {word}": shade
        for model in Artifact
        for (_, word), shade in zip(kinds, colours.SHADES[model], strict=True)
    }
    thin = house.override("byRegexp", "/cache|capacity/", {"custom.lineWidth": 1})
    head = house.Head(
        title="Pools in bytes, per device",
        reads=(
            "Of each pool, on the fullest device: held by running requests, with the evictable prefix cache, and what "
            "was allocated. Dashed: the budgets, each in its model's colour. A pool whose cache fills it is normal; "
            "one whose used does is full."
        ),
        good="capacity below its budget, used well below capacity.",
        unit="bytes",
        empty=NO_POOL,
        links=runbook(view, POOL_OVER, PRESSURE),
        width=house.THIRD,
        height=house.HIGH,
    )
    return panels.lines(head, [*queries, *limits], overrides=(*house.coloured(names), thin))


def retractions(view: View) -> house.Placed:
    """When requests lost their KV."""
    head = house.Head(
        title="Retractions by replica",
        reads="Requests per second that lost their KV and start again; each pays its prompt twice.",
        good="none.",
        unit="reqps",
        empty="unknown: the engine's metrics are not read",
        links=runbook(view, PRESSURE),
        width=house.TWO_THIRDS,
    )
    expr = f"sum{by(*view.replica)} (rate({view.of(series.KV_RETRACTIONS)}[{RATE}]))"
    return panels.lines(head, [house.Query(expr=expr, legend=REPLICA_LEGEND)], most=1.0)


def four_numbers(view: View) -> house.Placed:
    """Block floor, need, allocated."""
    drafter = equals("artifact", Artifact.DRAFTER)
    queries = [
        house.Query(
            expr=f"max ({view.of(series.KV_NEED_BYTES, drafter, equals('basis', basis))})",
            legend=NEEDS[basis],
            colour=colours.SHADES[Artifact.DRAFTER][1],
        )
        for basis in NeedBasis
    ]
    got = house.Query(
        expr=f"max ({view.of(series.KV_POOL_CAPACITY_BYTES, drafter)})", legend="it gets", colour=colours.DRAFTER
    )
    head = house.Head(
        title="The drafter's KV, per device",
        reads=(
            "What the drafter's blocks alone would need, what its layers' windows need for the planned requests, what "
            "the requests of now need at most, and what the engine allocates: as many slots as the target has."
        ),
        good="what it gets is not far above what is planned; the rest is taken from the target for nothing.",
        unit="bytes",
        empty="unknown",
        links=runbook(view, FAR_ABOVE),
        height=house.MIDDLE,
    )
    return panels.gauges(head, [*queries, got], thresholds=house.plain(colours.DRAFTER), decimals=1)


def cost_then(view: View) -> house.Placed:
    """The price over time."""
    head = house.Head(
        title="Cost in target tokens, over starts",
        reads=(
            "Tokens that the target's pool would hold more without the drafter, beside those that it holds. It changes "
            "only when an engine starts."
        ),
        good="level over starts.",
        unit="short",
        empty=NO_POOL,
        links=runbook(view, BELOW_FLOOR),
    )
    target = view.of(series.KV_POOL_CAPACITY_TOKENS, equals("artifact", Artifact.TARGET))
    return panels.lines(
        head,
        [
            house.Query(expr=f"min ({target})", legend="the target holds", colour=colours.TARGET),
            house.Query(
                expr=f"max ({view.of(series.KV_COST_TOKENS)})", legend="the drafter costs", colour=colours.DRAFTER
            ),
            house.Query(
                expr=limit(view, KV, KV.budget("min_target_tokens")),
                legend="floor of the budget",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        steps=True,
        axis="tokens",
    )


def capacity(view: View) -> house.Placed:
    """What each rank got at each start."""
    head = house.Head(
        title="Capacity of the target's pool, by rank",
        reads="Tokens that each rank's target pool can hold. A step down after a start is memory that it never got.",
        good="the same after each start.",
        unit="short",
        empty=NO_POOL,
        links=runbook(view, SHRANK),
    )
    target = view.of(series.KV_POOL_CAPACITY_TOKENS, equals("artifact", Artifact.TARGET))
    query = house.Query(expr=f"min{by(*view.replica, 'rank')} ({target})", legend=f"{REPLICA_LEGEND} rank {{{{rank}}}}")
    return panels.lines(head, [query], steps=True, axis="tokens")


def per_token(view: View) -> house.Placed:
    """The price of one token in each model."""
    head = house.Head(
        title="KV of one token, per device",
        reads="Bytes that one token takes in each model. Their ratio is how the engine divides the device.",
        good="what the checkpoints' geometry says; it changes with the pair or with tensor parallelism only.",
        unit="bytes",
        empty="unknown: a checkpoint cannot be read",
        links=runbook(view, FAR_ABOVE),
    )
    expr = f"max by (artifact) ({view.of(series.KV_BYTES_PER_TOKEN)})"
    return panels.gauges(
        head,
        [house.Query(expr=expr, legend="{{artifact}}")],
        thresholds=house.plain(colours.QUIET),
        overrides=house.coloured(colours.OF_ARTIFACT),
    )
