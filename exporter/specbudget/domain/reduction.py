"""How the samples of a stretch of time become one: in a review's axis, and in a history that grows old.

Both forms compose: the highest of the highest, the last of the last. So a review over samples that were thinned out
says what one over all of them would say at that step, which no mean without its count would.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from specbudget.domain.acceptance import Floats
from specbudget.domain.axis import Axis


class Reduction(StrEnum):
    """LAST for counters, states and facts; HIGHEST for what presses against a limit, where a peak is what counts."""

    LAST = "last"
    HIGHEST = "highest"


def on_axis(times: Floats, values: Floats, axis: Axis, reduction: Reduction, lookback: float) -> Floats:
    """The values on the axis; `times` ascend. Each point looks at the samples in (point − lookback, point].

    NaN where there are none. A NaN among the values is no sample.
    """
    known = ~np.isnan(values)
    times, values = times[known], values[known]
    points = axis.times
    found: Floats = np.full(axis.count, np.nan)
    if not len(times):
        return found
    after = np.searchsorted(times, points, side="right")
    before = np.searchsorted(times, points - lookback, side="right")
    there = before < after
    if reduction is Reduction.LAST:
        found[there] = values[after[there] - 1]
    elif there.any():
        # pairs of borders; what lies between one stretch's end and the next one's begin is left out
        borders = np.stack([before[there], after[there]], axis=1).ravel()
        padded = np.append(values, -np.inf)
        found[there] = np.maximum.reduceat(padded, borders)[::2]
    return found


def thinned(times: Floats, columns: Floats, highest: np.ndarray, seconds: float) -> tuple[Floats, Floats]:
    """Samples thinned out to one for each `seconds`: (times, columns), one row per time.

    `columns` is times × series; `highest` says by series whether the highest counts, else the last. The time is that
    of the last sample that went in.
    """
    slots = np.ceil(times / seconds)
    ends = np.flatnonzero(np.append(slots[1:] != slots[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    filled = np.where(np.isnan(columns), -np.inf, columns)
    peaks = np.maximum.reduceat(filled, starts, axis=0)
    peaks[np.isneginf(peaks)] = np.nan
    # the last known one of each slot: its place in the column, or none
    places = np.where(np.isnan(columns), -1, np.arange(len(times))[:, None])
    newest = np.maximum.reduceat(places, starts, axis=0)
    lasts = np.where(newest >= 0, np.take_along_axis(columns, np.maximum(newest, 0), axis=0), np.nan)
    out: Floats = np.where(highest[None, :], peaks, lasts)
    return times[ends], out
