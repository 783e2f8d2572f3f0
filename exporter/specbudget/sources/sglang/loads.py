"""SGLang's /v1/loads: capacity, use and queue by data-parallel rank, from shared memory.

It costs the engine no scheduler round trip and works without --enable-metrics. What it calls acceptance is since
start, so it is no reading of now and is left out here. A rank that has not published yet shows zeros with
timestamp 0 (entrypoints/v1_loads.py; managers/load_snapshot.py).
"""

from __future__ import annotations

from types import MappingProxyType

import msgspec

from specbudget.domain.counters import is_count
from specbudget.domain.observation import EngineReading, RankReading
from specbudget.sources.sglang.metrics import GIB, is_rank


class _Memory(msgspec.Struct):
    weight_gb: float | None = None
    kv_cache_gb: float | None = None


class _Load(msgspec.Struct):
    dp_rank: int = 0
    timestamp: float | None = None
    num_running_reqs: float | None = None
    num_waiting_reqs: float | None = None
    num_used_tokens: float | None = None
    max_total_num_tokens: float | None = None
    memory: _Memory | None = None


class _Loads(msgspec.Struct):
    loads: list[_Load]


_decode = msgspec.json.Decoder(_Loads).decode


def read_loads(body: bytes, *, at: float) -> EngineReading:
    """The reading; raises msgspec.DecodeError for anything but the document that SGLang answers."""
    ranks: dict[str, RankReading] = {}
    for load in sorted(_decode(body).loads, key=lambda load: load.dp_rank):
        if load.timestamp == 0 or not is_rank(str(load.dp_rank)):
            continue
        memory = load.memory or _Memory()
        ranks[str(load.dp_rank)] = RankReading(
            running=_counted(load.num_running_reqs),
            queued=_counted(load.num_waiting_reqs),
            capacity_tokens=_counted(load.max_total_num_tokens) or None,
            used_tokens=_counted(load.num_used_tokens),
            target_weight_bytes=_bytes(memory.weight_gb),
            target_kv_bytes=_bytes(memory.kv_cache_gb),
        )
    return EngineReading(at=at, ranks=MappingProxyType(ranks))


def _bytes(gib: float | None) -> float | None:
    return gib * GIB if _counted(gib) and gib else None


def _counted(value: float | None) -> float | None:
    """A value that nothing can have is not known."""
    return value if value is not None and is_count(value) else None
