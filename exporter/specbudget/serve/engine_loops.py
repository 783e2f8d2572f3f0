"""Reads SGLang's endpoints onto the desk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from specbudget.catalog.series import GENERATED_TOKENS, KV_RETRACTIONS, SOURCE_ERRORS, VERIFY_STEPS
from specbudget.catalog.sets import ErrorReason, Source
from specbudget.domain.acceptance import is_possible
from specbudget.domain.observation import EngineReading
from specbudget.domain.stages import StageArtifact
from specbudget.domain.start_phases import StartPhases
from specbudget.errors import SourceError
from specbudget.serve.desk import Desk
from specbudget.sources.http import EngineHttp
from specbudget.sources.sglang.loads import read_loads
from specbudget.sources.sglang.metrics import MetricsReader
from specbudget.sources.sglang.server_info import read_server_info
from specbudget.sources.sglang.start_phases import read_phases

METRICS_TIMEOUT = 10.0
SERVER_INFO_TIMEOUT = 30.0
"""/server_info goes through the scheduler and waits behind a forward pass: slow is not down."""

WHOLE_ENGINE = ""
"""In place of a rank: a counter of the tokenizer process, which has none."""

log = logging.getLogger(__name__)


class EngineLoops:
    """The three endpoints; none of them makes the engine generate. `clock` tells seconds since the epoch."""

    def __init__(self, desk: Desk, http: EngineHttp, *, clock: Callable[[], float] = time.time) -> None:
        self._desk, self._http, self._clock = desk, http, clock
        self._reader = MetricsReader()
        self._phases: StartPhases | None = None

    async def read_metrics(self) -> None:
        """/metrics: gauges by rank, batch reports where no server log is given, the engine's counters."""
        try:
            body = await self._http.get("/metrics", within=METRICS_TIMEOUT, key_required=False)
        except SourceError as error:
            if error.reason == ErrorReason.REFUSED and Source.SERVER_LOG not in self._desk.health:
                self._desk.starts.see_engine(answers=False, epoch=self._clock())
            raise
        now, desk = self._clock(), self._desk
        reading = self._reader.read(body, at=now)
        self._note_up(now)
        ledger = desk.ledger
        ledger.add(SOURCE_ERRORS, (Source.METRICS, ErrorReason.NOT_FINITE), reading.not_finite)
        ledger.add(SOURCE_ERRORS, (Source.METRICS, ErrorReason.OUT_OF_BOUNDS), reading.out_of_bounds)
        ledger.add(SOURCE_ERRORS, (Source.METRICS, ErrorReason.AMBIGUOUS), reading.ambiguous)
        desk.view.metrics = reading
        desk.health[Source.METRICS].last_success = now
        desk.know_ranks(reading.ranks)
        ledger.begin(KV_RETRACTIONS, list(reading.ranks))
        self._read_lengths(reading, now)
        desk.view.watch(now)
        self._read_counters(reading, now)
        phases = read_phases(body)
        self._tell_phases(phases)
        desk.starts.see_phases(phases)

    def _tell_phases(self, phases: StartPhases | None) -> None:
        """Says what the engine measured of its start, with what no phase explains; a hot reload is none of it."""
        if phases is None or phases == self._phases:
            return
        self._phases = phases
        measured = {
            "ready": phases.engine,
            "load": phases.load,
            "kv_alloc": phases.kv_alloc,
            "graph_capture": phases.captured(StageArtifact.BOTH),
            "rest": phases.rest,
            "latest_hot_reload": phases.hot_reload,
        }
        told = " ".join(f"{name}={seconds:g}" for name, seconds in measured.items() if seconds is not None)
        log.info("measured by the engine itself, in seconds: %s", told)

    def _note_up(self, now: float) -> None:
        """The engine answers: where no log tells of its starts, its coming up begins a life."""
        starts = self._desk.starts
        if Source.SERVER_LOG in self._desk.health:
            return
        before = starts.attempts
        starts.see_engine(answers=True, epoch=now)
        if starts.attempts > before:
            self._desk.book.suspects.begin_life()

    def _read_lengths(self, reading: EngineReading, now: float) -> None:
        desk = self._desk
        desk.gauge_batches.forget(set(reading.ranks))
        alone = len(reading.ranks) == 1
        for rank, values in reading.ranks.items():
            window = desk.view.window(values, now)
            if window is not None:
                desk.book.know_window(window)
            length = values.length
            if length is not None and length > 0 and not is_possible(length, desk.view.bound(values, now)):
                desk.ledger.add(SOURCE_ERRORS, (Source.METRICS, ErrorReason.OUT_OF_BOUNDS), 1)
                length = None
            tokens = values.decode_tokens
            if tokens is None and alone:
                tokens = reading.generation_tokens
            report = desk.gauge_batches.see(
                rank,
                length=length,
                passes=values.decode_passes,
                tokens=tokens,
                report_passes=desk.view.report_passes(now),
            )
            if report is not None and desk.batch_source is Source.METRICS:
                desk.book.count_batch(rank, report.length, report.steps, window=window, at=now, now=now)

    def _read_counters(self, reading: EngineReading, now: float) -> None:
        """Increases of the engine's own counters, across its restarts and ours."""
        readings: dict[tuple[str, str], float] = {}
        for rank, values in reading.ranks.items():
            if values.retractions is not None:
                readings[KV_RETRACTIONS.name, rank] = values.retractions
        # followed from the first poll on, whoever counts now: a reload may make these the source
        for counter, total in ((VERIFY_STEPS, reading.verify_steps), (GENERATED_TOKENS, reading.generation_tokens)):
            if total is not None:
                readings[counter.name, WHOLE_ENGINE] = total
        grown = self._desk.engine_counters.advance(readings)
        for rank in reading.ranks:
            retracted = grown.get((KV_RETRACTIONS.name, rank), 0.0)
            self._desk.ledger.add(KV_RETRACTIONS, (rank,), retracted)
            self._desk.book.suspects.count_retractions(retracted, now)
        # these do not say whose they are, so they count for an engine of one rank only
        if self._desk.request_source is Source.METRICS and len(reading.ranks) == 1:
            labels = (next(iter(reading.ranks)), self._desk.book.policy.profiles[0])
            for counter in (VERIFY_STEPS, GENERATED_TOKENS):
                self._desk.ledger.add(counter, labels, grown.get((counter.name, WHOLE_ENGINE), 0.0))

    async def read_loads(self) -> None:
        """/v1/loads: capacity and use, also of an engine without --enable-metrics."""
        body = await self._http.get("/v1/loads", within=METRICS_TIMEOUT, key_required=True)
        self._desk.view.loads = read_loads(body, at=self._clock())

    async def read_server_info(self) -> None:
        """/server_info: arguments as resolved; only named keys of it ever become objects."""
        body = await self._http.get("/server_info", within=SERVER_INFO_TIMEOUT, key_required=True)
        self._desk.view.facts = read_server_info(body)
