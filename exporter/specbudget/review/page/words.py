"""Words and forms of the report that are no chart's own."""

from __future__ import annotations

import math
import time

from specbudget.catalog.lines import LINES
from specbudget.review.model import SIDECAR_LINE
from specbudget.words import count, seconds, size

LINE_TITLES = {line.id: line.title for line in LINES} | {SIDECAR_LINE: "Sidecar"}


def moment(at: float) -> str:
    """A moment with its day, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))


def clock(at: float, like: float) -> str:
    """A moment, without its day where that is the day of `like`."""
    form = "%H:%M:%S" if time.gmtime(at)[:3] == time.gmtime(like)[:3] else "%Y-%m-%d %H:%M:%S"
    return time.strftime(form, time.gmtime(at))


def iso(at: float) -> str:
    """A moment for a machine that reads the page."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def stretch(start: float, end: float) -> str:
    """How long something took; the largest two units that say it."""
    whole = max(0.0, end - start)
    if whole < 3 * 3600:
        return seconds(whole)
    days, rest = divmod(round(whole / 3600), 24)
    return f"{days} d {rest} h" if days else f"{whole / 3600:.1f} h"


def figure(value: float, form: str) -> str:
    """A value in the format of its chart."""
    if not math.isfinite(value):
        return "not known"
    if form == "bytes":
        return size(value)
    if form == "ratio":
        return f"{value * 100:.1f}\u00a0%"
    if form == "times":
        return f"{value:.2f}\u00a0×"
    return f"{value:.2f}" if form == "length" else count(value)
