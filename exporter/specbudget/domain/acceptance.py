"""Acceptance arithmetic: lengths, rates and histograms of accepted drafts per verify step.

One definition everywhere: the acceptance length is 1 + accepted drafts / verify steps, the target's own (bonus)
token included; over requests, ranks or replicas it is a ratio of sums, never a mean of means.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def acceptance_length(accepted: float, steps: float) -> float | None:
    """Tokens per verify step, bonus token included; None without a step."""
    return 1.0 + accepted / steps if steps > 0 else None


def acceptance_rate(accepted: float, proposed: float) -> float | None:
    """Accepted share of proposed drafts, 0 to 1; None when nothing was proposed."""
    return accepted / proposed if proposed > 0 else None


def rate_at_length(length: float, window: float) -> float | None:
    """(L − 1) / (D − 1): the share of a full window's drafts that a length stands for; None for a window of 1.

    The engine's own rate is not used: older SGLang counted the bonus token on both sides, (a + n) / (d + n).
    """
    return (length - 1.0) / (window - 1.0) if window > 1 else None


def is_possible(length: float, window: float | None) -> bool:
    """True for a finite length inside 1…window; without a known window only the lower bound can be checked."""
    return math.isfinite(length) and length >= 1.0 and (window is None or length <= window)


def histogram_steps(histogram: Ints) -> Ints:
    """Verify steps of each row; `histogram[r, i]` counts the steps of request r that accepted i drafts."""
    steps: Ints = histogram.sum(axis=1)
    return steps


def histogram_accepted(histogram: Ints) -> Ints:
    """Accepted drafts of each row: Σ i·h[i]."""
    return histogram @ np.arange(histogram.shape[1], dtype=np.int64)


def steps_reaching(histogram: Ints) -> Ints:
    """Over all rows, the steps that accepted at least i drafts, for i = 0 … width − 1.

    Position i of the draft block (counted from 1) is accepted in as many steps as reach i.
    """
    reaching: Ints = histogram.sum(axis=0)[::-1].cumsum()[::-1]
    return reaching
