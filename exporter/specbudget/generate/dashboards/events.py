"""What is marked on every graph: starts, changes of the pair and of the budget, alerts that fire."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Severity
from specbudget.catalog.promql import equals, matching, one_of
from specbudget.generate.dashboards import colours
from specbudget.generate.dashboards.house import words
from specbudget.generate.dashboards.queries import by
from specbudget.generate.dashboards.sdk import builders, models, prometheus
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View, datasource

ALERTS_SERIES = "ALERTS"
"""What Prometheus itself keeps of every alert of its rules."""

FIRING = equals("alertstate", "firing")


def firing(view: View, *more: str) -> str:
    """A selector of the alerts of the chosen services; labels of a replica are on few of them."""
    ours = 'alertname=~"Specbudget.+"'
    return matching(ALERTS_SERIES, (FIRING, ours, *view.matchers, *more))


SEVERITIES = (
    (Severity.INFO, colours.QUIET),
    (Severity.TICKET, colours.AT_RISK),
    (Severity.PAGE, colours.BREACH),
)
"""From least to most; their place is the number that panels show and sort by."""


def worst_firing(view: View, *labels: str) -> str:
    """The severity of what fires, by its place in SEVERITIES."""
    each = (f"{place} * {firing(view, equals('severity', of))}" for place, (of, _) in enumerate(SEVERITIES))
    return f"max{by(*labels)} ({' or '.join(each)})"


def severities() -> list[models.ValueMapping]:
    """The words and colours of worst_firing()."""
    return words((place, of, colour) for place, (of, colour) in enumerate(SEVERITIES))


def marks(view: View) -> list[models.AnnotationQuery]:
    """Marks on the time axis; each can be turned off at the top."""
    starts = f"max{by(*view.replica)} ({view.of(series.ENGINE_START_TIME)}) * 1000"
    reloads = f"max{by(*view.replica)} ({view.of(series.CONFIG_RELOAD_TIME)}) * 1000"
    pair = f"count by (artifact) (count by (artifact, fingerprint) ({view.of(series.ARTIFACT_INFO)})) > 1"
    due = f"max by (plan) ({view.of(series.RECHECK_DUE)}) == 1"
    return [
        _marked("Engine starts", starts, colours.TARGET, REPLICA_LEGEND, "engine started", at_value=True),
        _marked("Budget read", reloads, colours.QUIET, REPLICA_LEGEND, "budget read", at_value=True),
        _marked("Replicas differ in a model", pair, colours.DRAFTER, "{{artifact}}", "two fingerprints at once"),
        _marked("Recheck due", due, colours.DRAFTER, "{{plan}}", "a model of the pair changed"),
        _marked(
            "Pages",
            firing(view, equals("severity", Severity.PAGE)),
            colours.BREACH,
            "{{alertname}}",
            "page",
            tags="line,severity",
        ),
        _marked(
            "Tickets",
            firing(view, one_of("severity", (Severity.TICKET, Severity.INFO))),
            colours.AT_RISK,
            "{{alertname}}",
            "ticket",
            tags="line,severity",
            shown=False,
        ),
    ]


def _marked(
    name: str,
    expr: str,
    colour: str,
    title: str,
    text: str,
    *,
    at_value: bool = False,
    tags: str = "",
    shown: bool = True,
) -> models.AnnotationQuery:
    made = builders.AnnotationQuery().name(name).datasource(datasource()).enable(shown).icon_color(colour)
    # where the query stands depends on Grafana's version: in the mark itself, later in its target
    target = prometheus.Dataquery().ref_id("Anno").expr(expr)
    made = made.expr(expr).target(target).title_format(title).text_format(text).tag_keys(tags)
    found = made.use_value_for_time(at_value).build()
    found.placement = None  # type: ignore[assignment]
    return found
