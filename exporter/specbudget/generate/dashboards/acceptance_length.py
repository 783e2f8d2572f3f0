"""Panels of the acceptance length: over time, its shape, by position, profile, replica and rank."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.length import BELOW_BREAK_EVEN, COLLAPSED, DECAYING, OUTLIER
from specbudget.catalog.alerts.speculation import RETARGETED, SURPLUS
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.catalog.promql import number
from specbudget.domain.suspects import CLEARLY_LOWER, CONTRIBUTES_NOTHING
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import (
    RATE,
    SMOOTH,
    batch_length,
    length,
    over,
    quantile,
    rate,
    spent_of_worst,
)
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View

AXIS = "tokens per verify step"
NO_STEPS = "unknown: no verify steps are counted"


def now_and_before(view: View) -> house.Placed:
    """The one graph that tells whether two models pay."""
    head = house.Head(
        title="Acceptance length against target and break-even",
        reads=(
            "Tokens per verify step, of the requests that finished and of the batches that ran; ratios of sums. "
            "Requests tell at their end, batches at once. Green: what the wanted share of requests reached within an "
            "hour, of the profile that is nearest to its own target, or furthest below it. Dashed: the least that a "
            "good request reaches; break-even, under which two models are slower than one. From "
            f"{number(CONTRIBUTES_NOTHING)} down the drafter contributes nothing."
        ),
        good="both lines level, above target and break-even.",
        unit="short",
        empty=NO_STEPS,
        links=runbook(view, COLLAPSED, BELOW_BREAK_EVEN, DECAYING),
        width=house.FULL,
        height=12,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=length(view), legend="requests", colour=colours.TARGET),
            house.Query(expr=batch_length(view), legend="batches", colour=colours.SECOND),
            house.Query(
                expr=spent_of_worst(view, ACCEPTANCE, ACCEPTANCE.budget("target_length")),
                legend=f"{number(100 * view.settings.objective)} % reach within 1h (profile nearest to its target)",
                colour=colours.OK,
            ),
            _target(view),
            house.Query(
                expr=f"avg ({view.of(series.BREAK_EVEN)})", legend="break-even", colour=colours.THIRD, dashed=True
            ),
        ],
        axis=AXIS,
        least=1.0,
        decimals=2,
        table_legend=True,
        interval=SMOOTH,
    )


def _target(view: View) -> house.Query:
    expr = f"max by (profile) ({view.of(series.ACCEPTANCE_TARGET)})"
    return house.Query(expr=expr, legend="target {{profile}}", colour=colours.LIMIT, dashed=True)


def distribution(view: View) -> house.Placed:
    """Where the lengths of requests lie."""
    head = house.Head(
        title="Lengths of finished requests",
        reads=(
            "How many requests had which length: brighter is more. Two bands are two kinds of traffic; a band that "
            "moves is a change for all, one that fades into another is a change of the mix."
        ),
        good="one bright band above the target, or a steady pair of bands.",
        unit="short",
        empty="unknown: no request is seen",
        links=runbook(view, SURPLUS),
    )
    buckets = view.of(series.REQUEST_ACCEPTANCE_LENGTH, suffix="_bucket")
    query = house.Query(expr=f"sum by (le) (increase({buckets}[{RATE}]))", legend="{{le}}")
    return panels.shape(head, query, interval=SMOOTH)


def by_position(view: View) -> house.Placed:
    """The survival curve of drafts."""
    head = house.Head(
        title="Drafts accepted, by position",
        reads=(
            "Share of the verify steps in this time range that accepted at least so many drafts, over all profiles. "
            "The sum is the acceptance length less 1. Positions that hardly anything reaches are drafted in vain."
        ),
        good="a slow fall. A cliff after the first positions is a wrong drafter or a window that is too long.",
        unit="percentunit",
        empty="unknown: no position is counted",
        links=runbook(view, COLLAPSED),
        height=house.HIGH,
    )
    reached = f"sum by (position) (increase({view.of(series.DRAFT_POSITION_ACCEPTED)}[$__range]))"
    steps = f"sum (increase({view.of(series.VERIFY_STEPS, whole=True)}[$__range]))"
    # sorted by share, which is by position: no step accepts two drafts and not one
    query = house.Query(expr=f"sort_desc({reached} / on () group_left () ({steps} > 0))", legend="draft {{position}}")
    return panels.gauges(head, [query], thresholds=house.plain(colours.TARGET), most=1.0, decimals=0)


def quantiles(view: View) -> house.Placed:
    """How the low end of requests does against the target."""
    buckets = f"sum by (le) (rate({view.of(series.REQUEST_ACCEPTANCE_LENGTH, suffix='_bucket')}[{RATE}]))"
    objective = view.settings.objective
    shares = ((objective, colours.TARGET), (0.5, colours.SECOND), (0.1, colours.QUIET))
    queries = [
        house.Query(
            expr=quantile(1 - share, buckets),
            legend=f"{number(100 * share)} % of requests reach",
            colour=colour,
        )
        for share, colour in shares
    ]
    head = house.Head(
        title="Length that requests reach",
        reads=(
            "Quantiles of finished requests, from buckets, so that they are right to a bucket's width. The SLO is "
            f"kept while the line of {number(100 * objective)} % stays above the dashed target."
        ),
        good="the lowest line above the target.",
        unit="short",
        empty="unknown: no request is seen",
        links=runbook(view, SURPLUS),
    )
    return panels.lines(head, [*queries, _target(view)], axis=AXIS, least=1.0, decimals=2, interval="2m")


def rates(view: View) -> house.Placed:
    """The acceptance rate, which moves against the length where the window does."""
    head = house.Head(
        title="Acceptance rate",
        reads=(
            "Accepted ÷ proposed drafts. With an adaptive or capped window it can rise while the length falls, so "
            "that no SLO stands on it."
        ),
        good="level. Together with the window it says whether drafts are worse or fewer.",
        unit="percentunit",
        empty="unknown: no draft is counted",
        links=runbook(view, DECAYING),
    )
    accepted, proposed = rate(view, series.ACCEPTED_DRAFTS), rate(view, series.PROPOSED_DRAFTS)
    query = house.Query(expr=over(accepted, proposed), legend="accepted ÷ proposed", colour=colours.TARGET)
    return panels.lines(head, [query], most=1.0, interval=SMOOTH)


def by_profile(view: View) -> house.Placed:
    """Each kind of traffic for itself."""
    head = house.Head(
        title="Length by profile",
        reads=(
            "Tokens per verify step of each profile, its target, and what to expect of the present mix: the profiles' "
            "own lengths weighted by their share. Where the whole falls and no profile does, the mix moved."
        ),
        good="each profile above its own dashed target.",
        unit="short",
        empty=NO_STEPS,
        links=runbook(view, DECAYING, RETARGETED),
    )
    expected = f"avg ({view.of(series.ACCEPTANCE_EXPECTED)})"
    return panels.lines(
        head,
        [
            house.Query(expr=length(view, "profile"), legend="{{profile}}"),
            house.Query(expr=expected, legend="expected of this mix", colour=colours.REFERENCE, dashed=True),
            _target(view),
        ],
        axis=AXIS,
        least=1.0,
        decimals=2,
        interval=SMOOTH,
    )


def mix(view: View) -> house.Placed:
    """Whose traffic it is."""
    head = house.Head(
        title="Verify steps by profile",
        reads="Verify steps per second of each profile. A share that grows pulls the whole length towards its own.",
        good="shares as when the target was set.",
        unit="short",
        empty=NO_STEPS,
    )
    query = house.Query(expr=rate(view, series.VERIFY_STEPS, "profile"), legend="{{profile}}")
    return panels.lines(head, [query], stacked=True, axis="verify steps per second", interval=SMOOTH)


def by_replica(view: View) -> house.Placed:
    """One replica beside the others."""
    head = house.Head(
        title="Length by replica",
        reads=(
            "Tokens per verify step of each replica. Dashed: "
            f"{number(CLEARLY_LOWER)} of the service's, below which a replica is an outlier."
        ),
        good="lines close together. One alone below: restart that one; all together: pair or traffic.",
        unit="short",
        empty=NO_STEPS,
        links=runbook(view, OUTLIER),
    )
    return panels.lines(
        head,
        [
            house.Query(expr=length(view, *view.replica), legend=REPLICA_LEGEND),
            house.Query(
                expr=f"{number(CLEARLY_LOWER)} * ({length(view)})",
                legend="outlier below",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        axis=AXIS,
        least=1.0,
        decimals=2,
        interval=SMOOTH,
    )


def by_rank(view: View) -> house.Placed:
    """The data-parallel ranks, and the window that each has."""
    head = house.Head(
        title="Length and window by rank",
        reads=(
            "Tokens per verify step of each data-parallel rank of each replica, and its verify window (dashed), "
            "which moves where verification is adaptive."
        ),
        good="ranks alike, and a window that is level or moves as configured.",
        unit="short",
        empty=NO_STEPS,
        links=runbook(view, OUTLIER),
    )
    labels = (*view.replica, "rank")
    window = f"max by ({', '.join(labels)}) ({view.of(series.ACCEPTANCE_WINDOW)})"
    return panels.lines(
        head,
        [
            house.Query(expr=length(view, *labels), legend=f"{REPLICA_LEGEND} rank {{{{rank}}}}"),
            house.Query(
                expr=window,
                legend=f"window {REPLICA_LEGEND} rank {{{{rank}}}}",
                colour=colours.REFERENCE,
                dashed=True,
            ),
        ],
        axis=AXIS,
        least=1.0,
        decimals=2,
        interval=SMOOTH,
    )
