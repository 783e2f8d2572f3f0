"""Traffic as groups with steps and accepted drafts: what length to expect of it, and why that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specbudget.domain.acceptance import Floats, acceptance_length

LENGTH_BIN = 0.1
"""Width of the bins of a histogram of requests by length; the first begins at 1.0."""

_SMALLEST_GROUP = 0.05
_LEAST_REQUESTS = 40
_LEAST_SHIFT = 0.2
_STABLE = 0.35
_CLEARLY_TWO = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Verify steps, the drafts accepted in them, and the requests they belong to (0 where nobody counted)."""

    steps: float
    accepted: float
    requests: float = 0.0

    @property
    def length(self) -> float | None:
        """Acceptance length; None without a step."""
        return acceptance_length(self.accepted, self.steps)


def expected_length(shares: Mapping[str, float], lengths: Mapping[str, float]) -> float | None:
    """The length to expect of traffic whose profiles keep their own lengths: their mean weighted by verify steps.

    `shares` are verify steps by profile (any unit), so this is the ratio of sums. None when no step is known, or
    when a profile with steps has no length of its own.
    """
    total = sum(share for share in shares.values() if share > 0)
    if total <= 0 or any(share > 0 and name not in lengths for name, share in shares.items()):
        return None
    return sum(share * lengths[name] for name, share in shares.items() if share > 0) / total


@dataclass(frozen=True, slots=True, kw_only=True)
class MixAndRate:
    """A change of the length, split: `mix` from moved shares, `rate` from the groups' own lengths."""

    before: float
    after: float
    mix: float
    rate: float

    @property
    def change(self) -> float:
        """after − before = mix + rate."""
        return self.after - self.before


def mix_and_rate(
    before: Mapping[str, Tally], after: Mapping[str, Tally], *, min_steps: float = 1.0
) -> MixAndRate | None:
    """Split a change into Σ Δshare × mean length and Σ Δlength × mean share, shares being of verify steps.

    A group that is on one side only keeps its length on the other. None with fewer than two groups or with fewer
    than `min_steps` steps on a side.
    """
    names = {name for side in (before, after) for name, tally in side.items() if tally.steps > 0}
    old_steps = sum(tally.steps for tally in before.values())
    new_steps = sum(tally.steps for tally in after.values())
    if len(names) < 2 or min(old_steps, new_steps) < max(min_steps, 1.0):
        return None
    mix = rate = old = new = 0.0
    for name in names:
        was, now = before.get(name), after.get(name)
        share_0 = 0.0 if was is None else was.steps / old_steps
        share_1 = 0.0 if now is None else now.steps / new_steps
        length_0 = None if was is None else was.length
        length_1 = None if now is None else now.length
        first = length_0 if length_0 is not None else length_1 or 0.0
        last = length_1 if length_1 is not None else first
        mix += (share_1 - share_0) * (first + last) / 2
        rate += (last - first) * (share_0 + share_1) / 2
        old += share_0 * first
        new += share_1 * last
    return MixAndRate(before=old, after=new, mix=mix, rate=rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Two groups of requests that kept their own lengths; `share_*` is of the lower one."""

    low: float
    high: float
    share_before: float
    share_after: float


def reweighted_groups(before: Sequence[float], after: Sequence[float]) -> Groups | None:
    """Whether two histograms of requests by length show the same two groups in other shares, the lower one grown.

    The bins are `LENGTH_BIN` wide from 1.0 on. The border between the groups is where it explains most of the
    variance of both histograms together (Otsu). None where there is one group only, a group is new or gone, or a
    group's own length moved.
    """
    size = max(len(before), len(after))
    old = np.pad(np.asarray(before, dtype=np.float64), (0, size - len(before)))
    new = np.pad(np.asarray(after, dtype=np.float64), (0, size - len(after)))
    if size < 2 or min(old.sum(), new.sum()) < _LEAST_REQUESTS:
        return None
    centres: Floats = 1.0 + LENGTH_BIN * (np.arange(size, dtype=np.float64) + 0.5)
    border = _border(old / old.sum() + new / new.sum(), centres)
    if border is None:
        return None
    share_0, share_1 = old[:border].sum() / old.sum(), new[:border].sum() / new.sum()
    if not all(_SMALLEST_GROUP <= share <= 1 - _SMALLEST_GROUP for share in (share_0, share_1)):
        return None
    if share_1 - share_0 < _LEAST_SHIFT:
        return None
    lows = [_mean(side[:border], centres[:border]) for side in (old, new)]
    highs = [_mean(side[border:], centres[border:]) for side in (old, new)]
    if abs(lows[1] - lows[0]) > _STABLE or abs(highs[1] - highs[0]) > _STABLE:
        return None
    return Groups(low=lows[1], high=highs[1], share_before=float(share_0), share_after=float(share_1))


def _mean(counts: Floats, centres: Floats) -> float:
    return float(counts @ centres / counts.sum())


def _border(counts: Floats, centres: Floats) -> int | None:
    """The first bin of the upper group; None unless two groups explain most of the variance."""
    weights = counts / counts.sum()
    mean = float(weights @ centres)
    variance = float(weights @ (centres - mean) ** 2)
    below = weights.cumsum()[:-1]
    moment = (weights * centres).cumsum()[:-1]
    inside = (below > 0) & (below < 1)
    if variance <= 0 or not inside.any():
        return None
    between = np.zeros_like(below)
    between[inside] = (mean * below[inside] - moment[inside]) ** 2 / (below[inside] * (1 - below[inside]))
    best = int(between.argmax())
    return best + 1 if between[best] >= _CLEARLY_TWO * variance else None
