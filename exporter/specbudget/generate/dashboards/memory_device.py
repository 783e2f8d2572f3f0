"""Device memory at engine start, split by use: of each rank, and over starts."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.memory import SHRANK
from specbudget.catalog.memory_names import PART_NAMES
from specbudget.catalog.promql import equals
from specbudget.domain.device_memory import MemoryPart
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.sdk import models
from specbudget.generate.dashboards.view import View

LANE = "device\\use"
NOT_SPLIT = "unknown: no start of this engine was read"


def by_rank(view: View) -> house.Placed:
    """One bar per replica and rank."""
    head = house.Head(
        title="Device memory at engine start, by rank",
        reads=(
            "One bar per data-parallel rank, of its fullest device. Blue is the target's, orange the drafter's, grey "
            "nobody's: free, and other (context, communication buffers, activations), which is absent where the total "
            "is not known."
        ),
        good="bars alike, and a little that is free.",
        unit="bytes",
        empty=NOT_SPLIT,
        links=runbook(view, SHRANK),
        height=house.HIGH,
    )
    memory = view.of(series.DEVICE_MEMORY_BYTES)
    # the blank that a missing pod leaves is taken away
    joined = f'label_join({memory}, "device", " ", "pod", "instance", "rank")'
    expr = f'max by (device, use) (label_replace({joined}, "device", "$1", "device", " *(.*)"))'
    as_bars = models.DataTransformerConfig(
        id_val="groupingToMatrix",
        options={"columnField": "use", "rowField": "device", "valueField": "Value", "emptyValue": "null"},
    )
    names = {part.value: PART_NAMES[part] for part in MemoryPart}
    order = {part.value: place for place, part in enumerate(MemoryPart, start=1)}
    # groupingToMatrix names the first column after both fields
    in_order = models.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": {}, "indexByName": {LANE: 0, **order}, "renameByName": {LANE: "Device", **names}},
    )
    return panels.bars(
        head,
        [house.Query(expr=expr)],
        lane="Device",
        transformations=(as_bars, in_order),
        overrides=house.coloured({PART_NAMES[part]: colours.OF_MEMORY[part] for part in MemoryPart}),
    )


def over_time(view: View) -> house.Placed:
    """How the split changed from start to start."""
    head = house.Head(
        title="Device memory by use, over starts",
        reads=(
            "The same over time, the largest of each part among the ranks that are chosen: choose one replica and "
            "rank for one device. It changes only when an engine starts; a step without a start in sight is another "
            "replica."
        ),
        good="the same stack before and after a start.",
        unit="bytes",
        empty=NOT_SPLIT,
        links=runbook(view, SHRANK),
        height=house.HIGH,
    )
    queries = [
        house.Query(
            expr=f"max ({view.of(series.DEVICE_MEMORY_BYTES, equals('use', part))})",
            legend=PART_NAMES[part],
            colour=colours.OF_MEMORY[part],
        )
        for part in MemoryPart
    ]
    return panels.lines(head, queries, stacked=True, steps=True)
