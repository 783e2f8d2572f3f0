"""A length over time as levels: where it changed by more than chance would change it.

Greedy binary segmentation: the border that explains most is taken first, then each side is looked at again
(Scott and Knott 1974); where no single border does, the stretch inside that does. Noise is estimated from
neighbouring points, which a step or two do not disturb.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from specbudget.domain.acceptance import Floats, acceptance_length

MIN_STEPS = 500.0
"""Verify steps of a level: with fewer a length of 3 is off by 0.1 and more by chance."""
CHANGE = 0.06
"""Levels that lie closer together than this share are one."""
CERTAIN = 30.0
"""So many times the variance of chance, squared deviations: about 5.5 standard errors, as many borders are tried."""
LEAST_VARIANCE = 4.0
"""Of the tokens of one verify step, at least; requests of the same kind vary together, so the estimate is larger."""
FEW_POINTS = 8
VARIANCE_OF_FEW = 16.0
"""Of so few points noise cannot be told from steps; this is what mixed traffic has."""
MOST_LEVELS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A stretch of points, `first` to `last`, with its verify steps and accepted drafts."""

    first: int
    last: int
    steps: float
    accepted: float

    @property
    def length(self) -> float:
        """Acceptance length of the stretch; it has steps."""
        return acceptance_length(self.accepted, self.steps) or 1.0


def levels(steps: Floats, accepted: Floats) -> list[Level]:
    """The levels of points with verify steps and accepted drafts, in order; points without steps belong to none.

    NaN is no step. Empty where all points together have fewer than MIN_STEPS.
    """
    places = np.flatnonzero(np.nan_to_num(steps) > 0)
    weight, sums = steps[places], np.nan_to_num(accepted[places])
    if not len(places) or weight.sum() < MIN_STEPS:
        return []
    variance = _variance(weight, 1.0 + sums / weight)
    total_weight = np.append(0.0, np.cumsum(weight))
    total_sums = np.append(0.0, np.cumsum(sums))
    borders, open_parts = [0, len(places)], [(0, len(places))]
    while open_parts and len(borders) <= MOST_LEVELS:
        begin, end = open_parts.pop(0)
        border = _border(total_weight, total_sums, begin, end, variance)
        new = [border] if border is not None else _stretch(total_weight, total_sums, begin, end, variance)
        borders += new
        if new:
            open_parts += pairwise([begin, *new, end])
    borders.sort()
    return [
        Level(
            first=int(places[begin]),
            last=int(places[end - 1]),
            steps=float(total_weight[end] - total_weight[begin]),
            accepted=float(total_sums[end] - total_sums[begin]),
        )
        for begin, end in pairwise(borders)
    ]


def _variance(weight: Floats, lengths: Floats) -> float:
    """The variance of one step's tokens, from how neighbours differ; a step of the level disturbs one pair only.

    A low quantile, not the middle: of a few points one pair in two may hold a step.
    """
    if len(weight) < FEW_POINTS:
        return VARIANCE_OF_FEW
    differences = np.diff(lengths) ** 2 / (1.0 / weight[1:] + 1.0 / weight[:-1])
    # a quarter of all squared standard normals lie below 0.1015
    return max(LEAST_VARIANCE, float(np.quantile(differences, 0.25)) / 0.1015)


def _border(weight: Floats, sums: Floats, begin: int, end: int, variance: float) -> int | None:
    places = np.arange(begin + 1, end)
    if not len(places):
        return None
    before, after = weight[places] - weight[begin], weight[end] - weight[places]
    allowed = (before >= MIN_STEPS) & (after >= MIN_STEPS)
    if not allowed.any():
        return None
    safe_before, safe_after = np.maximum(before, 1.0), np.maximum(after, 1.0)
    low = (sums[places] - sums[begin]) / safe_before
    high = (sums[end] - sums[places]) / safe_after
    gain = np.where(allowed, (high - low) ** 2 / (1.0 / safe_before + 1.0 / safe_after), -1.0)
    best = int(gain.argmax())
    if gain[best] < CERTAIN * variance:
        return None
    smaller, larger = sorted((1.0 + low[best], 1.0 + high[best]))
    return int(places[best]) if larger - smaller >= CHANGE * larger else None


def _stretch(weight: Floats, sums: Floats, begin: int, end: int, variance: float) -> list[int]:
    """The borders of a stretch inside that differs from both its sides alike; no single border can show it.

    Stretches of growing sizes are tried at each place (circular binary segmentation, Olshen and others 2004).
    """
    best, found = CERTAIN * variance, (0, 0)
    size, whole = 1, end - begin
    while size < whole:
        first = np.arange(begin, end - size + 1)
        inside = weight[first + size] - weight[first]
        outside = weight[end] - weight[begin] - inside
        allowed = (inside >= MIN_STEPS) & (outside >= MIN_STEPS)
        low = (sums[first + size] - sums[first]) / np.maximum(inside, 1.0)
        high = (sums[end] - sums[begin] - (sums[first + size] - sums[first])) / np.maximum(outside, 1.0)
        gain = np.where(
            allowed, (high - low) ** 2 / (1.0 / np.maximum(inside, 1.0) + 1.0 / np.maximum(outside, 1.0)), 0
        )
        place = int(gain.argmax())
        smaller, larger = sorted((1.0 + low[place], 1.0 + high[place]))
        if gain[place] > best and larger - smaller >= CHANGE * larger:
            best, found = float(gain[place]), (int(first[place]), int(first[place]) + size)
        size = max(size + 1, size * 5 // 4)
    return [border for border in found if begin < border < end] if found != (0, 0) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """A stretch in which the length lay well below what it was before.

    `before` is the level that it fell from, `during` everything from the point `first` to `last`. `lasting`: it had
    not come back at the last point that has steps.
    """

    before: Level
    during: Level
    lasting: bool


FALL = 0.1
"""A length that fell by less than this share is no matter for a review."""


def worst_fall(found: list[Level], earlier: Level | None = None) -> Fall | None:
    """The fall that cost most tokens: the deficit against the best level before it, times its verify steps.

    `earlier` is what was counted before the first point, where that is worth comparing with. None without a fall.
    """
    chain = ([earlier] if earlier is not None else []) + found
    worst: tuple[float, int, Level] | None = None
    for place, level in enumerate(chain[1:], 1):
        best = max(chain[:place], key=lambda other: other.length)
        cost = (best.length - level.length) * level.steps
        if level.length <= (1 - FALL) * best.length and (worst is None or cost > worst[0]):
            worst = (cost, place, best)
    if worst is None:
        return None
    _, place, best = worst
    half = (best.length + chain[place].length) / 2
    first = last = place
    begin = next(i for i, level in enumerate(chain) if level is best)
    while first - 1 > begin and chain[first - 1].length <= half:
        first -= 1
    while last + 1 < len(chain) and chain[last + 1].length <= half:
        last += 1
    run = chain[first : last + 1]
    during = Level(
        first=run[0].first,
        last=run[-1].last,
        steps=sum(level.steps for level in run),
        accepted=sum(level.accepted for level in run),
    )
    return Fall(before=best, during=during, lasting=last == len(chain) - 1)
