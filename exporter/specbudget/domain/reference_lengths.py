"""Acceptance lengths measured before a rollout, and what share of requests reached which."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLengths:
    """One kind of traffic, measured.

    `length` is the ratio of sums over all verify steps, the bonus token included. `lengths` are the acceptance
    lengths of single requests in ascending order, where they are known; else `quantiles` may hold a few points as
    (share of requests below, length), rising in both.
    """

    length: float
    verify_steps: int | None = None
    lengths: Sequence[float] = ()
    quantiles: tuple[tuple[float, float], ...] = ()

    @property
    def requests(self) -> int | None:
        """Requests behind it; None where only sums or quantiles are known."""
        return len(self.lengths) or None

    @property
    def longest(self) -> float:
        """The largest length that it tells of."""
        return max((self.length, *self.lengths[-1:], *(length for _, length in self.quantiles[-1:])))

    def reached_by(self, share: float) -> tuple[float, float] | None:
        """The length that `share` of the requests reach, as an interval; None where nothing tells.

        From single requests it is one value: the largest length that at least that share has or exceeds. From
        quantiles it lies between the neighbouring points; below the first point only 1 is sure.
        """
        if self.lengths:
            needed = min(len(self.lengths), max(1, math.ceil(share * len(self.lengths) - 1e-9)))
            length = self.lengths[len(self.lengths) - needed]
            return length, length
        if not self.quantiles:
            return None
        below = 1.0 - share
        points = [point for point, _ in self.quantiles]
        place = bisect_left(points, below - 1e-9)
        if place < len(points) and abs(points[place] - below) < 1e-6:
            return self.quantiles[place][1], self.quantiles[place][1]
        low = self.quantiles[place - 1][1] if place > 0 else 1.0
        high = self.quantiles[place][1] if place < len(points) else math.inf
        return low, high

    def share_reaching(self, length: float) -> float | None:
        """The share of requests with at least that length; None where single requests are not known."""
        if not self.lengths:
            return None
        return 1.0 - bisect_left(self.lengths, length) / len(self.lengths)
