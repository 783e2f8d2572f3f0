"""The table of replicas: one row each, with what tells a sick one from its neighbours."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.length import OUTLIER
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook, to_service
from specbudget.generate.dashboards.queries import (
    by,
    line_states,
    occupancy,
    recorded_length,
    speculation,
    speculation_states,
    worst_state,
)
from specbudget.generate.dashboards.view import View


def replicas(view: View) -> house.Placed:
    """One row per replica; what is not known of one is said so."""
    one, places = view.replica, {label: label.capitalize() for label in view.places}
    info = f"max{by(*one, 'version', 'algorithm')} ({view.of(series.ENGINE_INFO)})"
    queries = [
        # first what every replica has that answers at all
        house.Query(expr=worst_state(view, *one)),
        house.Query(expr=speculation(view, *one)),
        house.Query(expr=recorded_length(view, *one)),
        house.Query(expr=f"sum{by(*one)} ({view.of(series.ENGINE_RUNNING)})"),
        house.Query(expr=f"sum{by(*one)} ({view.of(series.ENGINE_QUEUED)})"),
        house.Query(expr=occupancy(view, *one)),
        house.Query(expr=f"max{by(*one)} ({view.of(series.COLD_START)})"),
        house.Query(expr=f"count{by(*one)} ({view.of(series.SOURCE_UP)} == 0)"),
        house.Query(expr=info),
    ]
    head = house.Head(
        title="Replicas",
        reads=(
            "The worst line of each replica, what speculation does there, its acceptance length over 5 minutes, its "
            "load, its fuller KV pool, its latest cold start, and sources that cannot be read. One replica that is "
            "unlike its neighbours is a replica to restart; all alike is a pair or traffic to look at."
        ),
        good="rows that are alike.",
        unit="none",
        empty="unknown",
        links=runbook(view, OUTLIER),
        width=house.FULL,
        height=house.HIGH,
    )
    lead = to_service(Dashboard.ACCEPTANCE, "Acceptance of this replica", "${__data.fields.Service}")
    lead.url = f"{lead.url}&var-replica=${{__data.fields.Replica}}"
    return panels.rows(
        head,
        queries,
        {
            SERVICE_LABEL: "Service",
            **places,
            "pod": "Pod",
            "instance": "Replica",
            "Value #A": "Worst line",
            "Value #B": "Speculation",
            "Value #C": "Length",
            "Value #D": "Running",
            "Value #E": "Queued",
            "Value #F": "KV used",
            "Value #G": "Cold start",
            "Value #H": "Sources down",
            "algorithm": "Algorithm",
            "version": "Engine",
        },
        worst_first="Worst line",
        by_columns={
            **{title: panels.at_least(110) for title in ("Service", *places.values(), "Pod")},
            "Replica": {"links": [lead], **panels.at_least(110)},
            "Worst line": {"mappings": line_states(), **panels.background(), **panels.width(125)},
            "Speculation": {"mappings": speculation_states(), **panels.background(), **panels.width(130)},
            "Length": {"decimals": 2, **panels.narrow(80)},
            "Running": panels.narrow(85),
            "Queued": panels.narrow(85),
            "KV used": {"unit": "percentunit", "decimals": 0, **panels.narrow(85)},
            "Cold start": {"unit": "s", "decimals": 0, "noValue": "not seen", **panels.narrow(95)},
            "Sources down": {
                "noValue": "–",
                **panels.cell("color-text"),
                "color": house.fixed(colours.BREACH),
                **panels.narrow(120),
            },
            "Algorithm": panels.width(110),
            "Engine": panels.narrow(95),
        },
    )
