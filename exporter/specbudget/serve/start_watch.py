"""Follows the engine's starts: the latest one, how each ended, how long the present one has taken so far.

What happened is measured on the log's own clock, what is going on on the sidecar's monotonic clock: the two host
clocks are compared once, when the engine says that it is ready, and never subtracted for an age.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from specbudget.domain.stages import StartBasis, StartOutcome
from specbudget.domain.start_events import Mark, StartEvent
from specbudget.domain.start_log import StartLog
from specbudget.domain.start_phases import StartPhases
from specbudget.domain.start_up import StartUp, read_start_up, start_of_phases
from specbudget.serve.start_answer import FirstAnswer
from specbudget.serve.start_kept import event_from, event_to
from specbudget.serve.start_tally import StartTally
from specbudget.serve.start_view import ReadAt, StartView

__all__ = ["ReadAt", "StartView", "StartWatch"]

STUCK_SECONDS = 600.0
"""A start of which the log tells nothing new for so long is stuck."""

QUARTER_HOUR = 900.0
"""Zones differ by whole quarters of an hour: what is left of a difference is the clocks' own."""

ROUNDING_SECONDS = 2.0
"""By so much a first line may seem to precede its process: log times are cut to whole seconds."""

_NO_BEGIN = frozenset({Mark.ANSWERED, Mark.FAILED, Mark.PREFETCH_PROGRESS})
"""Lines that alone tell of no start: an engine that has long been serving prints them too."""


class StartWatch:
    """One engine's starts. `budget_seconds` None: no cold start is over budget. `records`: a request log is read.

    `skew_seconds` is how far the engine's clock is ahead of ours, zones left out: of the latest ready line that
    was read as it was written.
    """

    def __init__(
        self, *, budget_seconds: float | None = None, records: bool = False, stuck_after: float = STUCK_SECONDS
    ) -> None:
        self.budget_seconds, self.records, self.stuck_after = budget_seconds, records, stuck_after
        self.skew_seconds: float | None = None
        self._log = StartLog()
        self._tally = StartTally()
        self._answer = FirstAnswer()
        self._start_read: StartUp | None = None
        self._phases: StartPhases | None = None
        self._process_epoch: float | None = None
        self._written_by: float | None = None
        self._up_epoch: float | None = None
        self._was_up: bool | None = None
        self._ready_mark: float | None = None
        self._progress_mark: float | None = None
        self._trying_since: float | None = None
        self._trying_at: float | None = None

    # What happens ----------------------------------------------------------------------------------------------

    def see(self, events: Iterable[StartEvent], read: ReadAt) -> None:
        """Takes the events of a chunk, in the order of the log."""
        taken = False
        for told in events:
            event = replace(told, seen=read.monotonic) if read.live else told
            if not self._log.events or self._log.ends_before(event):
                if event.mark in _NO_BEGIN:
                    continue
                self._begin(event, read)
            self._take(event, read)
            taken = True
        if taken and read.live and (gone := self._start().progress) is not None:
            # a line is read after it is written: the earliest of what the lines say is nearest
            by = read.epoch - gone
            self._written_by = by if self._written_by is None else min(self._written_by, by)
        self._judge(read.monotonic)

    def see_growth(self, monotonic: float) -> None:
        """The log grew, if only by a progress bar without an end of line: while loading, that is progress."""
        if self._log.events and not self._log.has_http:
            self._progress_mark = monotonic

    def see_phases(self, phases: StartPhases | None) -> None:
        """The start-up phases of the engine's metrics; None when they have none."""
        if phases != self._phases:
            self._phases, self._start_read = phases, None

    def see_engine(self, *, answers: bool, epoch: float) -> None:
        """Whether the engine's HTTP server answers: where no log is read, its coming up is what is seen of a start.

        Not to be called where a server log is read: it tells more, and the start would count twice.
        """
        if answers and self._was_up is False:
            self._up_epoch, self._start_read = epoch, None
            self._tally.begin()
            self._answer.begin()
            self._answer.ready(epoch)
        self._was_up = answers

    def see_record(self, finished: float, latency: float | None, monotonic: float) -> None:
        """A request that ended well `finished` (seconds since the epoch), `latency` seconds after it arrived."""
        if self.wants_answers:
            self._answer.record(finished, latency)
            self._start_read = None
            self._judge(monotonic)

    def see_process(self, started: float | None) -> None:
        """When the engine's present process started by the machine's process table, seconds since the epoch."""
        if started != self._process_epoch:
            self._process_epoch, self._start_read = started, None

    @property
    def wants_answers(self) -> bool:
        """True until the first successful generation of the latest start is known."""
        return not self._tally.ended

    def _begin(self, event: StartEvent, read: ReadAt) -> None:
        if self._log.events and not self._tally.ended:
            self._end_as_left()
        if not self._tally.attempts:
            self._trying_since = read.monotonic - max(0.0, read.quiet)
            self._trying_at = None if read.live else event.at
        self._log, self._start_read = StartLog(), None
        self._tally.begin()
        self._answer.begin()
        # whoever reads the process table says it again, of the new process
        self._process_epoch = self._written_by = self._ready_mark = None

    def _take(self, event: StartEvent, read: ReadAt) -> None:
        self._log.add(event)
        self._start_read = None
        self._progress_mark = read.monotonic - max(0.0, read.quiet)
        if event.mark is Mark.FIRED_UP:
            self._ready_mark = self._progress_mark
            self._answer.ready(read.epoch if read.live else local_epoch(event.at))
            if read.live:
                self.skew_seconds = _part_of(event.at - read.epoch, QUARTER_HOUR)

    # How starts end --------------------------------------------------------------------------------------------

    def _end_as_left(self) -> None:
        """The process was started anew: a start that was not ready has failed."""
        start = self._start()
        if start.ready:
            self._tally.succeed(start.ready_seconds, self.budget_seconds)
        else:
            self._tally.fail()

    def _judge(self, monotonic: float) -> None:
        if self._tally.ended or not (self._log.events or self._up_epoch is not None):
            return
        start = self._start()
        if start.failed:
            self._tally.fail()
        elif start.cold_start_seconds is not None or (start.ready and start.ready_seconds is None):
            self._tally.succeed(start.cold_start_seconds, self.budget_seconds)
        elif self._log.events and not start.ready and self._silent(monotonic) > self.stuck_after:
            self._tally.stick()

    def outcomes(self, monotonic: float) -> dict[StartOutcome, int]:
        """Outcomes since the last call, to be added to counters: each start ends once, and is stuck at most once."""
        self._judge(monotonic)
        return self._tally.take()

    @property
    def attempts(self) -> int:
        """Starts since the last one that came to a generation, the present one included; 0 while it serves."""
        return self._tally.attempts

    def trying_seconds(self, monotonic: float) -> float | None:
        """Seconds since the first of those attempts began; None while there is none."""
        if self._trying_since is None or not self._tally.attempts:
            return None
        known = max(0.0, monotonic - self._trying_since)
        if self._trying_at is None or not self._log.events:
            return known
        # attempts of before our time: the log tells how far apart they began
        return max(known, self._log.events[-1].at - self._trying_at + self._silent(monotonic))

    # What is now -----------------------------------------------------------------------------------------------

    def latest(self, monotonic: float) -> StartView | None:
        """The latest start; what metrics alone tell where no log tells of one; None where nothing does."""
        if not self._log.events and (self._phases is None or not self._phases.any_of_a_start):
            return None
        start, silent = self._start(), self._silent(monotonic)
        going_on = bool(self._log.events) and not start.ready and not start.failed
        running = open_seconds = None
        if start.cold_start_seconds is None:
            running = start.ready_seconds
            if going_on and start.progress is not None:
                running = start.progress + silent
        if going_on and running is not None and start.open_stage is not None and start.open_stage.offset is not None:
            open_seconds = max(0.0, running - start.open_stage.offset)
        taken = running if running is not None else start.cold_start_seconds
        return StartView(
            start=start,
            running_seconds=running,
            open_seconds=open_seconds,
            silent_seconds=silent if going_on else None,
            started_at=self._started_at(start),
            stuck=going_on and silent > self.stuck_after,
            over_budget=self.budget_seconds is not None and taken is not None and taken > self.budget_seconds,
        )

    def since_ready(self, monotonic: float) -> float | None:
        """Seconds since the ready line was read, never negative; None before."""
        return None if self._ready_mark is None else max(0.0, monotonic - self._ready_mark)

    def _silent(self, monotonic: float) -> float:
        return 0.0 if self._progress_mark is None else max(0.0, monotonic - self._progress_mark)

    def _start(self) -> StartUp:
        if self._start_read is None:
            events = self._log.events
            if events:
                self._start_read = read_start_up(
                    events,
                    lead=self._lead(events[0].at),
                    generation_after_ready=self._answer.after_ready,
                    records=self.records,
                    phases=self._phases if self._log.ready else None,
                )
            else:
                self._start_read = self._observed()
        return self._start_read

    def _observed(self) -> StartUp:
        """A start without a log: the engine's own phases, counted back from when it was seen to come up."""
        return start_of_phases(
            self._phases or StartPhases(),
            came_up=self._up_epoch is not None,
            generation_after=self._answer.after_ready,
        )

    def _lead(self, first_at: float) -> float | None:
        """How long the process ran before its first line, by the process table; zones are left out."""
        if self._process_epoch is None:
            return None
        lead = (first_at - self._process_epoch) % QUARTER_HOUR
        return 0.0 if lead > QUARTER_HOUR - ROUNDING_SECONDS else lead

    def _started_at(self, start: StartUp) -> float | None:
        if self._process_epoch is not None:
            return self._process_epoch
        if self._written_by is not None:
            return self._written_by
        if start.basis is StartBasis.OBSERVED and self._up_epoch is not None and start.ready_seconds is not None:
            return self._up_epoch - start.ready_seconds
        return None if start.began_at is None or start.basis is None else local_epoch(start.began_at) - start.lead

    # Keeping ---------------------------------------------------------------------------------------------------

    def dump(self, *, epoch: float, monotonic: float) -> dict[str, Any]:
        """Everything that a restart of the sidecar must not forget, as plain lists and numbers."""
        marks = {"ready": self._ready_mark, "progress": self._progress_mark, "trying": self._trying_since}
        return {
            "at": epoch,
            "events": [event_to(event) for event in self._log.events],
            "tally": self._tally.dump(),
            "answer": self._answer.dump(),
            "ages": {name: None if mark is None else monotonic - mark for name, mark in marks.items()},
            "trying_at": self._trying_at,
            "written_by": self._written_by,
            "up_epoch": self._up_epoch,
            "skew": self.skew_seconds,
        }

    def load(self, kept: dict[str, Any], *, epoch: float, monotonic: float) -> None:
        """Takes up what `dump` gave; the time in between counts as silence."""
        away = max(0.0, epoch - kept["at"])
        self._log, self._start_read = StartLog(), None
        for event in kept["events"]:
            self._log.add(event_from(event))
        self._tally.load(kept["tally"])
        self._answer.load(kept["answer"])
        self._ready_mark, self._progress_mark, self._trying_since = (
            None if (age := kept["ages"][name]) is None else monotonic - age - away
            for name in ("ready", "progress", "trying")
        )
        self._trying_at, self._written_by = kept["trying_at"], kept["written_by"]
        self._up_epoch, self.skew_seconds = kept["up_epoch"], kept["skew"]


def local_epoch(at: float) -> float:
    """A log's wall time as seconds since the epoch, by this host's zone."""
    try:
        return time.mktime((*time.gmtime(at)[:8], -1))
    except (OverflowError, ValueError):
        return at


def _part_of(difference: float, step: float) -> float:
    """What no whole steps explain of a difference, from −step/2 to step/2."""
    return difference - round(difference / step) * step
