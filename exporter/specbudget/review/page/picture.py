"""A review as one picture, for a chat or a ticket: what happened in words, memory and acceptance on one time axis."""

from __future__ import annotations

import io
import math
import textwrap
from datetime import UTC, datetime

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from specbudget.catalog.alerts import Severity
from specbudget.review.model import Review
from specbudget.review.page.charts import scale, sections
from specbudget.review.page.parts import Chart
from specbudget.review.page.thinned import Thinned
from specbudget.review.page.words import figure as in_words
from specbudget.review.page.words import moment, stretch

WIDTH, DOTS = 12.0, 130
"""Inches and dots per inch: 1,560 pixels across."""

WANTED = ("acceptance", "fill", "load")
"""Charts beneath the memory graph, where they are there."""

MOST_FINDINGS = 3
SIGNS = 118
"""Signs on a line of the words."""

COLOURS: dict[int | str, str] = {
    1: "#14609c", 2: "#c2570c", 3: "#0b7a6b", 4: "#6b4fa8", 5: "#8a6d00", 6: "#a33b74", 7: "#5c666e", 8: "#1b2126",
    "target": "#0a6655", "limit": "#a8201a",
}  # fmt: skip
"""The light theme of assets/theme.css; a test compares them."""

BAD, INK = "#fbe5e1", "#1b2126"


def picture(review: Review) -> bytes:
    """A PNG."""
    thin = scale(review)
    charts = {chart.id: chart for section in sections(review, thin) for chart in section.charts}
    device = next((chart for id_, chart in charts.items() if id_.startswith("device-")), None)
    drawn = [chart for chart in (device, *(charts.get(id_) for id_ in WANTED)) if chart is not None]
    lines = _words(review)
    words_height = 0.45 + 0.24 * len(lines)
    heights = [3.4 if chart.stack else 2.3 for chart in drawn]
    page = Figure(figsize=(WIDTH, words_height + sum(heights) + 0.4), dpi=DOTS, facecolor="white")
    whole = float(page.get_figheight())
    for number, (text, bold) in enumerate(lines):
        at = 1 - (0.3 + 0.24 * number) / whole
        # a dollar sign in words of an engine is no formula
        page.text(0.04, at, text, fontsize=12 if bold else 9.5, weight="bold" if bold else "normal", color=INK,
                  va="center", parse_math=False)  # fmt: skip
    top = whole - words_height
    for chart, height in zip(drawn, heights, strict=True):
        axes = page.add_axes((0.085, (top - height + 0.5) / whole, 0.66, (height - 0.75) / whole))
        _draw(axes, chart, review, thin)
        top -= height
    out = io.BytesIO()
    page.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()


def _words(review: Review) -> list[tuple[str, bool]]:
    took = stretch(review.start, review.end)
    lines = [(f"{review.service}: {moment(review.start)} to {moment(review.end)} UTC, {took}", False)]
    for number, finding in enumerate(review.findings[:MOST_FINDINGS]):
        lines += [(text, number == 0) for text in textwrap.wrap(finding.title, SIGNS - 22 if number == 0 else SIGNS)]
        for said in finding.evidence[: 2 if number == 0 else 1]:
            lines += [
                (text, False) for text in textwrap.wrap(said, SIGNS, initial_indent="  · ", subsequent_indent="    ")
            ]
    if len(review.findings) > MOST_FINDINGS:
        lines.append((f"{len(review.findings) - MOST_FINDINGS} more findings stand in the report.", False))
    return lines


def _draw(axes: Axes, chart: Chart, review: Review, thin: Thinned) -> None:
    times = [datetime.fromtimestamp(at, UTC) for at in thin.times]
    for alert in review.alerts or ():
        if alert.severity == Severity.PAGE:
            begin, end = (datetime.fromtimestamp(at, UTC) for at in (alert.start, alert.end))
            axes.axvspan(begin, end, color=BAD, linewidth=0, zorder=0)  # type: ignore[arg-type]
    if chart.stack:
        values = [line.values for line in chart.lines if line.shown]
        areas = axes.stackplot(times, values, labels=[line.label for line in chart.lines if line.shown])  # type: ignore[arg-type]
        for area, line in zip(areas, (line for line in chart.lines if line.shown), strict=True):
            own = COLOURS[line.colour]
            area.set(facecolor=_paler(own) if line.hatch else own, edgecolor=own, hatch="///" if line.hatch else None)
    for line in () if chart.stack else chart.lines:
        if line.shown:
            style = (0, tuple(part / 2 for part in line.dash)) if line.dash else "-"
            axes.plot(times, line.values, label=line.label, color=COLOURS[line.colour], linestyle=style, linewidth=1.7)  # type: ignore[arg-type]
    for label, value in chart.rules:
        axes.axhline(value, color=COLOURS["limit"], linewidth=1.4, label=label)
    for mark in review.marks:
        if review.start <= mark.at <= review.end:
            axes.axvline(datetime.fromtimestamp(mark.at, UTC), color=INK, linewidth=0.7, alpha=0.6)  # type: ignore[arg-type]
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]
    if chart.format == "bytes":
        axes.yaxis.set_major_locator(MultipleLocator(2 ** math.ceil(math.log2(max(axes.get_ylim()[1], 8) / 8))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: in_words(value, chart.format)))
    axes.set_xlim(datetime.fromtimestamp(review.start, UTC), datetime.fromtimestamp(review.end, UTC))  # type: ignore[arg-type]
    axes.set_ylim(bottom=chart.low)
    axes.set_title(chart.title, loc="left", fontsize=10, weight="bold", color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(color="#e6e2d8", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False, reverse=chart.stack)


def _paler(colour: str) -> tuple[float, ...]:
    return tuple(1 - 0.35 * (1 - part) for part in to_rgb(colour))
