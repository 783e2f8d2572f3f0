"""The acceptance length of the last hour: for the live chart as numbers, for paper and for no script as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from specbudget.catalog.sets import Scope
from specbudget.domain.acceptance import Floats
from specbudget.serve.desk import Desk
from specbudget.serve.page.words import clock
from specbudget.serve.trends import BREAK_EVEN, SLOT_SECONDS, SLOTS

SMOOTHED_SECONDS = 60.0
"""Each point is the ratio of sums over the minute before it."""

KEPT = SLOTS - round(SMOOTHED_SECONDS / SLOT_SECONDS)
"""Points: the first minute of the ring has no whole minute before it, and the present slot is not over."""

DIGITS = 3

WIDTH, HEIGHT = 600, 200
DRAWN = 240
"""Points of the picture: more cannot be told apart."""

LEAST_POINTS = round(600 / SLOT_SECONDS)
"""Ten minutes: what the picture shows at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One value per slot and line, None where nothing is known. Slot i ends at (i + 1) × SLOT_SECONDS."""

    first: int
    values: Mapping[str, list[float | None]]
    target: float | None

    def whole(self) -> dict[str, Any]:
        """All of it, as the chart takes it."""
        return self._from(0)

    def since(self, before: Trace) -> dict[str, Any] | None:
        """What differs from an earlier trace: everything from the first slot that changed; None when nothing did."""
        shift = self.first - before.first
        if shift < 0:
            return self.whole()
        same = len(next(iter(self.values.values())))
        for name, values in self.values.items():
            old = before.values[name][shift:]
            same = min(same, next((i for i, value in enumerate(values) if i >= len(old) or value != old[i]), same))
        if same == len(next(iter(self.values.values()))) and self.target == before.target:
            return None
        return self._from(same)

    def _from(self, index: int) -> dict[str, Any]:
        return {
            "first": self.first,
            "from": self.first + index,
            "step": SLOT_SECONDS,
            "target": self.target,
            "values": {name: values[index:] for name, values in self.values.items()},
        }


def acceptance_trace(desk: Desk, now: float) -> Trace:
    """Up to the last slot that is over."""
    columns: dict[str, Floats] = {
        scope: desk.book.length_trace(scope, SMOOTHED_SECONDS, now) for scope in (Scope.REQUEST, Scope.BATCH)
    }
    columns[BREAK_EVEN] = desk.trends.column(BREAK_EVEN, now).astype(np.float64)
    policy = desk.book.policy
    return Trace(
        first=int(now // SLOT_SECONDS) - KEPT,
        values={name: _told(column[-KEPT - 1 : -1]) for name, column in columns.items()},
        target=policy.targets[0] if policy.has_target else None,
    )


def _told(column: Floats) -> list[float | None]:
    return [round(value, DIGITS) if math.isfinite(value) else None for value in column.tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The trace as lines in a box of WIDTH × HEIGHT, with what stands at its edges."""

    paths: tuple[tuple[str, str], ...]
    target_y: float | None
    top: str
    bottom: str
    begin: str
    end: str
    words: str


def picture(trace: Trace) -> Picture:
    """What is drawn where no script runs."""
    known = [value for values in trace.values.values() for value in values if value is not None]
    levels = [*known, *([] if trace.target is None else [trace.target])]
    low, high = (min(1.0, *levels), max(levels) * 1.05) if levels else (1.0, 2.0)
    spread = (high - low) or 1.0
    count = len(next(iter(trace.values.values())))
    begun = min((i for values in trace.values.values() for i, v in enumerate(values) if v is not None), default=0)
    # a young trace does not stand at the edge of an empty hour
    skip = max(0, min(begun, count - LEAST_POINTS))
    count -= skip

    def y(value: float) -> float:
        return round(HEIGHT - (value - low) / spread * HEIGHT, 1)

    def path(values: list[float | None]) -> str:
        steps, pen_down, stride = [], False, max(1, count // DRAWN)
        for index in range(0, count, stride):
            value = values[skip + index]
            if value is not None:
                steps.append(f"{'L' if pen_down else 'M'}{index * WIDTH / max(1, count - 1):.1f} {y(value):g}")
            pen_down = value is not None
        return " ".join(steps)

    return Picture(
        paths=tuple((name, path(values)) for name, values in trace.values.items()),
        target_y=None if trace.target is None else y(trace.target),
        top=f"{high:.1f}",
        bottom=f"{low:.1f}",
        begin=clock((trace.first + skip + 1) * SLOT_SECONDS),
        end=clock((trace.first + skip + count) * SLOT_SECONDS),
        words=_words(trace),
    )


def _words(trace: Trace) -> str:
    names = {Scope.REQUEST: "per request", Scope.BATCH: "per batch", BREAK_EVEN: "break-even"}
    told = []
    for name, values in trace.values.items():
        known = [value for value in values if value is not None]
        if known:
            told.append(f"{names[name]} between {min(known):.2f} and {max(known):.2f}, at last {known[-1]:.2f}")
    if trace.target is not None:
        told.append(f"target at {trace.target:.2f}")
    return "; ".join(told) if told else "no verify step in the last hour"
