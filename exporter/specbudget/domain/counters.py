"""Increase of another process's counters between two readings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np

from specbudget.domain.acceptance import Floats

Key = TypeVar("Key", bound=Hashable)

LARGEST = float(1 << 62)
"""No engine counts so far; a reading beyond is no count."""


def is_count(value: float) -> bool:
    """True for what a counter can read: not negative, not NaN, not absurdly large."""
    return 0 <= value <= LARGEST


def increase(before: float | None, after: float) -> float:
    """Growth from one reading to the next; a counter that fell was reset and grew from 0."""
    if before is None or after < before:
        return after
    return after - before


class CounterReader(Generic[Key]):
    """Turns absolute readings into increases since the first reading.

    The first reading of all is the baseline and counts nothing. A series that appears later (engines create a
    child at its first increment) grew from 0. The keys known so far are the state; `reset` starts anew.
    """

    def __init__(self) -> None:
        self._last: dict[Key, float] = {}
        self._begun = False

    def advance(self, readings: dict[Key, float]) -> dict[Key, float]:
        """The increase of each reading; call once per poll with every series that was there.

        A reading that is no count counts nothing and is forgotten, so that the next one goes on from the last true
        one.
        """
        readings = {key: value for key, value in readings.items() if is_count(value)}
        grown = {
            key: (increase(self._last.get(key), value) if self._begun or key in self._last else 0.0)
            for key, value in readings.items()
        }
        self._last.update(readings)
        self._begun = True
        return grown

    def dump(self) -> dict[str, object]:
        """The latest readings, for keeping across a restart of ours."""
        return {"begun": self._begun, "last": [[key, value] for key, value in self._last.items()]}

    def load(self, *, begun: bool, last: dict[Key, float]) -> None:
        """Takes up what `dump` gave: growth while we were away counts."""
        self._begun, self._last = begun, dict(last)


def increases(values: Floats, *, began: bool = False) -> Floats:
    """The increase at each reading since the reading before, over resets; NaN where there is no reading.

    `values` are readings in order of time, NaN for none. The first reading is the baseline and has no increase, unless
    `began` says that the counter was not there before and so grew from 0.
    """
    grown: Floats = np.full(len(values), np.nan)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return grown
    readings = values[known]
    steps = np.diff(readings)
    grown[known[1:]] = np.where(steps < 0, readings[1:], steps)
    if began:
        grown[known[0]] = readings[0]
    return grown
