"""The sidecars themselves: sources that fail, backlogs, lines that were lost."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.sidecar import LAGGING, LOST, MISSING, RECORDS_LOST, SOURCE_FAILING, STATE
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.promql import number, one_of
from specbudget.catalog.recording import BACKLOG_SECONDS
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import RATE, by
from specbudget.generate.dashboards.view import View

OF_SOURCE = f"{{{{source}}}} {{{{{SERVICE_LABEL}}}}}"


def watched(view: View) -> tuple[house.Placed, ...]:
    """All panels on the sidecars."""
    return (sources(view), lag(view), lost(view), errors(view))


def sources(view: View) -> house.Placed:
    """Which source could be read when."""
    head = house.Head(
        title="Sources",
        reads="One lane per source and service: down while any replica's sidecar cannot read it. A gap: no sidecar.",
        good="read from left to right; a short gap while an engine starts is none of the sidecar's.",
        unit="none",
        links=runbook(view, SOURCE_FAILING, MISSING),
        height=house.HIGH,
    )
    told = ((0.0, "down", colours.BREACH), (1.0, "read", colours.OK))
    query = house.Query(expr=f"min{by(SERVICE_LABEL, 'source')} ({view.of(series.SOURCE_UP)})", legend=OF_SOURCE)
    return panels.states(head, [query], house.words(told))


def lag(view: View) -> house.Placed:
    """How far behind the logs are read."""
    head = house.Head(
        title="Backlog of logs",
        reads=(
            "Age of the newest record that was counted while a backlog is left. Dashed: from there on a replica's "
            "events do not page until it has caught up."
        ),
        good="0.",
        unit="s",
        empty="unknown: no log is followed",
        links=runbook(view, LAGGING, STATE),
        height=house.HIGH,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"max{by(SERVICE_LABEL, 'source')} ({view.of(series.SOURCE_LAG)})", legend=OF_SOURCE),
            house.Query(
                expr=f"vector({number(BACKLOG_SECONDS)})", legend="held back", colour=colours.LIMIT, dashed=True
            ),
        ],
    )


def lost(view: View) -> house.Placed:
    """Lines that are in no counter."""
    head = house.Head(
        title="Lines lost",
        reads="Lines per second that were malformed or too long: what they told is in no counter.",
        good="none.",
        unit="short",
        empty="unknown: no log is followed",
        links=runbook(view, RECORDS_LOST),
    )
    chosen = view.of(series.RECORDS, one_of("outcome", LOST))
    expr = f"sum{by(SERVICE_LABEL, 'source', 'outcome')} (rate({chosen}[{RATE}]))"
    return panels.lines(head, [house.Query(expr=expr, legend=f"{{{{outcome}}}} {OF_SOURCE}")], axis="lines per second")


def errors(view: View) -> house.Placed:
    """Why readings failed."""
    labels = (SERVICE_LABEL, "source", "reason")
    head = house.Head(
        title="Errors of readings in this time range",
        reads="Readings or values that failed, by source and reason.",
        good="none, but for an engine that starts.",
        unit="short",
        empty="no error is told",
        links=runbook(view, SOURCE_FAILING),
    )
    expr = f"round(sum{by(*labels)} (increase({view.of(series.SOURCE_ERRORS)}[$__range]))) > 0"
    return panels.rows(
        head,
        [house.Query(expr=expr)],
        {SERVICE_LABEL: "Service", "source": "Source", "reason": "Reason", "Value": "Errors"},
        worst_first="Errors",
        by_columns={"Errors": {"decimals": 0}},
    )
