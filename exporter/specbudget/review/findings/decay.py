"""Whether the length fell steadily, as against a step: the rule of the sidecar, over every part of the stretch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specbudget.domain.acceptance import Floats, acceptance_length
from specbudget.domain.suspects import MIN_STEPS
from specbudget.domain.trend import Trend, TrendPoint, trend
from specbudget.review.model import Review

TREND_SLOTS = 60
"""Points of a trend at most: each then has steps enough."""
SHORTEST_TREND = 0.3
"""A decay goes on over at least this share of the stretch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A line through a stretch of points."""

    line: Trend
    start: float
    end: float


def steady_fall(review: Review, steps: Floats, accepted: Floats) -> Steady | None:
    """The largest steady fall within the stretch that did not come back by itself."""
    size = max(1, -(-len(steps) // TREND_SLOTS))
    edges = np.arange(0, len(steps), size)
    weight, sums = np.add.reduceat(np.nan_to_num(steps), edges), np.add.reduceat(np.nan_to_num(accepted), edges)
    points = [
        TrendPoint(hours=float(edge) * review.step / 3600.0, length=acceptance_length(a, w) or 1.0, steps=float(w))
        for edge, w, a in zip(edges.tolist(), weight.tolist(), sums.tolist(), strict=True)
        if w >= MIN_STEPS
    ]
    least = max(5, int(SHORTEST_TREND * len(points)))
    best: Steady | None = None
    for begin in range(0, max(1, len(points) - least), max(1, len(points) // 12)):
        for end in range(len(points), begin + least - 1, -max(1, len(points) // 12)):
            found = trend(points[begin:end])
            if found is None or not found.is_decay:
                continue
            later = [point.length for point in points[end:]]
            came_back = bool(later) and float(np.median(later)) > (found.first + found.last) / 2
            if not came_back and (best is None or found.first - found.last > best.line.first - best.line.last):
                first, last = (review.axis.start + point.hours * 3600 for point in (points[begin], points[end - 1]))
                best = Steady(line=found, start=first, end=last)
    return best
