"""The memory review: what two models take of a device, what the drafter costs, and what happened when."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.memory import ARTIFACTS_OVER, CHANGED, INCOMPLETE
from specbudget.catalog.lines import ARTIFACTS
from specbudget.catalog.sets import Artifact
from specbudget.generate.dashboards import colours, house, load, panels
from specbudget.generate.dashboards import memory_device as device
from specbudget.generate.dashboards import memory_now as now
from specbudget.generate.dashboards import memory_pools as pools
from specbudget.generate.dashboards.events import severities, worst_firing
from specbudget.generate.dashboards.layout import Section
from specbudget.generate.dashboards.links import runbook, to
from specbudget.generate.dashboards.queries import by, limit
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View


def sections(view: View) -> list[Section]:
    """From the one sentence on the drafter's cost to what a team reads after an incident."""
    return [
        Section(panels=(*now.at_a_glance(view), device.by_rank(view), device.over_time(view))),
        Section(
            title="KV pools: full, and of what",
            panels=(pools.occupied(view), pools.in_bytes(view), pools.retractions(view), load.requests(view)),
        ),
        Section(title="What happened", panels=(alerts(view), starts(view))),
        Section(
            title="What the drafter needs, gets and costs",
            panels=(pools.four_numbers(view), pools.cost_then(view), pools.capacity(view), pools.per_token(view)),
        ),
        Section(title="Weights and checkpoints", panels=(weights(view), on_disk(view), checkpoints(view))),
    ]


def alerts(view: View) -> house.Placed:
    """Which alerts fired when."""
    head = house.Head(
        title="Alerts that fired",
        reads="One lane per alert of this service, of any line: what broke first stands left.",
        good="empty.",
        unit="none",
        empty="no alert fired in this time range",
        links=(to(Dashboard.OVERVIEW, "The other lines at that time"),),
        height=house.HIGH,
    )
    return panels.states(
        head, [house.Query(expr=worst_firing(view, "alertname"), legend="{{alertname}}")], severities()
    )


def starts(view: View) -> house.Placed:
    """When engines started."""
    head = house.Head(
        title="Age of the engines",
        reads=(
            "Seconds since each engine's process started. A line that falls to 0 is a start; its pools are those of "
            "that start. Many small teeth are a crash loop."
        ),
        good="lines that only rise.",
        unit="s",
        empty="unknown: no start is known",
        links=(to(Dashboard.STARTUP, "How that start went"),),
        height=house.HIGH,
    )
    expr = f"time() - max{by(*view.replica)} ({view.of(series.ENGINE_START_TIME)})"
    return panels.lines(head, [house.Query(expr=expr, legend=REPLICA_LEGEND)])


def weights(view: View) -> house.Placed:
    """Resident weights per device."""
    head = house.Head(
        title="Weights in device memory",
        reads=(
            "Resident weights of both models, per device, the fullest rank. DSpark and DFlash do not load the "
            "drafter's embedding and head; EAGLE and MTP hold copies of them while the pool is sized."
        ),
        good="level, and the same after each start.",
        unit="bytes",
        empty="unknown: no start is read",
        links=runbook(view, ARTIFACTS_OVER),
    )
    expr = f"max by (artifact) ({view.of(series.WEIGHT_MEMORY_BYTES)})"
    return panels.lines(
        head,
        [house.Query(expr=expr, legend="{{artifact}}")],
        steps=True,
        stacked=True,
        overrides=house.coloured(colours.OF_ARTIFACT),
    )


def on_disk(view: View) -> house.Placed:
    """Checkpoints against the storage budget."""
    limits = [
        house.Query(
            expr=limit(view, ARTIFACTS, ARTIFACTS.budget(model)),
            legend=f"budget {model}",
            colour=colours.OF_ARTIFACT[model],
            dashed=True,
        )
        for model in Artifact
    ]
    head = house.Head(
        title="Weights on disk",
        reads="Loadable bytes of each checkpoint, by index and tensor headers, on a logarithmic axis. Dashed: budgets.",
        good="each below its own dashed line.",
        unit="bytes",
        empty="unknown: a checkpoint cannot be read",
        links=runbook(view, ARTIFACTS_OVER),
    )
    expr = f"max by (artifact) ({view.of(series.ARTIFACT_BYTES)})"
    # bytes are written in powers of two, so that only such an axis has round numbers
    logarithmic = house.override("byType", "number", {"custom.scaleDistribution": {"type": "log", "log": 2}})
    return panels.lines(
        head,
        [house.Query(expr=expr, legend="{{artifact}}"), *limits],
        steps=True,
        least=None,
        overrides=(*house.coloured(colours.OF_ARTIFACT), logarithmic),
    )


def checkpoints(view: View) -> house.Placed:
    """Which models were served in this time range."""
    labels = ("artifact", "architecture", "dtype", "fingerprint")
    seen = f"count{by(*labels)} (last_over_time({view.of(series.ARTIFACT_INFO)}[$__range]))"
    head = house.Head(
        title="Models served in this time range",
        reads="Each fingerprint that was seen, on how many replicas. Two of one model: it was replaced, or differs.",
        good="one row for the target and one for the drafter.",
        unit="none",
        empty="unknown: a checkpoint cannot be read",
        links=runbook(view, CHANGED, INCOMPLETE),
        width=house.FULL,
        height=6,
    )
    return panels.rows(
        head,
        [house.Query(expr=seen)],
        {"artifact": "Model", "architecture": "Architecture", "dtype": "Type", "fingerprint": "Fingerprint",
         "Value": "Replicas"},
        by_columns={"Model": panels.width(120), "Type": panels.width(120), "Replicas": panels.narrow(100)},
    )  # fmt: skip
