"""The latest start as bars on one time axis, and as numbers."""

from __future__ import annotations

from string import ascii_uppercase

from specbudget.catalog import series
from specbudget.catalog.alerts.staging import OVER_BUDGET, STUCK
from specbudget.catalog.lines import STAGING
from specbudget.catalog.promql import equals
from specbudget.catalog.sets import StageArtifact
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import by, limit
from specbudget.generate.dashboards.sdk import models
from specbudget.generate.dashboards.view import View

COLD_START = STAGING.budget("cold_start")
NO_START = "no start seen"
LANE, OFFSET, ORDER = "Stage", "begins", "order"
WHOLE_LANE, BUDGET_LANE = "cold start", "budget"


def _slowest(view: View) -> str:
    """The replica whose latest start took longest, or has taken longest so far."""
    offset, took = (view.of(s) for s in (series.STARTUP_STAGE_OFFSET, series.STARTUP_STAGE_DURATION))
    return f"topk(1, max{by(*view.replica)} ({offset} + {took}))"


def _of_slowest(view: View, one: series.SeriesDef, *matchers: str) -> str:
    """A figure of the stages of that replica, with the name of the lane; a stage without length has no bar."""
    took = f"({view.of(series.STARTUP_STAGE_DURATION)} > 0)"
    lasting = f"and on ({', '.join((*view.replica, 'artifact', 'stage'))}) {took}"
    chosen = f"{view.of(one, *matchers)} {lasting} and on ({', '.join(view.replica)}) {_slowest(view)}"
    return f'max by (lane) (label_join({chosen}, "lane", ": ", "artifact", "stage"))'


def timeline(view: View) -> house.Placed:
    """Each stage as a bar from its beginning to its end."""
    whole = f"max (max{by(*view.replica)} ({view.of(series.COLD_START)}) and {_slowest(view)})"
    bars = [
        f'label_replace({expr}, "lane", "{lane}", "", "")'
        for lane, expr in ((WHOLE_LANE, whole), (BUDGET_LANE, limit(view, STAGING, COLD_START)))
    ]
    begins = [_of_slowest(view, series.STARTUP_STAGE_OFFSET), *(f"0 * {bar}" for bar in bars)]
    queries = [
        house.Query(expr=" or ".join(begins)),
        *(
            house.Query(expr=_of_slowest(view, series.STARTUP_STAGE_DURATION, equals("artifact", artifact)))
            for artifact in StageArtifact
        ),
        *(house.Query(expr=bar) for bar in bars),
        # the whole and its budget stand before every stage, those in the order in which they began
        house.Query(expr=" or ".join([begins[0], *(f"0 * {bar} - {2 - place}" for place, bar in enumerate(bars))])),
    ]
    names = (OFFSET, *StageArtifact, WHOLE_LANE, BUDGET_LANE, ORDER)
    columns = {f"Value #{ref}": str(name) for ref, name in zip(ascii_uppercase, names, strict=False)}
    shown = {"lane": LANE, **columns}
    transformations = (
        models.DataTransformerConfig(id_val="merge", options={}),
        models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": list(shown)}}),
        models.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {},
                "indexByName": {name: place for place, name in enumerate(shown)},
                "renameByName": shown,
            },
        ),
        models.DataTransformerConfig(
            id_val="sortBy", options={"fields": {}, "sort": [{"field": ORDER, "desc": False}]}
        ),
        models.DataTransformerConfig(id_val="organize", options={"excludeByName": {ORDER: True}}),
    )
    head = house.Head(
        title="The latest start, stage by stage",
        reads=(
            "Of the replica whose latest start took longest: one bar per stage, from when it began to when it ended, "
            "in seconds from the start of the process. Blue the target's, orange the drafter's, grey both. Above "
            "them the whole cold start and, paler, its budget: whatever ends right of the budget is too late. "
            "A stage for which the log shows no time has no bar. It does not depend on the time range."
        ),
        good="every bar ends before the budget's does, and no gap lies between bars.",
        unit="s",
        empty="no start seen: the server log is not read, or began after the start",
        links=runbook(view, OVER_BUDGET, STUCK),
        width=house.FULL,
        height=12,
    )
    colour = {**colours.OF_STAGE_ARTIFACT, WHOLE_LANE: colours.WHOLE, BUDGET_LANE: colours.REFERENCE}
    hidden = house.override("byName", OFFSET, panels.invisible())
    pale = house.override("byName", BUDGET_LANE, {"custom.fillOpacity": 40, "custom.lineWidth": 2})
    return panels.bars(
        head,
        queries,
        lane=LANE,
        transformations=transformations,
        overrides=(*house.coloured(colour), hidden, pale),
        horizontal=True,
    )


def stages(view: View) -> house.Placed:
    """The stages as numbers."""
    offset, took = (
        f"max{by(*view.replica, 'artifact', 'stage')} ({view.of(s)})"
        for s in (series.STARTUP_STAGE_OFFSET, series.STARTUP_STAGE_DURATION)
    )
    head = house.Head(
        title="Stages of the latest start, by replica",
        reads="When each stage began and how long it took, or has taken so far. The longest stands first.",
        good="replicas alike. One that loads slower has a slower disk or a colder cache.",
        unit="s",
        empty=NO_START,
        links=runbook(view, OVER_BUDGET),
        width=house.TWO_THIRDS,
    )
    return panels.rows(
        head,
        [house.Query(expr=took), house.Query(expr=offset)],
        {
            "artifact": "Model",
            "stage": "Stage",
            "Value #A": "Took",
            "Value #B": "Began at",
            "pod": "Pod",
            "instance": "Replica",
        },
        worst_first="Took",
        by_columns={"Took": {"decimals": 1}, "Began at": {"decimals": 1}},
    )
