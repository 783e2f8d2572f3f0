"""How many drafts a verify step accepts: draws from a truncated geometric distribution of a given mean."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from specbudget.simulate.configs import GAMMA


@functools.lru_cache(maxsize=4096)
def continuation(length: float) -> float:
    """The chance that a draft is accepted when the one before it was, for a mean acceptance length.

    `length` is 1 + p + p² … + p^gamma; it is clipped to what the verify window allows. Solved by bisection to
    1e-9.
    """
    wanted = min(max(length - 1.0, 0.0), float(GAMMA))
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if sum(middle**position for position in range(1, GAMMA + 1)) < wanted:
            low = middle
        else:
            high = middle
    return high


def draw(generator: np.random.Generator, length: float, count: int) -> NDArray[np.int64]:
    """Accepted drafts of `count` verify steps, each 0 to gamma, with mean `length` - 1."""
    chance = continuation(round(length, 3))
    if chance >= 1.0 - 1e-6:
        return np.full(count, GAMMA, dtype=np.int64)
    if chance <= 1e-6:
        return np.zeros(count, dtype=np.int64)
    # Inverse of the geometric distribution: p^k is the chance of at least k accepted drafts.
    steps = np.log1p(-generator.random(count)) / np.log(chance)
    accepted: NDArray[np.int64] = np.minimum(steps.astype(np.int64), GAMMA)
    return accepted
