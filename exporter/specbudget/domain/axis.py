"""A time axis of equal steps, and what is read on it: labelled rows of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from specbudget.domain.acceptance import Floats

Labels = tuple[tuple[str, str], ...]
"""Labels of a row, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """`count` points, the first at `start`, `step` seconds apart. Seconds since the epoch."""

    start: float
    step: float
    count: int

    @property
    def times(self) -> Floats:
        """The points."""
        points: Floats = self.start + self.step * np.arange(self.count, dtype=np.float64)
        return points

    @property
    def end(self) -> float:
        """The last point."""
        return self.start + self.step * (self.count - 1)


def axis_over(start: float, end: float, step: float) -> Axis:
    """The axis of the points that are whole multiples of `step` from `start` on, up to the first at or after `end`.

    Whole multiples, so that two reviews that overlap look at the same points.
    """
    first = math.ceil(start / step)
    last = max(first, math.ceil(end / step))
    return Axis(start=first * step, step=step, count=last - first + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One series on an axis. NaN stands where it has no value."""

    labels: Mapping[str, str]
    values: Floats
