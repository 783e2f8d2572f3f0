"""Follows the request log and the server log and counts what they say, in slices that leave the loop free."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np

from specbudget.catalog.series import RECORDS, SOURCE_ERRORS
from specbudget.catalog.sets import ErrorReason, RecordOutcome, Source
from specbudget.domain.acceptance import Ints, is_possible
from specbudget.domain.requests import RequestBatch
from specbudget.errors import SourceError
from specbudget.serve.desk import Desk
from specbudget.serve.report_silence import ReportSilence
from specbudget.serve.start_view import ReadAt
from specbudget.sources.sglang.request_log import RecordColumns, decode_lines, to_batch
from specbudget.sources.sglang.server_log import BatchReport, read_log
from specbudget.sources.sglang.start_log import read_start_lines
from specbudget.sources.tail import Chunk, Position, Tail

LIVE_SECONDS = 10.0
"""Lines that appeared within so long after the log was read to its end are read as they are written."""

PUBLISH_BYTES = 16 << 20
"""While catching up, what was counted is published after this much."""

SLICE_RECORDS = 1024
"""Records counted at once, about: of short ones a smaller chunk is read, so that the loop stays free."""

MIN_CHUNK_BYTES = 64 << 10
"""No chunk is made smaller than this."""

NOTABLE_SKEW_SECONDS = 5.0
"""Two clocks that are kept in step differ by less; log times are cut to whole seconds, and read a second later."""

BATCH_RECORDS = 4096
"""Records that become columns at once: more than a chunk of real ones has."""


log = logging.getLogger(__name__)


class TailLoop(ABC):
    """One tailed source: lists, reads chunk by chunk, hands each to `count`, keeps lag and backlog."""

    def __init__(
        self, desk: Desk, source: Source, path: Path, kept: list[Position], publish: Callable[[], None]
    ) -> None:
        self.desk, self.source = desk, source
        self.tail = Tail(path, kept)
        self._publish = publish
        self._told = False

    async def read(self) -> None:
        """Counts everything that is complete now; raises SourceError when the path cannot be read."""
        problem = self._refresh()
        unpublished = 0
        newest = 0.0
        for chunk in self.tail.chunks():
            now = time.time()
            self._outcome(RecordOutcome.OVERSIZED, chunk.oversized)
            if chunk.end:
                newest = max(newest, self.count(chunk, now))
            self._note_lag(newest, now)
            unpublished += chunk.end
            if unpublished >= PUBLISH_BYTES:
                unpublished = 0
                self._publish()
            await asyncio.sleep(0)
        self.desk.lags.backlog_bytes[self.source] = self.tail.backlog_bytes()
        self.desk.lags.lag_seconds[self.source] = 0.0
        unreadable = self.tail.unreadable
        if problem is None and unreadable is not None:
            problem = SourceError(ErrorReason.UNREADABLE, f"{unreadable.filename}: {unreadable.strerror}")
        if problem is not None:
            raise problem

    def _refresh(self) -> SourceError | None:
        """Lists anew; a path that is gone may still leave unread lines in files that are open."""
        try:
            self.tail.refresh()
        except FileNotFoundError:
            return SourceError(ErrorReason.MISSING, f"{self.tail.path}: not there (yet)")
        except OSError as error:
            return SourceError(ErrorReason.UNREADABLE, f"{self.tail.path}: {error.strerror}")
        self._tell_first_look()
        return None

    def _tell_first_look(self) -> None:
        """Says once how much there is to read: a log folder seen for the first time counts from its first record."""
        if not self._told:
            self._told = True
            waiting = self.tail.backlog_bytes()
            log.info("reading: source=%s path=%s waiting_bytes=%d", self.source, self.tail.path, waiting)

    @abstractmethod
    def count(self, chunk: Chunk, now: float) -> float:
        """Counts a chunk; returns the newest time in it, seconds since the epoch, 0 when it has none."""

    def _outcome(self, outcome: RecordOutcome, count: int) -> None:
        self.desk.ledger.add(RECORDS, (self.source, outcome), count)

    def _note_lag(self, newest: float, now: float) -> None:
        backlog = self.tail.backlog_bytes()
        self.desk.lags.backlog_bytes[self.source] = backlog
        self.desk.lags.lag_seconds[self.source] = max(0.0, now - newest) if backlog and newest else 0.0


class RequestLoop(TailLoop):
    """SGLang's request log: the source of requests, steps, tokens and the request form of the SLO."""

    def count(self, chunk: Chunk, now: float) -> float:
        """Counts the records of a chunk."""
        columns = decode_lines(chunk.data, chunk.end, with_adapters=self._by_adapter())
        self._outcome(RecordOutcome.OK, columns.outcomes.ok)
        self._outcome(RecordOutcome.SKIPPED, columns.outcomes.skipped)
        self._outcome(RecordOutcome.MALFORMED, columns.outcomes.malformed)
        self._slice(len(columns.records))
        view, newest = self.desk.view, 0.0
        window, adaptive = view.widest_window(now), view.is_adaptive(now)
        for part in columns.parts(BATCH_RECORDS):
            batch = to_batch(
                part,
                profiles=self._profiles(part, now),
                modified=chunk.modified,
                engine_window=window,
                adaptive=adaptive,
            )
            self.desk.book.count_requests(batch, now)
            self._note_answer(part, batch)
            newest = max(newest, float(batch.finished_at.max()))
        return newest

    def _slice(self, records: int) -> None:
        """Has the next chunks read smaller when this one held too many records."""
        if records > SLICE_RECORDS:
            self.tail.chunk_bytes = max(MIN_CHUNK_BYTES, self.tail.chunk_bytes * SLICE_RECORDS // records)

    def _note_answer(self, columns: RecordColumns, batch: RequestBatch) -> None:
        """Tells the start-up watch of the first request that was answered, while it waits for one."""
        starts = self.desk.starts
        if not starts.wants_answers:
            return
        answered = np.flatnonzero(~batch.aborted & (batch.output_tokens > 0))
        if len(answered):
            first = int(answered[np.argmin(batch.finished_at[answered])])
            latency = columns.records[first].e2e_latency
            starts.see_record(float(batch.finished_at[first]), latency, time.monotonic())

    def _by_adapter(self) -> bool:
        line = self.desk.loaded.budget.budget.acceptance
        return line is not None and any(p.match.adapter is not None for p in line.profiles.values())

    def _profiles(self, columns: RecordColumns, now: float) -> Ints | int:
        budget, view = self.desk.loaded.budget, self.desk.view
        model = view.fresh_facts(now).served_model or (view.metrics.model if view.metrics is not None else None)
        names = budget.profile_names()
        if not self._by_adapter():
            return names.index(budget.profile_of(model, None))
        return np.array(
            [names.index(budget.profile_of(model, adapter)) for adapter in columns.adapters], dtype=np.int64
        )


class ServerLogLoop(TailLoop):
    """SGLang's server log: the source of batch reports and of start-ups."""

    _read_to_end_at: float | None = None

    def __init__(
        self, desk: Desk, source: Source, path: Path, kept: list[Position], publish: Callable[[], None]
    ) -> None:
        super().__init__(desk, source, path, kept, publish)
        self._first_tensor_rank: dict[str, int] = {}
        self._silence = ReportSilence()

    def count(self, chunk: Chunk, now: float) -> float:
        """Counts the batch reports of a chunk."""
        lines = chunk.data[: chunk.end]
        self._note_start(lines, chunk.modified, now)
        found = read_log(lines)
        self._know_tensor_ranks(found.reports)
        if found.reports or found.malformed:
            self._silence.report()
        self._outcome(RecordOutcome.OK, len(found.reports))
        self._outcome(RecordOutcome.SKIPPED, found.other_lines)
        self._outcome(RecordOutcome.MALFORMED, found.malformed)
        for report in found.reports:
            self._count_report(report, min(report.at, now), now)
        return max((min(report.at, now) for report in found.reports), default=0.0)

    def _refresh(self) -> SourceError | None:
        before = self.tail.backlog_bytes()
        problem = super()._refresh()
        if self.tail.backlog_bytes() > before:
            self.desk.starts.see_growth(time.monotonic())
        return problem

    async def read(self) -> None:
        """Counts everything that is complete now; raises SourceError when the path cannot be read."""
        await super().read()
        self._read_to_end_at = time.monotonic()
        self._tell_silence(time.time())

    def _tell_silence(self, now: float) -> None:
        """Says once that the engine decodes and its log does not tell of it: what is missing there is not 0."""
        view = self.desk.view
        passes = max((r.decode_passes for r in view.ranks(now).values() if r.decode_passes is not None), default=None)
        silent = self._silence.look(passes, view.report_passes(now))
        if silent is not None:
            log.warning(
                "no decode reports in the server log: decode_passes_since=%d: batch acceptance is unknown; "
                "look at the engine's log level and --decode-log-interval",
                silent,
            )

    def _note_start(self, lines: bytes, modified: float, now: float) -> None:
        """Gives the start-up lines among `lines` to the start-up watch."""
        starts, monotonic = self.desk.starts, time.monotonic()
        live = self._read_to_end_at is not None and monotonic - self._read_to_end_at < LIVE_SECONDS
        read = ReadAt(epoch=now, monotonic=monotonic, live=live, quiet=0.0 if live else max(0.0, now - modified))
        events = read_start_lines(lines, answers=starts.wants_answers).events
        if events:
            before, skew = starts.attempts, starts.skew_seconds
            starts.see(events, read)
            if starts.skew_seconds != skew:
                _tell_skew(starts.skew_seconds)
            if starts.attempts > before:
                self._tell_attempts(monotonic)
                self.desk.book.suspects.begin_life()
                # the new process may be laid out otherwise
                self._first_tensor_rank.clear()

    def _tell_attempts(self, monotonic: float) -> None:
        """Says that the engine starts again although no start since has come to a generation."""
        starts = self.desk.starts
        if starts.attempts > 1:
            log.warning(
                "start-up begins again: attempts=%d without_a_generation_seconds=%.0f",
                starts.attempts,
                starts.trying_seconds(monotonic) or 0.0,
            )

    def _know_tensor_ranks(self, reports: list[BatchReport]) -> None:
        """Finds each data-parallel rank's first tensor-parallel rank: with attention data parallelism it is not 0."""
        first = self._first_tensor_rank
        for report in reports:
            first[report.rank] = min(report.tensor_rank, first.get(report.rank, report.tensor_rank))

    def _count_report(self, report: BatchReport, at: float, now: float) -> None:
        if report.length is None or report.length < 1.0 or not report.running:
            return
        # every tensor-parallel rank may log the same batch; the first one speaks for all
        if report.tensor_rank != self._first_tensor_rank[report.rank]:
            return
        view = self.desk.view
        reading = view.ranks(now).get(report.rank)
        window = None if reading is None else view.window(reading, now)
        if not is_possible(report.length, None if reading is None else view.bound(reading, now)):
            self.desk.ledger.add(SOURCE_ERRORS, (self.source, ErrorReason.OUT_OF_BOUNDS), 1)
            return
        steps = report.running * view.report_passes(now)
        self.desk.book.count_batch(report.rank, report.length, steps, window=window, at=at, now=now)


def _tell_skew(skew: float | None) -> None:
    """Says how far the engine's clock is off; ages are by our own clock, so that none of them is wrong."""
    if skew is not None and abs(skew) >= NOTABLE_SKEW_SECONDS:
        log.warning("the engine's clock is not ours: ahead_seconds=%+.0f: keep both hosts in step", skew)
