"""Makes one steady axis of a log's wall times, which may be set back, or jump an hour with the season.

A log tells times without a zone. A step is believed only where it shows: a rank's next line lies more than some
seconds before its last, or exactly an hour after the newest line of all. How far the clock stepped is taken from
evidence: a duration that a line states, the reader's monotonic clock for lines read as they were written, or an hour
for a step of an hour. Without evidence what lies on the two sides of the step has no known distance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specbudget.domain.start_events import Mark, StartEvent

BACK_SECONDS = 5.0
"""Lines of one rank are out of order by less; more is a clock that was set back."""

HOUR = 3600.0
HOUR_SLACK = 2.0
"""Two truncated seconds."""

EVIDENCE_SLACK = 5.0
WATCHED_SLACK = 60.0
"""How late a line may be read after it was written."""

BACK_AN_HOUR = 120.0
"""Seconds that may pass between two lines around a step of an hour, so that it is still taken for one."""

_PAIRS = {
    Mark.LOAD_END: Mark.LOAD_BEGIN,
    Mark.CAPTURE_END: Mark.CAPTURE_BEGIN,
    Mark.PREFETCH_END: Mark.PREFETCH_BEGIN,
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment on the steady axis; moments of different eras have no known distance."""

    at: float
    era: int = 0

    def minus(self, seconds: float) -> Moment:
        """The moment so much earlier."""
        return Moment(self.at - seconds, self.era)


def between(begin: Moment | None, end: Moment | None) -> float | None:
    """Seconds from one to the other, never negative; None where they cannot be compared."""
    if begin is None or end is None or begin.era != end.era:
        return None
    return max(0.0, end.at - begin.at)


def earliest(moments: Iterable[Moment | None]) -> Moment | None:
    """The earliest of the first era."""
    return min((m for m in moments if m is not None), key=lambda m: (m.era, m.at), default=None)


def latest(moments: Iterable[Moment | None]) -> Moment | None:
    """The latest of the last era."""
    return max((m for m in moments if m is not None), key=lambda m: (m.era, m.at), default=None)


class SteadyClock:
    """Fed with events in the order of the log, gives each its moment. `steps` counts the steps of the clock."""

    def __init__(self) -> None:
        self.steps = 0
        self._shift = 0.0
        self._era = 0
        self._last: dict[str, float] = {}
        self._newest: float | None = None
        self._begun: dict[tuple[str, Mark, str], float] = {}
        self._watched: tuple[float, float] | None = None

    def moment(self, event: StartEvent) -> Moment:
        """The event's place on the axis."""
        at = event.at + self._shift
        if self._newest is not None:
            step = self._step(event, at, self._last.get(event.rank, self._newest), self._newest)
            if step:
                self.steps += 1
                self._shift -= step
                at -= step
        self._last[event.rank] = at
        self._newest = at if self._newest is None else max(self._newest, at)
        if event.mark in _PAIRS.values():
            self._begun[event.rank, event.mark, event.label] = at
        if event.seen is not None:
            self._watched = (at, event.seen)
        return Moment(at, self._era)

    def _step(self, event: StartEvent, at: float, before: float, newest: float) -> float:
        """How far the clock stepped before this line; 0 when it did not. `before` is the rank's last line."""
        told, watched = self._told(event), self._by_watch(event)
        if at < before - BACK_SECONDS:
            if told is not None:
                return _whole(at - told, EVIDENCE_SLACK)
            if watched is not None:
                return _whole(at - max(watched, before), WATCHED_SLACK)
            if -HOUR_SLACK <= at - before + HOUR <= BACK_AN_HOUR:
                return -HOUR
            self._era += 1
            self._begun.clear()
            return at - before
        if told is not None:
            return HOUR if abs(at - told - HOUR) <= EVIDENCE_SLACK else 0.0
        if watched is not None:
            return HOUR if abs(at - watched - HOUR) <= WATCHED_SLACK else 0.0
        return HOUR if abs(at - newest - HOUR) <= HOUR_SLACK else 0.0

    def _told(self, event: StartEvent) -> float | None:
        """When the line's own stated duration says that it was written."""
        begin = _PAIRS.get(event.mark)
        begun = None if begin is None else self._begun.get((event.rank, begin, event.label))
        return None if begun is None or event.seconds is None else begun + event.seconds

    def _by_watch(self, event: StartEvent) -> float | None:
        if event.seen is None or self._watched is None:
            return None
        at, seen = self._watched
        return at + max(0.0, event.seen - seen)


def _whole(step: float, slack: float) -> float:
    """The step, an exact hour where it is about one."""
    hour = HOUR if step > 0 else -HOUR
    return hour if abs(step - hour) <= slack else step
