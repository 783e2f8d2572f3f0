"""Collects the events of one start-up and says which event is no longer part of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specbudget.domain.start_events import Mark, StartEvent

MAX_EVENTS = 16384
"""Events kept of one start: 30 lines of each of 512 ranks; more would be no start of a real engine."""

SAME_LAUNCH_SECONDS = 2.0
"""An engine that is embedded prints its arguments twice in a row."""

STRAGGLE_SECONDS = 5.0
"""A rank's line may come so late after the engine said that it is ready."""

FREED_RATIO = 0.99
"""Free memory at a second load, of that at the first, from which on the first model is no longer in memory."""

_LOADING = frozenset(
    {
        Mark.PREFETCH_BEGIN,
        Mark.PREFETCH_END,
        Mark.LOAD_BEGIN,
        Mark.LOAD_END,
        Mark.DEFERRED_LOAD,
        Mark.DRAFT_RUNNER,
    }
)
_BEFORE_LOADING = frozenset({Mark.LAUNCH})
_OF_MAIN_PROCESS = frozenset({Mark.TIMINGS, Mark.HTTP_UP, Mark.ANSWERED, Mark.FIRED_UP, Mark.FAILED})
_AFTER_READY = frozenset({Mark.ANSWERED, Mark.FIRED_UP, Mark.FAILED})


@dataclass(slots=True)
class StartLog:
    """The events of one start in the order of the log. `dropped` counts what was too much or came too late."""

    events: list[StartEvent] = field(default_factory=list)
    ready: bool = False
    failed: bool = False
    dropped: int = 0
    _ready_at: float = 0.0
    _past_loading: set[str] = field(default_factory=set)
    _first_free: dict[str, float | None] = field(default_factory=dict)
    _loaded_bytes: dict[str, float] = field(default_factory=dict)

    @property
    def has_http(self) -> bool:
        """True from when the HTTP server is up."""
        return any(event.mark is Mark.HTTP_UP for event in self.events)

    def ends_before(self, event: StartEvent) -> bool:
        """True when the event is the beginning of another start: the process was started anew."""
        if not self.events:
            return False
        match event.mark:
            case Mark.LAUNCH:
                again = all(e.mark is Mark.LAUNCH for e in self.events)
                return not (again and abs(event.at - self.events[-1].at) <= SAME_LAUNCH_SECONDS)
            case Mark.LOAD_BEGIN:
                return self.ready or self.failed or event.rank in self._past_loading or self._was_freed(event)
            case _:
                return False

    def _was_freed(self, event: StartEvent) -> bool:
        """True when a rank begins to load with as much memory free as when it began its first load."""
        first = self._first_free.get(event.rank)
        if first is None or event.free_bytes is None:
            return False
        loaded = self._loaded_bytes.get(event.rank)
        if loaded:
            return abs(event.free_bytes - first) < abs(event.free_bytes - (first - loaded))
        return event.free_bytes >= FREED_RATIO * first

    def add(self, event: StartEvent) -> None:
        """Takes the event into this start; what does not concern it any more is dropped."""
        if not self._concerns(event):
            self.dropped += 1
            return
        self.events.append(event)
        match event.mark:
            case Mark.FIRED_UP:
                self.ready, self._ready_at = True, event.at
            case Mark.FAILED:
                self.failed = True
            case Mark.LOAD_BEGIN:
                self._first_free.setdefault(event.rank, event.free_bytes)
            case Mark.LOAD_END if event.size_bytes is not None:
                self._loaded_bytes[event.rank] = self._loaded_bytes.get(event.rank, 0.0) + event.size_bytes
            case _:
                pass
        if event.mark not in _LOADING | _BEFORE_LOADING | _OF_MAIN_PROCESS:
            self._past_loading.add(event.rank)

    def _concerns(self, event: StartEvent) -> bool:
        if event.mark is Mark.PREFETCH_PROGRESS or len(self.events) >= MAX_EVENTS:
            return False
        if event.mark in (Mark.ANSWERED, Mark.HTTP_UP) and any(e.mark is event.mark for e in self.events):
            # the first one of each counts
            return False
        if event.mark is Mark.FAILED:
            return not self.ready
        if not self.ready:
            return True
        return event.mark in _AFTER_READY or abs(event.at - self._ready_at) <= STRAGGLE_SECONDS


def starts_in(events: Iterable[StartEvent]) -> list[StartLog]:
    """The starts that follow each other in a log's events; at least one, which may be empty."""
    starts = [StartLog()]
    for event in events:
        if starts[-1].ends_before(event):
            starts.append(StartLog())
        starts[-1].add(event)
    return starts
