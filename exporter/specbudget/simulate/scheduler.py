"""One data-parallel rank of the stand-in: its queue, its batch, its pools, and what it reports about them.

Mirrors SGLang 0.5.23's metrics_reporter.py: per-step counters, a report every 40 decode iterations and at
every prefill, an idle report. Time is virtual: `advance` carries out everything up to a moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from specbudget.simulate import loglines
from specbudget.simulate.conditions import Conditions
from specbudget.simulate.configs import GAMMA, VERIFY_WINDOW
from specbudget.simulate.pool import KvPool
from specbudget.simulate.rankstats import RankStats, SpecWindow
from specbudget.simulate.request import Ending, Request
from specbudget.simulate.sizing import Sizes
from specbudget.simulate.steptime import decode_seconds, prefill_seconds

DECODE_LOG_INTERVAL = 40
SNAPSHOT_INTERVAL = 15
MAX_RUNNING = 48
CHUNK_TOKENS = 8192
STATES_PER_REQUEST = 3
IDLE_REPORT_SECONDS = 30.0
STANDSTILL_SECONDS = 0.05
HEADROOM_TOKENS = 16
"""Slots per running request that admission leaves: few, as an optimistic new-token ratio does."""

ConditionsAt = Callable[[float], Conditions]


class Scheduler:
    """One rank. `log(when, text)` receives its batch lines, `finished(request)` each request that ends."""

    def __init__(
        self,
        *,
        rank: int,
        sizes: Sizes,
        conditions: ConditionsAt,
        log: Callable[[float, str], None],
        started_token: Callable[[Request], None],
        finished: Callable[[Request], None],
        now: float,
    ) -> None:
        self.rank = rank
        self.sizes = sizes
        self.pool = KvPool(sizes.tokens)
        self.stats = RankStats(capacity=sizes.tokens, state_slots=sizes.state_slots, now=now)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._conditions = conditions
        self._log = log
        self._started_token = started_token
        self._finished = finished
        self._window = SpecWindow()
        self._generated = 0
        self._last_decode_report = now
        self._last_prefill_report = now
        self._last_report = now
        self._now = now
        self._step: Callable[[float], None] | None = None
        self._step_ends = now

    @property
    def in_flight(self) -> int:
        """Requests waiting or running."""
        return len(self.waiting) + len(self.running)

    @property
    def pass_ends(self) -> float | None:
        """When the pass that is under way ends; None when nothing runs."""
        return None if self._step is None else self._step_ends

    def submit(self, request: Request) -> None:
        """A request arrives at this rank."""
        request.rank = self.rank
        self.waiting.append(request)

    def advance(self, until: float) -> None:
        """Carry out all passes that end by `until` (epoch seconds) and begin the next one."""
        while True:
            if self._step is not None:
                if self._step_ends > until:
                    return
                step, self._step = self._step, None
                self._now = self._step_ends
                step(self._now)
                continue
            if not self._begin():
                self._idle(until)
                return

    def _begin(self) -> bool:
        conditions = self._conditions(self._now)
        if not conditions.decoding and self.in_flight:
            self._run(STANDSTILL_SECONDS, lambda _now: None)
            return True
        admitted = self._admit()
        if admitted:
            tokens = sum(count for _, count in admitted)
            self._run(prefill_seconds(tokens), lambda now: self._prefill(now, admitted))
            return True
        if self.running:
            seconds = decode_seconds(len(self.running), speculation=conditions.speculation)
            self._run(seconds, self._decode)
            return True
        return False

    def _run(self, seconds: float, step: Callable[[float], None]) -> None:
        self._step = step
        self._step_ends = self._now + seconds
        self.stats.busy_seconds += seconds

    def _idle(self, until: float) -> None:
        self.stats.idle_seconds += max(0.0, until - self._now)
        self._now = max(self._now, until)
        stale = self.stats.gauges["num_running_reqs"] != 0.0 or self.stats.gauges["num_queue_reqs"] != 0.0
        if self.stats.reported and (stale or self._now > self._last_report + IDLE_REPORT_SECONDS):
            self.stats.gauges["gen_throughput"] = 0.0
            self._report(self._now)
            self._snapshot(self._now)

    # Prefill -------------------------------------------------------------------------------------------------

    def _admit(self) -> list[tuple[Request, int]]:
        """Requests whose prompt is (further) computed in the next pass, with their new tokens in it."""
        budget = CHUNK_TOKENS
        admitted: list[tuple[Request, int]] = []
        while self.waiting and budget > 0 and len(self.running) + len(admitted) < MAX_RUNNING:
            request = self.waiting[0]
            if request.ending is Ending.ABORT_WAITING:
                self._end(self.waiting.popleft(), self._now)
                continue
            if request.held_tokens == 0:
                if not self.pool.admit(request, headroom=HEADROOM_TOKENS * len(self.running)):
                    break
                request.prefilled = request.cached_tokens
                if request.entered is None:
                    request.entered = self._now
            chunk = min(budget, request.context_tokens - request.prefilled)
            admitted.append((request, chunk))
            budget -= chunk
            if request.prefilled + chunk < request.context_tokens:
                break
            self.waiting.popleft()
        return admitted

    def _prefill(self, now: float, admitted: list[tuple[Request, int]]) -> None:
        running_before = len(self.running)
        new_tokens = hits = 0
        for request, chunk in admitted:
            if request.prefilled == request.cached_tokens:
                hits += request.cached_tokens
            request.prefilled += chunk
            new_tokens += chunk
            if request.prefilled >= request.context_tokens:
                self._first_token(request, now)
        stats = self.stats
        stats.prefill_passes += 1
        stats.prefill_tokens += new_tokens
        stats.prefill_hits += hits
        gap = max(now - self._last_prefill_report, 1e-6)
        self._last_prefill_report = now
        if now - self._last_decode_report > IDLE_REPORT_SECONDS:
            stats.gauges["gen_throughput"] = 0.0
        stats.gauges["cache_hit_rate"] = hits / (hits + new_tokens) if hits + new_tokens else 0.0
        stats.gauges["new_token_ratio"] = 0.55
        self._report(now, running=running_before)
        self._log(
            now,
            loglines.prefill_batch(
                sequences=len(admitted),
                new_tokens=new_tokens,
                cached_tokens=hits,
                pool=self._pool_use(),
                running=running_before,
                queued=len(self.waiting),
                pending_tokens=sum(request.context_tokens - request.prefilled for request in self.waiting),
                throughput=new_tokens / gap,
            ),
        )
        self._snapshot(now)

    def _first_token(self, request: Request, now: float) -> None:
        first = request.first_token is None
        if first:
            request.first_token = now
            self._started_token(request)
        if request.produce(1):
            self._end(request, now)
        else:
            self.running.append(request)

    # Decode --------------------------------------------------------------------------------------------------

    def _decode(self, now: float) -> None:
        conditions = self._conditions(now)
        stats, window = self.stats, self._window
        speculation, lengths, repeating = conditions.speculation, conditions.lengths, conditions.repeating
        produced = accepted_now = 0
        ended: list[Request] = []
        rows = self.running
        for request in rows:
            if speculation:
                accepted = request.next_accepted(lengths[request.profile], repeating=repeating)
                request.verify(accepted)
                accepted_now += accepted
                produced += accepted + 1
                done = request.produce(accepted + 1)
            else:
                produced += 1
                done = request.produce(1)
            if done:
                ended.append(request)
        if speculation:
            window.add(rows=len(rows), accepted=accepted_now)
        stats.decode_tokens += produced
        stats.decode_passes += 1
        self._generated += produced
        stats.moments.add(len(rows), decode_seconds(len(rows), speculation=speculation))
        if stats.decode_passes % DECODE_LOG_INTERVAL == 0:
            self._decode_report(now, speculation=speculation)
        if stats.decode_passes % SNAPSHOT_INTERVAL == 0:
            self._snapshot(now)
        if ended:
            gone = set(map(id, ended))
            self.running = [request for request in rows if id(request) not in gone]
            for request in ended:
                self._end(request, now)
        self._grow()

    def _grow(self) -> None:
        """Extend every running request's slots; retract the newest ones when the pool is full."""
        position = 0
        while position < len(self.running):
            if self.pool.grow(self.running[position]):
                position += 1
                continue
            victim = self.running.pop()
            self.pool.release(victim, keep=False)
            victim.retractions += 1
            victim.prefilled = 0
            self.waiting.appendleft(victim)
            self.stats.retract(victim.prompt_tokens, victim.completion_tokens)

    def _decode_report(self, now: float, *, speculation: bool) -> None:
        stats, window = self.stats, self._window
        gap = max(now - self._last_decode_report, 1e-6)
        self._last_decode_report = now
        throughput = self._generated / gap
        self._generated = 0
        length = rate = None
        if window.rows:
            length = (window.accepted + window.rows) / window.rows
            rate = window.accepted / (window.rows * GAMMA)
            stats.fold(window)
            self._window = SpecWindow()
        gauges = stats.gauges
        gauges["gen_throughput"] = throughput
        gauges["decode_sum_seq_lens"] = float(sum(request.context_tokens for request in self.running))
        gauges["spec_accept_length"] = length or 0.0
        gauges["spec_accept_rate"] = rate or 0.0
        gauges["spec_num_steps"] = 1.0 if speculation else 0.0
        gauges["spec_num_draft_tokens"] = float(VERIFY_WINDOW) if speculation else 0.0
        self._report(now)
        self._log(
            now,
            loglines.decode_batch(
                running=len(self.running),
                pool=self._pool_use(),
                length=length,
                rate=rate,
                throughput=throughput,
                queued=len(self.waiting),
            ),
        )

    # Ends and reports ----------------------------------------------------------------------------------------

    def _end(self, request: Request, now: float) -> None:
        request.finished = now
        if request.held_tokens:
            self.pool.release(request, keep=True)
        self._finished(request)

    def _pool_use(self) -> loglines.PoolUse:
        return loglines.PoolUse(
            tokens=self.pool.used,
            capacity=self.pool.capacity,
            states=self._states_used(),
            state_capacity=self.sizes.state_slots,
        )

    def _states_used(self) -> int:
        holding = len(self.running) + sum(request.held_tokens > 0 for request in self.waiting)
        return min(STATES_PER_REQUEST * holding, self.sizes.state_slots)

    def _report(self, now: float, *, running: int | None = None) -> None:
        states = self._states_used()
        self.stats.report(
            running=len(self.running) if running is None else running,
            queued=len(self.waiting),
            used=self.pool.used,
            evictable=self.pool.evictable,
            states=states,
            cached_states=min(self.pool.cached_requests, self.sizes.state_slots - states),
        )
        self._last_report = now

    def _snapshot(self, now: float) -> None:
        waiting_tokens = sum(request.context_tokens for request in self.waiting)
        self.stats.snapshot(
            now,
            running=len(self.running),
            waiting=len(self.waiting),
            used=self.pool.used,
            waiting_tokens=waiting_tokens,
            uncached=sum(request.context_tokens - request.prefilled for request in self.waiting),
        )
