"""What one rank of the stand-in reports about its batch, and when: log lines, gauges, load snapshots.

Mirrors SGLang 0.5.23's metrics_reporter.py: counters at every step, a report every 40 decode iterations and at
every prefill, an idle report after 30 s or when the last one has become wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from specbudget.simulate import loglines
from specbudget.simulate.pool import KvPool
from specbudget.simulate.rankstats import RankStats, SpecWindow
from specbudget.simulate.request import Request
from specbudget.simulate.scenarios import Role
from specbudget.simulate.sizing import Sizes

DECODE_LOG_INTERVAL = 40
SNAPSHOT_INTERVAL = 15
STATES_PER_REQUEST = 3
IDLE_REPORT_SECONDS = 30.0
NEW_TOKEN_RATIO = 0.55
ADAPTER_SLOTS = 8
"""SGLang's default of --max-loras-per-batch."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Where the requests of a rank are; `inflight` counts those whose KV is on its way to a decode engine."""

    running: Collection[Request]
    waiting: Collection[Request]
    inflight: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStep:
    """One decode iteration. `steps` and `window` are speculative_num_steps and _num_draft_tokens; 0 when off."""

    rows: int
    produced: int
    accepted: int
    seconds: float
    steps: int
    window: int


class Reporter:
    """One rank's reports; `log(when, text)` receives its batch lines."""

    def __init__(
        self,
        *,
        sizes: Sizes,
        pool: KvPool,
        role: Role,
        adapters: bool,
        log: Callable[[float, str], None],
        now: float,
    ) -> None:
        self.stats = RankStats(capacity=sizes.tokens, state_slots=sizes.state_slots, now=now)
        self._sizes = sizes
        self._pool = pool
        self._role = role
        self._adapters = adapters
        self._log = log
        self._window = SpecWindow()
        self._generated = 0
        self._last_decode = now
        self._last_prefill = now
        self._last = now
        if role is Role.PREFILL:
            self.stats.gauges["utilization"] = -1.0

    def prefill(
        self, now: float, queues: Queues, *, sequences: int, new_tokens: int, hits: int, running_before: int
    ) -> None:
        """A prefill pass is over."""
        stats = self.stats
        stats.prefill_passes += 1
        stats.prefill_tokens += new_tokens
        stats.prefill_hits += hits
        gap = max(now - self._last_prefill, 1e-6)
        self._last_prefill = now
        if now - self._last_decode > IDLE_REPORT_SECONDS:
            stats.gauges["gen_throughput"] = 0.0
        stats.gauges["cache_hit_rate"] = hits / (hits + new_tokens) if hits + new_tokens else 0.0
        stats.gauges["new_token_ratio"] = NEW_TOKEN_RATIO
        hands_over = self._role is Role.PREFILL
        # A prefill engine has no running batch: the gauge counts the pass, the line says 0.
        self._report(now, queues, running=sequences if hands_over else running_before)
        self._log(
            now,
            loglines.prefill_batch(
                sequences=sequences,
                new_tokens=new_tokens,
                cached_tokens=hits,
                pool=self._pool_use(queues),
                running=running_before,
                queued=len(queues.waiting),
                pending_tokens=_uncached(queues),
                inflight=queues.inflight if hands_over else None,
                throughput=new_tokens / gap,
            ),
        )
        self._snapshot(now, queues)

    def decode(self, now: float, queues: Queues, step: DecodeStep) -> None:
        """A decode iteration is over; its finished requests still count as running."""
        stats = self.stats
        if step.window:
            self._window.add(rows=step.rows, accepted=step.accepted)
        stats.decode_tokens += step.produced
        stats.decode_passes += 1
        self._generated += step.produced
        stats.moments.add(step.rows, step.seconds)
        if stats.decode_passes % DECODE_LOG_INTERVAL == 0:
            self._decode_report(now, queues, step)
        if stats.decode_passes % SNAPSHOT_INTERVAL == 0:
            self._snapshot(now, queues)

    def retract(self, now: float, victims: Collection[Request], *, gained: int) -> None:
        """Requests have lost their slots, which freed `gained` of them."""
        for victim in victims:
            self.stats.retract(victim.prompt_tokens, victim.completion_tokens)
        self._log(
            now,
            loglines.retraction(
                requests=len(victims),
                tokens=gained,
                states=STATES_PER_REQUEST * len(victims),
                ratio=NEW_TOKEN_RATIO,
            ),
        )

    def idle(self, now: float, queues: Queues) -> None:
        """Nothing runs at `now`."""
        gauges = self.stats.gauges
        names = ("num_running_reqs", "num_queue_reqs", "num_prefill_inflight_queue_reqs")
        stale = any(gauges[name] != 0.0 for name in names)
        if self.stats.reported and (stale or now > self._last + IDLE_REPORT_SECONDS):
            gauges["gen_throughput"] = 0.0
            self._report(now, queues)
            self._snapshot(now, queues)

    def _decode_report(self, now: float, queues: Queues, step: DecodeStep) -> None:
        stats, window = self.stats, self._window
        gap = max(now - self._last_decode, 1e-6)
        self._last_decode = now
        throughput = self._generated / gap
        self._generated = 0
        length = rate = None
        if window.rows:
            length = (window.accepted + window.rows) / window.rows
            # The engine divides by the window of the moment, whatever it was during the interval.
            rate = window.accepted / (window.rows * (step.window - 1)) if step.window > 1 else 0.0
            stats.fold(window)
            self._window = SpecWindow()
        gauges = stats.gauges
        gauges["gen_throughput"] = throughput
        gauges["decode_sum_seq_lens"] = float(sum(request.context_tokens for request in queues.running))
        gauges["spec_accept_length"] = length or 0.0
        gauges["spec_accept_rate"] = rate or 0.0
        gauges["spec_num_steps"] = float(step.steps)
        gauges["spec_num_draft_tokens"] = float(step.window)
        self._report(now, queues)
        self._log(
            now,
            loglines.decode_batch(
                running=len(queues.running),
                pool=self._pool_use(queues),
                length=length,
                rate=rate,
                throughput=throughput,
                queued=len(queues.waiting),
            ),
        )

    def _report(self, now: float, queues: Queues, *, running: int | None = None) -> None:
        states = self._states_used(queues)
        self.stats.report(
            running=len(queues.running) if running is None else running,
            queued=len(queues.waiting),
            inflight=queues.inflight,
            used=self._pool.used,
            evictable=self._pool.evictable,
            states=states,
            cached_states=min(self._pool.cached_requests, self._sizes.state_slots - states),
        )
        if self._adapters:
            used = len({request.adapter for request in queues.running if request.adapter is not None})
            self.stats.adapter_slots(used=used, total=ADAPTER_SLOTS)
        self._last = now

    def _snapshot(self, now: float, queues: Queues) -> None:
        self.stats.snapshot(
            now,
            running=len(queues.running),
            waiting=len(queues.waiting),
            inflight=queues.inflight,
            used=self._pool.used,
            waiting_tokens=sum(request.context_tokens for request in queues.waiting),
            uncached=_uncached(queues),
        )

    def _pool_use(self, queues: Queues) -> loglines.PoolUse:
        return loglines.PoolUse(
            tokens=self._pool.used,
            capacity=self._pool.capacity,
            states=self._states_used(queues),
            state_capacity=self._sizes.state_slots,
        )

    def _states_used(self, queues: Queues) -> int:
        holding = len(queues.running) + queues.inflight
        holding += sum(request.held_tokens > 0 for request in queues.waiting)
        return min(STATES_PER_REQUEST * holding, self._sizes.state_slots)


def _uncached(queues: Queues) -> int:
    return sum(request.context_tokens - request.prefilled for request in queues.waiting)
