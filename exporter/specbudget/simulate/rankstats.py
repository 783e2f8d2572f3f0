"""What one rank of the stand-in knows about itself: counters, the gauges of the last report, load snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field

from specbudget.simulate.exposition import Histogram, families

SCHEDULER_GAUGES = (
    "num_running_reqs",
    "num_queue_reqs",
    "num_grammar_queue_reqs",
    "gen_throughput",
    "cache_hit_rate",
    "decode_sum_seq_lens",
    "token_usage",
    "full_token_usage",
    "swa_token_usage",
    "mamba_usage",
    "num_used_tokens",
    "kv_available_tokens",
    "kv_evictable_tokens",
    "kv_used_tokens",
    "swa_available_tokens",
    "swa_evictable_tokens",
    "swa_used_tokens",
    "mamba_available_tokens",
    "mamba_evictable_tokens",
    "mamba_used_tokens",
    "spec_accept_length",
    "spec_accept_rate",
    "spec_cap_length",
    "spec_block_accept_length",
    "spec_num_steps",
    "spec_num_draft_tokens",
    "num_prefill_bootstrap_queue_reqs",
    "num_prefill_inflight_queue_reqs",
    "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs",
    "num_decode_host_receive_queue_reqs",
    "num_decode_deferred_kv_release_reqs",
    "pending_prealloc_token_usage",
    "prealloc_full_token_usage",
    "prealloc_swa_token_usage",
    "utilization",
    "fwd_occupancy",
    "new_token_ratio",
    "is_cuda_graph",
    "num_unique_running_routing_keys",
    "num_retracted_reqs",
    "num_paused_reqs",
)
"""Gauges that SGLang sets at every report (SchedulerMetricsCollector.log_stats), without the sglang: prefix."""


@dataclass(slots=True)
class SpecWindow:
    """Verify steps of one decode-log interval: rows (one per request and step) and accepted drafts."""

    rows: int = 0
    accepted: int = 0

    def add(self, *, rows: int, accepted: int) -> None:
        """Count one iteration."""
        self.rows += rows
        self.accepted += accepted


@dataclass(slots=True)
class Moments:
    """Sums over decode iterations of batch size b and seconds s: n, Σb, Σs, Σbs, Σb², Σb²s."""

    sums: list[float] = field(default_factory=lambda: [0.0] * 6)

    def add(self, batch: int, seconds: float) -> None:
        """Count one iteration."""
        values = (1.0, batch, seconds, batch * seconds, batch * batch, batch * batch * seconds)
        self.sums = [total + value for total, value in zip(self.sums, values, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSnapshot:
    """What the scheduler last published for /v1/loads (managers/load_snapshot.py)."""

    timestamp: float = 0.0
    running: int = 0
    waiting: int = 0
    waiting_uncached_tokens: int = 0
    used_tokens: int = 0
    total_tokens: int = 0
    token_usage: float = 0.0
    gen_throughput: float = 0.0
    cache_hit_rate: float = 0.0
    prefill_tokens: int = 0
    decode_moments: tuple[float, ...] | None = None
    accept_length: float | None = None
    accept_rate: float = 0.0
    retracted: int = 0
    inflight: int = 0


class RankStats:
    """Counters since the start of the process, the gauges of the last report, the last load snapshot."""

    def __init__(self, *, capacity: int, state_slots: int, now: float) -> None:
        self.capacity = capacity
        self.state_slots = state_slots
        self.started = now
        self.gauges = dict.fromkeys(SCHEDULER_GAUGES, 0.0)
        self.gauges["fwd_occupancy"] = float("nan")
        self.reported = False
        self.retracted = 0
        self.retracted_total = 0
        self.retracted_input_tokens = 0
        self.retracted_output_tokens = 0
        self.decode_tokens = 0
        self.decode_passes = 0
        self.prefill_passes = 0
        self.prefill_tokens = 0
        self.prefill_hits = 0
        self.idle_seconds = 0.0
        self.busy_seconds = 0.0
        self.moments = Moments()
        self.lifetime = SpecWindow()
        self.load = LoadSnapshot()
        self.transfers: dict[str, Histogram] = {}

    def fold(self, window: SpecWindow) -> None:
        """Add a closed decode-log interval to the lifetime totals, as the engine does at each report."""
        self.lifetime.add(rows=window.rows, accepted=window.accepted)

    def retract(self, input_tokens: int, output_tokens: int) -> None:
        """Count one request that lost its slots."""
        self.retracted += 1
        self.retracted_total += 1
        self.retracted_input_tokens += input_tokens
        self.retracted_output_tokens += output_tokens

    def transferred(self, *, seconds: float, size: int) -> None:
        """Count one prompt whose KV was handed over to a decode engine; `size` in bytes."""
        values = {
            "kv_transfer_latency_ms": seconds * 1e3,
            "kv_transfer_total_mb": size / (1 << 20),
            "kv_transfer_speed_gb_s": size / (1 << 30) / max(seconds, 1e-6),
        }
        for family, value in values.items():
            if family not in self.transfers:
                self.transfers[family] = Histogram(families()[family].buckets)
            self.transfers[family].observe(value)

    def adapter_slots(self, *, used: int, total: int) -> None:
        """Set the gauges that only an engine with adapters has."""
        self.gauges.update(
            lora_pool_slots_used=float(used),
            lora_pool_slots_total=float(total),
            lora_pool_utilization=used / total,
        )

    @property
    def lifetime_length(self) -> float | None:
        """Acceptance length since the start, up to the last report; None before the first."""
        rows = self.lifetime.rows
        return (rows + self.lifetime.accepted) / rows if rows else None

    def report(
        self,
        *,
        running: int,
        queued: int,
        inflight: int,
        used: int,
        evictable: int,
        states: int,
        cached_states: int,
    ) -> None:
        """Set the gauges that every report sets."""
        usage = used / self.capacity
        state_usage = states / self.state_slots
        self.gauges.update(
            num_running_reqs=float(running),
            num_queue_reqs=float(queued),
            num_prefill_inflight_queue_reqs=float(inflight),
            token_usage=round(max(usage, state_usage), 2),
            full_token_usage=usage,
            num_used_tokens=float(used),
            kv_used_tokens=float(used),
            kv_evictable_tokens=float(evictable),
            kv_available_tokens=float(self.capacity - used - evictable),
            mamba_usage=state_usage,
            mamba_used_tokens=float(states),
            mamba_evictable_tokens=float(cached_states),
            mamba_available_tokens=float(self.state_slots - states - cached_states),
            num_retracted_reqs=float(self.retracted),
        )
        self.retracted = 0
        self.reported = True

    def snapshot(
        self,
        now: float,
        *,
        running: int,
        waiting: int,
        inflight: int,
        used: int,
        waiting_tokens: int,
        uncached: int,
    ) -> None:
        """Publish a load snapshot."""
        self.load = LoadSnapshot(
            timestamp=now,
            running=running,
            waiting=waiting,
            inflight=inflight,
            waiting_uncached_tokens=uncached,
            used_tokens=used,
            total_tokens=used + waiting_tokens,
            token_usage=round(used / self.capacity, 4),
            gen_throughput=round(self.gauges["gen_throughput"], 2),
            cache_hit_rate=round(self.gauges["cache_hit_rate"], 4),
            prefill_tokens=self.prefill_tokens,
            decode_moments=tuple(self.moments.sums) if self.decode_passes else None,
            accept_length=self.lifetime_length,
            accept_rate=self.gauges["spec_accept_rate"],
            retracted=int(self.gauges["num_retracted_reqs"]),
        )
