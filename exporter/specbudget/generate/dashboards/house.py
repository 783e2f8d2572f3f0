"""House defaults: what every panel of a kind looks like. A dashboard says only what is its own.

Written out here because the SDK's defaults are not ours: legends hidden, links in a menu, no reference ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from specbudget.domain.line_state import AT_RISK
from specbudget.generate.dashboards import colours
from specbudget.generate.dashboards.sdk import builders, common, common_builders, models, prometheus, prometheus_models
from specbudget.generate.dashboards.view import datasource

FULL, TWO_THIRDS, HALF, THIRD, QUARTER, SIXTH = 24, 16, 12, 8, 6, 4
"""Widths in columns of the 24 that a dashboard has; a sixth is 210 pixels on a laptop."""

LOW, MIDDLE, HIGH = 4, 8, 10
"""Heights in rows of 30 pixels: a number, a graph, a graph that many look at."""

NO_SIDECAR = "unknown: no sidecar says"
"""The text where nothing is there because nobody told; unknown is never drawn as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query of a panel. `colour` fixes its colour; `dashed` draws a limit or a reference; `unit` if another.

    `links` are data links of its value.
    """

    expr: str
    legend: str = "__auto"
    colour: str | None = None
    dashed: bool = False
    unit: str | None = None
    links: tuple[models.DashboardLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every panel says: title, how it is read, what good looks like, and what stands there when nothing does."""

    title: str
    reads: str
    good: str
    unit: str
    empty: str = NO_SIDECAR
    links: tuple[models.DashboardLink, ...] = ()
    width: int = HALF
    height: int = MIDDLE

    @property
    def description(self) -> str:
        """The text behind the panel's "i"."""
        return f"{self.reads}\n\n**Good:** {self.good}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A panel and the room that it wants, in columns and rows."""

    panel: models.Panel
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a panel does with its queries: instant or over time, as series, table or heat map."""

    instant: bool = False
    format: prometheus_models.PromQueryFormat = prometheus_models.PromQueryFormat.TIME_SERIES
    overrides: tuple[models.DashboardFieldConfigSourceOverrides, ...] = ()
    transformations: tuple[models.DataTransformerConfig, ...] = field(default=())
    interval: str | None = None


def finished(panel: models.Panel, head: Head, queries: Sequence[Query], look: Look) -> Placed:
    """The panel with all that is the same for every kind."""
    panel.title, panel.description = head.title, head.description
    panel.datasource = datasource()
    panel.links = list(head.links) or None
    panel.targets = [_target(query, ref, look) for query, ref in zip(queries, ascii_uppercase, strict=False)]
    panel.transformations = list(look.transformations) or None
    panel.interval = look.interval
    config = panel.field_config if panel.field_config is not None else models.FieldConfigSource()
    config.defaults.unit, config.defaults.no_value = head.unit, head.empty
    own = [
        override("byFrameRefID", ref, found)
        for query, ref in zip(queries, ascii_uppercase, strict=False)
        if (found := _of_query(query))
    ]
    config.overrides = [*config.overrides, *own, *look.overrides]
    panel.field_config = config
    return Placed(panel=panel, width=head.width, height=head.height)


def _target(query: Query, ref: str, look: Look) -> prometheus_models.Dataquery:
    made = prometheus.Dataquery().ref_id(ref).expr(query.expr).legend_format(query.legend).format(look.format)
    made = made.datasource(datasource()).editor_mode(prometheus_models.QueryEditorMode.CODE)
    return (made.instant() if look.instant else made.range()).build()


def _of_query(query: Query) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    if query.colour is not None:
        found["color"] = fixed(query.colour)
    if query.dashed:
        found |= DASHED
    if query.unit is not None:
        found["unit"] = query.unit
    if query.links:
        found["links"] = list(query.links)
    return found


DASHED: Mapping[str, Any] = {
    "custom.lineStyle": {"fill": "dash", "dash": [10, 8]},
    "custom.lineWidth": 2,
    "custom.fillOpacity": 0,
    "custom.showPoints": "never",
    # a limit is no part of a stack
    "custom.stacking": {"mode": "none", "group": "limit"},
}


def fixed(colour: str) -> dict[str, str]:
    """A colour that stays whatever the value."""
    return {"mode": "fixed", "fixedColor": colour}


def override(
    matcher: str, options: object, properties: Mapping[str, Any]
) -> models.DashboardFieldConfigSourceOverrides:
    """Settings of the fields that a matcher finds."""
    return models.DashboardFieldConfigSourceOverrides(
        matcher=models.MatcherConfig(id_val=matcher, options=options),
        properties=[models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()],
    )


def coloured(by_name: Mapping[str, str]) -> tuple[models.DashboardFieldConfigSourceOverrides, ...]:
    """Fixed colours of series by the name that their legend gives them."""
    return tuple(override("byName", str(name), {"color": fixed(colour)}) for name, colour in by_name.items())


def steps(*marks: tuple[float | None, str]) -> builders.ThresholdsConfig:
    """Colours from a value on; the first mark is None."""
    found = [models.Threshold(value=value, color=colour) for value, colour in marks]
    return builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(found)


def used_ratio() -> builders.ThresholdsConfig:
    """The marks of every used ratio: at risk, breach."""
    return steps((None, colours.OK), (AT_RISK, colours.AT_RISK), (1.0, colours.BREACH))


def plain(colour: str) -> builders.ThresholdsConfig:
    """One colour for every value: where no number is good or bad by itself."""
    return steps((None, colour))


def words(of_number: Iterable[tuple[float, str, str]]) -> list[models.ValueMapping]:
    """Texts and colours of numbers that stand for words: (number, word, colour)."""
    options = {
        f"{number:g}": models.ValueMappingResult(text=text, color=colour, index=place)
        for place, (number, text, colour) in enumerate(of_number)
    }
    return [models.ValueMap(options=options)]


def none_is_quiet() -> list[models.ValueMapping]:
    """Of a number that counts what went wrong, 0 says nothing and has no colour of its own."""
    return words([(0.0, "0", colours.QUIET)])


def named(of_word: Mapping[str, tuple[str, str | None]]) -> list[models.ValueMap]:
    """Texts and colours of words: word → (text, colour)."""
    options = {
        word: models.ValueMappingResult(text=text, color=colour, index=place)
        for place, (word, (text, colour)) in enumerate(of_word.items())
    }
    return [models.ValueMap(options=options)]


def legend(*, table: bool = False) -> common_builders.VizLegendOptions:
    """A legend is always shown; as a table it tells the last, smallest and largest value."""
    made = common_builders.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM)
    if not table:
        return made.display_mode(common.LegendDisplayMode.LIST).calcs([])
    return made.display_mode(common.LegendDisplayMode.TABLE).calcs(["lastNotNull", "min", "max"])
