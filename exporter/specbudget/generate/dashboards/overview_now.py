"""Across the room: the five lines, what fires, and what is not known."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.burn import FAST_BURN
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.alerts.sidecar import CONFIG, DOWN, ENGINE_DOWN, MISSING, SOURCE_FAILING, STATE
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import LINES
from specbudget.catalog.promql import equals
from specbudget.catalog.recording import STEPS, Level
from specbudget.catalog.rule_settings import COLLAPSE_SECONDS
from specbudget.domain.line_state import LineState
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.events import severities, worst_firing
from specbudget.generate.dashboards.links import dashboard_of, runbook, to, to_service
from specbudget.generate.dashboards.queries import (
    by,
    line_states,
    state_now,
    worst_state,
)
from specbudget.generate.dashboards.view import View

OF_SERVICE = f"{{{{{SERVICE_LABEL}}}}}"


def lines_now(view: View) -> house.Placed:
    """Five tiles: the worst state of each line."""
    queries = [
        house.Query(
            expr=state_now(view, line),
            legend=line.title,
            links=(to(dashboard_of(line.id), f"{line.title}: what, where, since when"),),
        )
        for line in LINES
    ]
    head = house.Head(
        title="The five lines now",
        reads=(
            "The worst state of each line over all services and replicas that are chosen. Breach: a limit is "
            "exceeded, a rule fails or a page condition holds. Unknown: budgeted, and nobody can say."
        ),
        good="five times ok. Unknown is not ok.",
        unit="none",
        width=house.FULL,
        height=5,
    )
    return panels.number(
        head, queries, thresholds=house.plain(colours.UNKNOWN), mappings=line_states(), background=True, named=True
    )


def lines_then(view: View) -> house.Placed:
    """When each line was in which state."""
    head = house.Head(
        title="The five lines over time",
        reads="The worst state of each line and service. A gap is a time of which no sidecar tells.",
        good="one colour from left to right.",
        unit="none",
        width=house.FULL,
        height=house.HIGH,
    )
    queries = [
        house.Query(expr=worst_state(view, SERVICE_LABEL, line=line), legend=f"{line.title} {OF_SERVICE}")
        for line in LINES
    ]
    return panels.states(head, queries, line_states())


def alerts_now(view: View) -> house.Placed:
    """What fires."""
    head = house.Head(
        title="Firing alerts",
        reads="What Prometheus says is firing now, pages before tickets. The service leads to its dashboards.",
        good="empty.",
        unit="none",
        empty="no alert fires",
        links=runbook(view, FAST_BURN, COLLAPSED),
        height=house.MIDDLE,
    )
    labels = ("alertname", SERVICE_LABEL, "line", *view.places, "pod", "instance")
    lead = to_service(Dashboard.ACCEPTANCE, "Acceptance of this service", "${__data.fields.Service}")
    return panels.rows(
        head,
        [house.Query(expr=worst_firing(view, *labels))],
        {
            "Value": "Severity",
            "alertname": "Alert",
            SERVICE_LABEL: "Service",
            "line": "Line",
            **{label: label.capitalize() for label in view.places},
            "pod": "Pod",
            "instance": "Replica",
        },
        worst_first="Severity",
        by_columns={
            "Severity": {**panels.background(), **panels.width(110), "mappings": severities()},
            "Alert": panels.width(310),
            "Service": {"links": [lead], **panels.at_least(110)},
            "Line": panels.at_least(90),
        },
    )


def not_known(view: View) -> house.Placed:
    """What no number above is about, because nobody can read it."""
    replica = view.replica
    seen = f"group{by(*replica, 'job')} (last_over_time({view.of(series.BUILD_INFO)}[1d]))"
    none = f"absent_over_time({view.of(series.BUILD_INFO)}[1d])"
    counted = f"group{by(*view.settings.labels)} ({view.of(series.VERIFY_STEPS)})"
    recorded = f"group{by(*view.settings.labels)} ({view.recorded(STEPS.at(Level.SERVICE, COLLAPSE_SECONDS))})"
    gone = f"{seen} and on (job, instance) (up == 0)"
    source = f"min{by(*replica, 'source')} ({view.of(series.SOURCE_UP)}) == 0"
    unknown = f"max{by(*replica, 'line')} ({view.of(series.LINE_STATE, equals('state', LineState.UNKNOWN))}) == 1"
    config = f"min{by(*replica)} ({view.of(series.CONFIG_RELOAD_OK)}) == 0"
    state = f"min{by(*replica)} ({view.of(series.STATE_SAVED)}) == 0"
    told = " or ".join(
        f'label_replace({expr}, "what", "{word}", "{label}", "(.*)")'
        for expr, word, label in (
            (none, "no sidecar within a day", ""),
            (gone, "sidecar does not answer", ""),
            (f"{counted} unless {recorded}", "no recorded series: rules not loaded?", ""),
            (source, "source $1 cannot be read", "source"),
            (unknown, "line $1 is unknown", "line"),
            (config, "new configuration refused", ""),
            (state, "state not saved", ""),
        )
    )
    head = house.Head(
        title="Unknown or down",
        reads=(
            "Sidecars that do not answer, sources that cannot be read, lines that are budgeted and not computable. "
            "No number elsewhere is about these, and alerts on them are silent. Here a row is 1 while it holds."
        ),
        good="empty.",
        unit="none",
        empty="all is known",
        links=runbook(view, DOWN, ENGINE_DOWN, SOURCE_FAILING, CONFIG, STATE, MISSING),
        height=house.MIDDLE,
    )
    return panels.rows(
        head,
        [house.Query(expr=told)],
        {
            "what": "What",
            SERVICE_LABEL: "Service",
            **{label: label.capitalize() for label in view.places},
            "pod": "Pod",
            "instance": "Replica",
        },
        by_columns={"What": {**panels.cell("color-text"), "color": house.fixed(colours.UNKNOWN), **panels.width(240)}},
    )
