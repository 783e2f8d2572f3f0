"""A curve beside a budget: how much of its limit was used, in the last hour or as far back as is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specbudget.serve.page.words import percent
from specbudget.serve.trends import SLOT_SECONDS, Samples

WIDTH, HEIGHT = 120.0, 28.0
POINTS = 60
LEAST_SLOTS = round(300 / SLOT_SECONDS)
"""A young curve does not begin as a single point at the edge: it has at least five minutes of room."""

LEAST_TOP, MOST_TOP = 1.25, 2.5
"""The limit is always in the picture, and one wild value does not flatten the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """Path data in a box of WIDTH × HEIGHT, the height of the limit, the newest point, and all of it in words."""

    path: str
    limit_y: float
    last: tuple[float, float] | None
    words: str


def spark(ratios: Samples) -> Spark:
    """Of used ratios, oldest first, NaN where nothing is known. Each point is the worst of its part of the time."""
    known_slots = np.flatnonzero(~np.isnan(ratios))
    slots = max(LEAST_SLOTS, len(ratios) - int(known_slots[0])) if known_slots.size else len(ratios)
    parts = [part[~np.isnan(part)] for part in np.array_split(ratios[-slots:], POINTS)]
    worst = [float(part.max()) if part.size else None for part in parts]
    known = [value for value in worst if value is not None]
    top = min(MOST_TOP, max(LEAST_TOP, *(1.05 * value for value in known))) if known else LEAST_TOP

    def place(index: int, value: float) -> tuple[float, float]:
        height = min(value, top) / top * (HEIGHT - 2)
        return round(index * WIDTH / (POINTS - 1), 1), round(HEIGHT - 1 - height, 1)

    steps, pen_down, last = [], False, None
    for index, value in enumerate(worst):
        if value is None:
            pen_down = False
            continue
        last = place(index, value)
        steps.append(f"{'L' if pen_down else 'M'}{last[0]:g} {last[1]:g}")
        pen_down = True
    return Spark(
        path=" ".join(steps),
        limit_y=place(0, 1.0)[1],
        last=last,
        words=_words(known, slots * SLOT_SECONDS),
    )


def _words(known: list[float], span: float) -> str:
    if not known:
        return "no value in the last hour"
    last_time = "last hour" if span >= 3600 else f"last {span / 60:.0f} minutes"
    least, most, last = (_share(value) for value in (min(known), max(known), known[-1]))
    if least == most:
        return f"{last_time}: {last} of the limit throughout"
    return f"{last_time}: {least} to {most} of the limit, now {last}"


def _share(ratio: float) -> str:
    return percent(ratio, 0) if math.isfinite(ratio) else "more than any share"
