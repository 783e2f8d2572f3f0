"""The scheduler side of /metrics: what every rank publishes, constants of each GPU included."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from specbudget.simulate.drafters import GIB
from specbudget.simulate.exposition import Histogram, Sample, families
from specbudget.simulate.rankstats import RankStats
from specbudget.simulate.sizing import PAGE_TOKENS, Sizes

GRAPH_PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
STAGES = (
    "other",
    "recv_requests",
    "process_input_requests",
    "get_next_batch_to_run",
    "process_queue",
    "run_batch",
    "process_batch_result",
    "sanity_check_cache",
    "idle",
)
ROUTING_KEY_BOUNDS = ("0", "1", "2", "3", "5", "7", "10", "20", "50", "100", "200", "+Inf")
PID_GAUGES = ("num_retracted_reqs", "num_paused_reqs")
"""Gauges in prometheus_client's default multiprocess mode: they carry the process id."""


def gpu_samples(
    labels: dict[str, str],
    *,
    sizes: Sizes,
    graphs: Mapping[str, int],
    free: int,
    context: int,
) -> Iterator[Sample]:
    """Constants that every GPU publishes once its scheduler is up; sizes in GiB under the name gb."""
    constants = {
        "max_total_num_tokens": float(sizes.tokens),
        "weight_memory_usage_gb": sizes.target_weights / GIB,
        "kv_cache_memory_usage_gb": sizes.target_kv / GIB,
        "page_size": float(PAGE_TOKENS),
        "num_pages": float(sizes.tokens // PAGE_TOKENS),
        "context_len": float(context),
        "startup_available_gpu_memory_gb": free / GIB,
    }
    for family, value in constants.items():
        yield Sample(family, labels, value)
    for phase in GRAPH_PHASES:
        yield Sample("graph_memory_usage_gb", {**labels, "phase": phase}, graphs.get(phase, 0) / GIB)
    for family in ("dp_attention_token_imbalance_ratio", "dp_attention_sync_wait_seconds"):
        yield Sample(family, labels, Histogram(families()[family].buckets))
    for kind in ("scheduled", "imbalance"):
        yield Sample("dp_attention_tokens_total", {**labels, "kind": kind}, 0.0)
        yield Sample("dp_attention_pairs_total", {**labels, "kind": kind}, 0.0)
    for state in ("active", "idle"):
        yield Sample("dp_attention_steps_total", {**labels, "rank_state": state}, 0.0)


def scheduler_samples(
    labels: dict[str, str], *, stats: RankStats, now: float, leads: bool, pid: int
) -> Iterator[Sample]:
    """Counters and gauges of one GPU's scheduler; only the one that `leads` its rank reports the batch."""
    yield from _time_samples(labels, stats=stats, now=now, leads=leads)
    if stats.decode_passes:
        yield _passes(labels, "decode_cuda_graph", stats.decode_passes)
    prefill = {
        "input": stats.prefill_tokens,
        "device_hit": stats.prefill_hits,
        "host_hit": 0,
        "storage_hit": 0,
    }
    for mode, count in prefill.items():
        value = float(count) if leads else 0.0
        yield Sample("prefill_effective_tokens_total", {**labels, "mode": mode}, value)
    if not leads:
        return
    if stats.prefill_passes:
        yield _passes(labels, "prefill_cuda_graph", stats.prefill_passes)
    realtime = {
        "prefill_compute": stats.prefill_tokens,
        "prefill_cache": stats.prefill_hits,
        "decode": stats.decode_tokens,
    }
    for mode, count in realtime.items():
        if count:
            yield Sample("realtime_tokens_total", {**labels, "mode": mode}, float(count))
    if stats.retracted_total:
        yield Sample("num_retracted_requests_total", labels, float(stats.retracted_total))
        yield Sample("num_retracted_input_tokens_total", labels, float(stats.retracted_input_tokens))
        yield Sample("num_retracted_output_tokens_total", labels, float(stats.retracted_output_tokens))
    for family, histogram in stats.transfers.items():
        yield Sample(family, labels, histogram)
    if stats.reported:
        yield from _report_samples(labels, stats=stats, pid=pid)


def _passes(labels: dict[str, str], mode: str, count: int) -> Sample:
    return Sample("cuda_graph_passes_total", {**labels, "mode": mode}, float(count))


def _time_samples(labels: dict[str, str], *, stats: RankStats, now: float, leads: bool) -> Iterator[Sample]:
    idle = stats.idle_seconds if leads else 0.0
    yield Sample("scheduler_idle_seconds_total", labels, idle)
    yield Sample("scheduler_process_cpu_seconds_total", labels, max(0.0, now - stats.started))
    for stage in STAGES:
        seconds = {"run_batch": stats.busy_seconds, "idle": idle}.get(stage, 0.0) if leads else 0.0
        stage_labels = {**labels, "category": stage, "forward_overlap": "none"}
        yield Sample("scheduler_stage_seconds_total", stage_labels, seconds)


def _report_samples(labels: dict[str, str], *, stats: RankStats, pid: int) -> Iterator[Sample]:
    for family, value in stats.gauges.items():
        own = {**labels, "pid": str(pid)} if family in PID_GAUGES else labels
        yield Sample(family, own, value)
    for above, up_to in itertools.pairwise(ROUTING_KEY_BOUNDS):
        key_labels = {**labels, "gt": above, "le": up_to}
        yield Sample("routing_key_running_req_count", key_labels, 0.0)
        yield Sample("routing_key_all_req_count", key_labels, 0.0)
