"""The kinds of panel, each with its house defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specbudget.generate.dashboards import colours
from specbudget.generate.dashboards.house import (
    Head,
    Look,
    Placed,
    Query,
    finished,
    fixed,
    legend,
    override,
)
from specbudget.generate.dashboards.sdk import (
    barchart,
    bargauge,
    builders,
    common,
    common_builders,
    heatmap,
    heatmap_models,
    models,
    prometheus_models,
    stat,
    statetimeline,
    table,
    timeseries,
)

Overrides = tuple[models.DashboardFieldConfigSourceOverrides, ...]
Transformations = tuple[models.DataTransformerConfig, ...]


def _tooltip() -> common_builders.VizTooltipOptions:
    multi = common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
    return multi.sort(common.SortOrder.DESCENDING)


def lines(
    head: Head,
    queries: Sequence[Query],
    *,
    stacked: bool = False,
    bars: bool = False,
    steps: bool = False,
    axis: str = "",
    least: float | None = 0.0,
    most: float | None = None,
    decimals: float | None = None,
    table_legend: bool = False,
    overrides: Overrides = (),
    interval: str | None = None,
) -> Placed:
    """Values over time. `steps`: gauges that hold until they change; `least` and `most` bound the axis softly."""
    made = timeseries.Panel().legend(legend(table=table_legend)).tooltip(_tooltip())
    made = made.line_width(2).fill_opacity(70 if stacked or bars else 0).show_points(common.VisibilityMode.AUTO)
    made = made.axis_label(axis).span_nulls(False)
    if bars:
        made = made.draw_style(common.GraphDrawStyle.BARS)
    if steps:
        made = made.line_interpolation(common.LineInterpolation.STEP_AFTER)
    if stacked:
        made = made.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL).group("stack"))
    if least is not None:
        made = made.axis_soft_min(least)
    if most is not None:
        made = made.axis_soft_max(most)
    if decimals is not None:
        made = made.decimals(decimals)
    return finished(made.build(), head, queries, Look(overrides=overrides, interval=interval))


def number(
    head: Head,
    queries: Sequence[Query],
    *,
    thresholds: builders.ThresholdsConfig,
    mappings: list[models.ValueMapping] | None = None,
    background: bool = False,
    trend: bool = False,
    named: bool = False,
    names_only: bool = False,
    decimals: float | None = None,
    overrides: Overrides = (),
) -> Placed:
    """One number, or a few side by side, of now. `background` colours the whole tile; `trend` draws the range.

    `named` writes the legend beside each number, `names_only` in place of it.
    """
    colour = common.BigValueColorMode.BACKGROUND_SOLID if background else common.BigValueColorMode.VALUE
    made = stat.Panel().color_mode(colour).thresholds(thresholds)
    made = made.graph_mode(common.BigValueGraphMode.AREA if trend else common.BigValueGraphMode.NONE)
    text = common.BigValueTextMode.VALUE_AND_NAME if named else common.BigValueTextMode.VALUE
    made = made.text_mode(common.BigValueTextMode.NAME if names_only else text)
    made = made.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    made = made.orientation(common.VizOrientation.VERTICAL if named else common.VizOrientation.AUTO)
    if mappings is not None:
        made = made.mappings(mappings)
    if decimals is not None:
        made = made.decimals(decimals)
    return finished(made.build(), head, queries, Look(instant=not trend, overrides=overrides))


def gauges(
    head: Head,
    queries: Sequence[Query],
    *,
    thresholds: builders.ThresholdsConfig,
    most: float | None = None,
    decimals: float | None = None,
    overrides: Overrides = (),
) -> Placed:
    """Horizontal bars of now, one below the other, in the order of the answer."""
    made = bargauge.Panel().orientation(common.VizOrientation.HORIZONTAL).thresholds(thresholds).min(0)
    made = made.display_mode(common.BarGaugeDisplayMode.BASIC).value_mode(common.BarGaugeValueMode.TEXT)
    made = made.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    made = made.legend(legend())
    if most is not None:
        made = made.max(most)
    if decimals is not None:
        made = made.decimals(decimals)
    return finished(made.build(), head, queries, Look(instant=True, overrides=overrides))


def states(head: Head, queries: Sequence[Query], mappings: list[models.ValueMapping]) -> Placed:
    """Which state held when, one lane per series; a gap is a time of which nothing is known."""
    made = statetimeline.Panel().legend(legend()).mappings(mappings).merge_values(True).row_height(0.9)
    made = made.show_value(common.VisibilityMode.AUTO).fill_opacity(85).line_width(0)
    # by thresholds Grafana would replace numbers by ranges before it looks for their words
    made = made.color_scheme(builders.FieldColor().mode(models.FieldColorModeId.FIXED).fixed_color(colours.UNKNOWN))
    made = made.tooltip(_tooltip())
    return finished(made.build(), head, queries, Look())


def shape(head: Head, query: Query, *, interval: str | None = None) -> Placed:
    """A histogram over time, from buckets."""
    colour = heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Viridis").steps(64)
    made = heatmap.Panel().color(colour).calculate(False).cell_gap(1).show_legend()
    made = made.y_axis(heatmap.YAxisConfig().unit(head.unit).axis_placement(common.AxisPlacement.LEFT))
    look = Look(format=prometheus_models.PromQueryFormat.HEATMAP, interval=interval)
    return finished(made.build(), head, [query], look)


def rows(
    head: Head,
    queries: Sequence[Query],
    columns: Mapping[str, str],
    *,
    worst_first: str | tuple[str, ...] = (),
    overrides: Overrides = (),
    by_columns: Mapping[str, Mapping[str, Any]] | None = None,
) -> Placed:
    """A table of now; rows that agree in the labels of all queries become one.

    `columns` are the fields that are shown, in order, with their titles: labels, and `Value #A` or, where there is
    one query, `Value`. `worst_first` are the titles to sort by, largest first. `by_columns` are settings by title.
    """
    made = table.Panel().show_header(True).cell_height(common.TableCellHeight.SM).filterable(True)
    if keys := (worst_first,) if isinstance(worst_first, str) else worst_first:
        made = made.sort_by([common_builders.TableSortByFieldState().display_name(key).desc(True) for key in keys])
    own = tuple(override("byName", title, found) for title, found in (by_columns or {}).items())
    look = Look(
        instant=True,
        format=prometheus_models.PromQueryFormat.TABLE,
        overrides=(*own, *overrides),
        transformations=_as_one_table(columns, merged=len(queries) > 1),
    )
    return finished(made.build(), head, queries, look)


def _as_one_table(columns: Mapping[str, str], *, merged: bool) -> Transformations:
    merge = (models.DataTransformerConfig(id_val="merge", options={}),) if merged else ()
    # first the columns that are shown, then their order and titles: labels of a fleet that nobody named stay away
    kept = {"include": {"names": list(columns)}}
    order = {"indexByName": {name: place for place, name in enumerate(columns)}, "renameByName": dict(columns)}
    return (
        *merge,
        models.DataTransformerConfig(id_val="filterFieldsByName", options=kept),
        models.DataTransformerConfig(id_val="organize", options={"excludeByName": {}, **order}),
    )


def bars(
    head: Head,
    queries: Sequence[Query],
    *,
    lane: str,
    transformations: Transformations,
    overrides: Overrides = (),
    horizontal: bool = False,
) -> Placed:
    """Stacked bars of now, one per value of the field `lane`."""
    made = barchart.Panel().x_field(lane).stacking(common.StackingMode.NORMAL).legend(legend()).tooltip(_tooltip())
    made = made.orientation(common.VizOrientation.HORIZONTAL if horizontal else common.VizOrientation.VERTICAL)
    made = made.fill_opacity(85).line_width(0).show_value(common.VisibilityMode.NEVER).axis_soft_min(0)
    made = made.bar_width(0.8).x_tick_label_max_length(40)
    look = Look(
        instant=True,
        format=prometheus_models.PromQueryFormat.TABLE,
        overrides=overrides,
        transformations=transformations,
    )
    return finished(made.build(), head, queries, look)


def cell(kind: str, **more: Any) -> dict[str, Any]:
    """How a column draws its cells."""
    return {"custom.cellOptions": {"type": kind, **more}}


def background() -> dict[str, Any]:
    """A cell that is filled with the colour of its value."""
    return cell("color-background", mode="basic")


def width(pixels: int) -> dict[str, Any]:
    """The width of a column."""
    return {"custom.width": pixels}


def narrow(pixels: int) -> dict[str, Any]:
    """A column of numbers or short words: nobody filters by them, and the button for it takes the title's room."""
    return {**width(pixels), "custom.filterable": False}


def at_least(pixels: int) -> dict[str, Any]:
    """A column that takes what room is left, but no less than this; otherwise it would be 150 pixels."""
    return {"custom.minWidth": pixels}


def invisible() -> dict[str, Any]:
    """A part of a stack that only pushes the next one to its place."""
    hidden = {"legend": True, "tooltip": True, "viz": False}
    return {"color": fixed("transparent"), "custom.hideFrom": hidden, "custom.fillOpacity": 0}
