"""Panels of what is judged: likely causes, states of speculation, events, exclusions, the source that counts."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.length import BAD_FROM_BOOT
from specbudget.catalog.alerts.speculation import COVERAGE, FROZEN, NO_RECORDS, OFF, SUSPICIOUS
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import RATE, rate, speculation, speculation_states
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View


def suspects(view: View) -> house.Placed:
    """Which causes the evidence speaks for, and since when."""
    head = house.Head(
        title="Likely causes",
        reads=(
            "One lane per cause: yellow while a replica has evidence for it, grey while it has none. A suspect is no "
            "verdict; the sidecar's log and status page hold the evidence. Where a lane turned when the length fell, "
            "begin there."
        ),
        good="grey from left to right.",
        unit="none",
        links=runbook(view, BAD_FROM_BOOT, SUSPICIOUS),
        height=11,
    )
    query = house.Query(expr=f"max by (cause) ({view.of(series.ACCEPTANCE_SUSPECT)})", legend="{{cause}}")
    told = ((0.0, "no", colours.QUIET), (1.0, "suspected", colours.AT_RISK))
    return panels.states(head, [query], house.words(told))


def states(view: View) -> house.Placed:
    """What speculation did, rank by rank."""
    head = house.Head(
        title="Speculation, rank by rank",
        reads=(
            "Off: tokens come one a step and the drafter's memory is paid for. Frozen: requests run and no counter "
            "moves for a minute. Capped: fewer drafts are verified than the window allows. A gap: nothing is told."
        ),
        good="active; idle without traffic.",
        unit="none",
        links=runbook(view, OFF, FROZEN),
        height=11,
    )
    labels = (*view.replica, "rank")
    query = house.Query(expr=speculation(view, *labels), legend=f"{REPLICA_LEGEND} rank {{{{rank}}}}")
    return panels.states(head, [query], speculation_states())


def counted(view: View) -> tuple[house.Placed, ...]:
    """What enters the SLO, what does not, and who says so."""
    return (verdicts(view), excluded(view), source(view))


def verdicts(view: View) -> house.Placed:
    """Valid events."""
    head = house.Head(
        title="Events of the SLO",
        reads="Valid events per second by verdict. Good: the length reached its profile's target.",
        good="few that are bad.",
        unit="short",
        empty="unknown: no event is seen",
        links=runbook(view, COVERAGE),
        width=house.THIRD,
    )
    query = house.Query(expr=rate(view, series.SLO_EVENTS, "verdict"), legend="{{verdict}}")
    return panels.lines(
        head,
        [query],
        stacked=True,
        axis="events per second",
        overrides=house.coloured(colours.OF_VERDICT),
        interval="1m",
    )


def excluded(view: View) -> house.Placed:
    """Requests that are no event."""
    head = house.Head(
        title="Requests that do not count",
        reads=(
            "Finished requests per second that are no event, by the first reason that holds. With most requests "
            "here the SLO speaks for a minority."
        ),
        good="small beside the events.",
        unit="reqps",
        empty="unknown: no request is seen",
        links=runbook(view, COVERAGE),
        width=house.THIRD,
    )
    query = house.Query(expr=rate(view, series.SLO_EXCLUDED, "reason"), legend="{{reason}}")
    return panels.lines(head, [query], stacked=True, interval="1m")


def source(view: View) -> house.Placed:
    """Where the counts come from, and what became of the lines read."""
    head = house.Head(
        title="Lines of logs read",
        reads="Lines per second by file and by what became of them. Malformed and oversized lines are in no counter.",
        good="ok, and skipped where a line is about something else.",
        unit="short",
        empty="unknown: no log is read",
        links=runbook(view, NO_RECORDS),
        width=house.THIRD,
    )
    expr = f"sum by (source, outcome) (rate({view.of(series.RECORDS)}[{RATE}])) > 0"
    return panels.lines(
        head,
        [house.Query(expr=expr, legend="{{source}} {{outcome}}")],
        axis="lines per second",
    )
