"""Whether a length falls steadily over time, as against a step or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_FEWEST_POINTS = 5
_SHORTEST_HOURS = 5 / 60
_LEAST_DROP = 0.08
_STRAIGHT = -0.85
_LARGEST_STEP = 0.6
_MOST_POINTS = 24
"""More points than these are pooled: the chance of single minutes would hide a fall that takes hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """The acceptance length of one slot of time: its middle in hours from any origin, and its verify steps."""

    hours: float
    length: float
    steps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A least-squares line through points. `first` and `last` are its ends; `correlation` is -1 to 1.

    `largest_step` is the largest fall between neighbours as a share of the fall from end to end, 0 without one;
    between every other point where points were pooled, since a step within a pool shows on both of its sides.
    """

    slope_per_hour: float
    hours: float
    first: float
    last: float
    correlation: float
    largest_step: float

    @property
    def is_decay(self) -> bool:
        """A fall of 8 % and more that goes on over the points; a step from one level to another is none."""
        if self.hours < _SHORTEST_HOURS or self.first - self.last < _LEAST_DROP * self.first:
            return False
        return self.correlation <= _STRAIGHT and self.largest_step <= _LARGEST_STEP


def slope_per_hour(points: Sequence[TrendPoint]) -> float | None:
    """Least-squares slope of the length, per hour; None with fewer than two points in time."""
    if len({point.hours for point in points}) < 2:
        return None
    hours = np.array([point.hours for point in points])
    lengths = np.array([point.length for point in points])
    centred = hours - hours.mean()
    return float(centred @ (lengths - lengths.mean()) / (centred @ centred))


def trend(points: Sequence[TrendPoint], *, min_steps: float = 1.0) -> Trend | None:
    """The line through the points that have `min_steps` verify steps; None with fewer than five of them."""
    kept = sorted((point for point in points if point.steps >= min_steps), key=lambda point: point.hours)
    size = -(-len(kept) // _MOST_POINTS)
    if size > 1:
        kept = [_pooled(kept[place : place + size]) for place in range(0, len(kept), size)]
    apart = 2 if size > 1 else 1
    slope = slope_per_hour(kept) if len(kept) >= _FEWEST_POINTS else None
    if slope is None:
        return None
    hours = np.array([point.hours for point in kept])
    lengths = np.array([point.length for point in kept])
    span = float(hours[-1] - hours[0])
    middle, mean = float(hours.mean()), float(lengths.mean())
    spread = float(lengths.std())
    fall = float(lengths[0] - lengths[-1])
    step = float((lengths[:-apart] - lengths[apart:]).max())
    return Trend(
        slope_per_hour=slope,
        hours=span,
        first=mean + slope * (float(hours[0]) - middle),
        last=mean + slope * (float(hours[-1]) - middle),
        correlation=slope * float(hours.std()) / spread if spread > 0 else 0.0,
        largest_step=step / fall if fall > 0 and step > 0 else 0.0,
    )


def _pooled(points: Sequence[TrendPoint]) -> TrendPoint:
    """Neighbours as one point, whose length is their ratio of sums."""
    steps = sum(point.steps for point in points)
    return TrendPoint(
        hours=sum(point.hours for point in points) / len(points),
        length=sum(point.length * point.steps for point in points) / steps,
        steps=steps,
    )
