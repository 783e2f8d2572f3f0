"""Tracks with fewer points, for a screen: thousands of points a line would only make the file large.

Each kind of figure is thinned as it is meant: a ratio from its sums, a fill by its highest value, a count by its sum.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specbudget.domain.acceptance import Floats
from specbudget.review.model import Axis

MOST_POINTS = 1500
"""More than a line on a wide screen has pixels for every one of several charts."""

SIGNIFICANT = 5
"""Digits that are kept; a chart's read-out shows fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """An axis of which `size` points at a time become one, shown at the first of them."""

    axis: Axis
    size: int

    @property
    def step(self) -> float:
        """Seconds between two points that are shown."""
        return self.axis.step * self.size

    @property
    def times(self) -> list[float]:
        """The points that are shown, seconds since the epoch."""
        return [float(at) for at in self.axis.times[:: self.size]]

    def peak(self, values: Floats | None) -> Floats | None:
        """The highest value of each stretch: what a pool or a batch had to hold."""
        return self._each(values, np.nanmax)

    def mean(self, values: Floats | None) -> Floats | None:
        """The mean of each stretch, for rates and for what seldom changes."""
        return self._each(values, np.nanmean)

    def total(self, values: Floats | None) -> Floats | None:
        """The sum of each stretch, for counts."""
        return self._each(values, np.nansum)

    def length(self, accepted: Floats | None, steps: Floats | None, otherwise: Floats | None) -> Floats | None:
        """1 + accepted / steps of each stretch; the mean of `otherwise` where the counts are not known."""
        summed, over = self.total(accepted), self.total(steps)
        if summed is None or over is None:
            return self.mean(otherwise)
        ratio: Floats = np.full(over.shape, np.nan)
        np.divide(summed, over, out=ratio, where=over > 0)
        return 1 + ratio

    def _each(self, values: Floats | None, how: Callable[..., Floats]) -> Floats | None:
        if values is None:
            return None
        if self.size == 1:
            return values
        rows = math.ceil(values.size / self.size)
        padded = np.full(rows * self.size, np.nan)
        padded[: values.size] = values
        table = padded.reshape(rows, self.size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a stretch of which nothing is known stays NaN
            found: Floats = how(table, axis=1)
        return np.where(np.isnan(table).all(axis=1), np.nan, found)


def thinned(axis: Axis, most: int = MOST_POINTS) -> Thinned:
    """The axis with at most `most` points."""
    return Thinned(axis=axis, size=max(1, math.ceil(axis.count / most)))


def told(values: Floats) -> list[float | None]:
    """Values for JSON: rounded, None where nothing is known."""
    return [_short(value) if math.isfinite(value) else None for value in values.tolist()]


def _short(value: float) -> float:
    rounded = float(f"{value:.{SIGNIFICANT}g}")
    return int(rounded) if rounded.is_integer() else rounded


def known(values: Floats | None) -> bool:
    """True when any value is known."""
    return values is not None and bool(np.isfinite(values).any())
