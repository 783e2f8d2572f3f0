"""GET /v1/loads: the ranks' load snapshots as JSON or text (SGLang 0.5.23 entrypoints/v1_loads.py)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from specbudget.simulate.deployment import VERSION
from specbudget.simulate.drafters import GIB
from specbudget.simulate.process import Process
from specbudget.simulate.scheduler import MAX_RUNNING, Scheduler

SECTIONS = {
    "memory": "memory",
    "spec": "speculative",
    "lora": "lora",
    "disagg": "disaggregation",
    "queues": "queues",
}
VALID_SECTIONS = ("all", "core", "disagg", "lora", "memory", "queues", "spec")
_TEXT_PREFIXES = {"speculative": "spec", "disaggregation": "disagg"}


class UnknownSection(ValueError):
    """`include` names a section that does not exist."""


def rank_load(scheduler: Scheduler, include: set[str] | None) -> dict[str, Any]:
    """One rank's entry with the sections that `include` names; None or "all" means every one."""
    if include is not None and not include <= set(VALID_SECTIONS):
        unknown = include - set(VALID_SECTIONS)
        raise UnknownSection(f"Invalid include sections: {unknown}. Valid options: {list(VALID_SECTIONS)}")
    load, sizes = scheduler.stats.load, scheduler.sizes
    core: dict[str, Any] = {
        "timestamp": load.timestamp,
        "dp_rank": scheduler.rank,
        "num_running_reqs": load.running,
        "num_waiting_reqs": load.waiting,
        "num_waiting_uncached_tokens": load.waiting_uncached_tokens,
        "num_used_tokens": load.used_tokens,
        "num_total_tokens": load.total_tokens,
        "num_active_tokens": load.total_tokens,
        "num_prealloc_ready_tokens": 0,
        "max_total_num_tokens": sizes.tokens,
        "max_running_requests": MAX_RUNNING,
        "token_usage": load.token_usage,
        "gen_throughput": load.gen_throughput,
        "cache_hit_rate": load.cache_hit_rate,
        "utilization": 0.0,
        "total_prefill_uncached_tokens": load.prefill_tokens,
        "total_prefill_busy_us": 0,
        "decode_moments": None if load.decode_moments is None else list(load.decode_moments),
    }
    sections: dict[str, Any] = {
        "memory": {
            "weight_gb": sizes.target_weights / GIB,
            "kv_cache_gb": sizes.target_kv / GIB,
            "graph_gb": scheduler.graphs.get("target_verify", 0) / GIB,
            "token_capacity": sizes.tokens,
        },
        "disaggregation": {
            "mode": scheduler.role.value,
            "prefill_bootstrap_queue_reqs": 0,
            "prefill_inflight_queue_reqs": load.inflight,
            "decode_prealloc_queue_reqs": 0,
            "decode_transfer_queue_reqs": 0,
            "decode_retracted_queue_reqs": 0,
            "kv_transfer_speed_gb_s": 0.0,
            "kv_transfer_latency_ms": 0.0,
        },
        "queues": {
            "waiting": load.waiting,
            "grammar": 0,
            "paused": 0,
            "retracted": load.retracted,
            "prealloc_ready": 0,
        },
    }
    if load.accept_length is not None:
        sections["speculative"] = {"accept_length": load.accept_length, "accept_rate": load.accept_rate}
    everything = include is None or "all" in include
    for name, field in SECTIONS.items():
        if field in sections and (everything or (include is not None and name in include)):
            core[field] = sections[field]
    return core


def loads(process: Process, *, include: set[str] | None, rank: int | None) -> list[dict[str, Any]]:
    """The entries of all ranks, or of one; an unknown rank gives none."""
    return [rank_load(scheduler, include) for scheduler in process.schedulers if rank is None or scheduler.rank == rank]


def as_json(process: Process, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The JSON answer."""
    return {
        "timestamp": datetime.now(UTC).isoformat(),
        "version": VERSION,
        "accelerator": process.deployment.gpu.name,
        "num_accelerators": process.deployment.scenario.tensor_parallel,
        "loads": entries,
    }


def as_text(entries: list[dict[str, Any]]) -> str:
    """The same numbers as gauges; names have no colon."""
    samples: dict[str, list[tuple[int, float]]] = {}
    for entry in entries:
        rank = entry["dp_rank"]
        for key, value in entry.items():
            if key == "dp_rank":
                continue
            if isinstance(value, dict):
                prefix = _TEXT_PREFIXES.get(key, key)
                numbers = {f"{prefix}_{name}": number for name, number in value.items()}
            else:
                numbers = {key: value}
            for name, number in numbers.items():
                if isinstance(number, int | float):
                    samples.setdefault(f"sglang_{name}", []).append((rank, number))
    lines = []
    for name, values in samples.items():
        lines.append(f"# TYPE {name} gauge")
        lines += [f'{name}{{dp_rank="{rank}"}} {value}' for rank, value in values]
    return "\n".join(lines) + "\n"
