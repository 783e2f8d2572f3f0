"""SGLang's /metrics as an EngineReading: families, labels and the copies that must not be summed.

Scheduler families carry tp_rank, pp_rank, moe_ep_rank and, with data parallelism, dp_rank; constants and, with
--enable-metrics-for-all-schedulers, everything is published once per tensor-parallel rank. Some gauges carry the
writer's pid, and a dead writer's value stays. A router or an escaping scrape turns `sglang:` into `sglang_`.
(observability/metrics_collector.py, scheduler_components/metrics_reporter.py; 0.5.18 and 0.5.23)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from specbudget.domain.counters import is_count
from specbudget.domain.observation import MAX_RANKS, EngineReading, RankReading
from specbudget.sources.exposition import ExpositionError, Sample, is_complete, read_samples

GIB = 1 << 30
"""SGLang prints GiB and calls it GB."""


class Merge(Enum):
    """How copies of one value over tensor-parallel ranks or pipeline stages become one."""

    FIRST = "of the lowest rank"
    LARGEST = "the largest"
    SMALLEST = "the smallest"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Which family fills a field of RankReading. `split` keeps values apart by a label, summed unless `phases`."""

    field: str
    family: str
    tensor: Merge = Merge.FIRST
    stages: Merge = Merge.FIRST
    scale: int = 1
    split: str | None = None
    only: str | None = None
    phases: bool = False


_FAMILIES = (
    _Family(field="running", family="num_running_reqs"),
    _Family(field="queued", family="num_queue_reqs"),
    _Family(field="capacity_tokens", family="max_total_num_tokens", stages=Merge.SMALLEST),
    _Family(field="used_tokens", family="kv_used_tokens"),
    _Family(field="used_tokens", family="num_used_tokens"),
    _Family(field="evictable_tokens", family="kv_evictable_tokens"),
    _Family(field="available_tokens", family="kv_available_tokens"),
    _Family(field="page_tokens", family="page_size"),
    _Family(field="context_tokens", family="context_len"),
    _Family(field="length", family="spec_accept_length"),
    _Family(field="cap_length", family="spec_cap_length"),
    _Family(field="block_length", family="spec_block_accept_length"),
    _Family(field="num_steps", family="spec_num_steps"),
    _Family(field="num_draft_tokens", family="spec_num_draft_tokens"),
    _Family(
        field="target_weight_bytes",
        family="weight_memory_usage_gb",
        tensor=Merge.LARGEST,
        stages=Merge.LARGEST,
        scale=GIB,
    ),
    _Family(
        field="target_kv_bytes",
        family="kv_cache_memory_usage_gb",
        tensor=Merge.LARGEST,
        stages=Merge.LARGEST,
        scale=GIB,
    ),
    _Family(
        field="free_bytes",
        family="startup_available_gpu_memory_gb",
        tensor=Merge.SMALLEST,
        stages=Merge.SMALLEST,
        scale=GIB,
    ),
    _Family(
        field="graph_bytes",
        family="graph_memory_usage_gb",
        tensor=Merge.LARGEST,
        stages=Merge.LARGEST,
        scale=GIB,
        split="phase",
        phases=True,
    ),
    _Family(field="retractions", family="num_retracted_requests_total", tensor=Merge.LARGEST, stages=Merge.LARGEST),
    _Family(field="decode_passes", family="cuda_graph_passes_total", split="mode", only="decode"),
    _Family(field="decode_tokens", family="realtime_tokens_total", split="mode", only="decode"),
    _Family(field="prefill_tokens", family="realtime_tokens_total", split="mode", only="prefill"),
)

_TOTALS = {
    "generation_tokens_total": "generation_tokens",
    "prompt_tokens_total": "prompt_tokens",
    "spec_verify_calls_total": "verify_steps",
}
"""Families of the tokenizer process: no rank, summed over is_streaming and priority."""

_PREFIXES = ("sglang:", "sglang_")
_NAMES = frozenset({family.family for family in _FAMILIES} | set(_TOTALS))
WANTED = frozenset(prefix + name for prefix in _PREFIXES for name in _NAMES)
"""Family names that are read, in both spellings."""

_Key = tuple[str, str, int, int, str]
"""(family, dp rank, pp rank, tp rank, value of the label that splits)"""


class MetricsReader:
    """Reads one engine's bodies in turn; remembers, per writer, what moved, so that a dead one is not believed."""

    def __init__(self) -> None:
        self._copies: dict[tuple[_Key, str], float] = {}
        self._believed: dict[_Key, str] = {}

    def read(self, body: bytes, *, at: float) -> EngineReading:
        """The reading; raises ExpositionError for a body that is not the text format, or only the head of one."""
        if not is_complete(body):
            raise ExpositionError(body.count(b"\n") + 1, None, "the body ends inside a line")
        if body.lstrip().startswith(b"<"):
            raise ExpositionError(1, None, "a web page, not metrics; is the engine behind a proxy that asks to log in?")
        candidates: dict[_Key, dict[str, float]] = {}
        totals: dict[str, dict[str, float]] = {}
        roles: set[str] = set()
        models: set[str] = set()
        not_finite = out_of_bounds = 0
        no_rank = 0
        for sample in _one_spelling(read_samples(body, WANTED)):
            if not math.isfinite(sample.value):
                not_finite += 1
                continue
            if not is_count(sample.value):
                out_of_bounds += 1
                continue
            labels, name = sample.labels, sample.name
            if name in _TOTALS:
                totals.setdefault(_TOTALS[name], {})[_identity(labels)] = sample.value
                continue
            if labels.get("priority"):
                continue
            rank = labels.get("dp_rank", "0")
            if not is_rank(rank):
                no_rank += 1
                continue
            if "tp_rank" in labels and "engine_type" in labels:
                roles.add(labels["engine_type"])
            if "model_name" in labels:
                models.add(labels["model_name"])
            for family in _FAMILIES:
                if family.family != name:
                    continue
                part = labels.get(family.split, "") if family.split else ""
                if family.only is not None and not part.startswith(family.only):
                    continue
                key = (
                    f"{family.field}/{name}",
                    rank,
                    _number(labels.get("pp_rank")),
                    _number(labels.get("tp_rank")),
                    part,
                )
                candidates.setdefault(key, {})[_identity(labels)] = sample.value
        values, ambiguous = self._settle(candidates)
        ranks = {rank: RankReading(**fields) for rank, fields in _merge(values).items()}
        return EngineReading(
            at=at,
            ranks=MappingProxyType(dict(sorted(ranks.items(), key=lambda item: _number(item[0])))),
            role=next(iter(roles)) if len(roles) == 1 else None,
            model=next(iter(models)) if len(models) == 1 else None,
            not_finite=not_finite,
            out_of_bounds=out_of_bounds,
            ambiguous=ambiguous + no_rank,
            **{name: sum(children.values()) for name, children in totals.items()},
        )

    def _settle(self, candidates: dict[_Key, dict[str, float]]) -> tuple[dict[_Key, float], int]:
        """One value per key: copies that agree are one; of several writers the one that moved last; else none."""
        settled: dict[_Key, float] = {}
        believed: dict[_Key, str] = {}
        ambiguous = 0
        for key, copies in candidates.items():
            moved = [identity for identity, value in copies.items() if self._copies.get((key, identity)) != value]
            writer = moved[0] if len(moved) == 1 else None if moved else self._believed.get(key)
            if writer in copies:
                believed[key] = writer
            distinct = set(copies.values())
            if len(distinct) == 1:
                settled[key] = distinct.pop()
            elif key in believed:
                settled[key] = copies[believed[key]]
            else:
                ambiguous += 1
        self._believed = believed
        self._copies = {(key, who): value for key, copies in candidates.items() for who, value in copies.items()}
        return settled, ambiguous


def is_rank(label: str) -> bool:
    """True for the number of a data-parallel rank that is kept apart, written as engines write it."""
    return label.isdecimal() and len(label) <= 3 and str(int(label)) == label and int(label) < MAX_RANKS


def _one_spelling(samples: Iterable[Sample]) -> Iterable[Sample]:
    """Samples under their bare name; where both spellings of a series are there, the native one counts."""
    native: set[tuple[str, str]] = set()
    escaped: list[Sample] = []
    for sample in samples:
        bare = Sample(sample.name[len("sglang:") :], sample.labels, sample.value)
        if sample.name.startswith("sglang:"):
            native.add((bare.name, _identity(bare.labels)))
            yield bare
        else:
            escaped.append(bare)
    for bare in escaped:
        if (bare.name, _identity(bare.labels)) not in native:
            yield bare


def _identity(labels: Mapping[str, str]) -> str:
    return repr(sorted(labels.items()))


def _number(text: str | None) -> int:
    """A rank label as a number, so that 10 comes after 9; what is no number comes last."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 10 else (0 if text is None else 1 << 30)


def _merge(values: dict[_Key, float]) -> dict[str, dict[str, Any]]:
    """Fields of RankReading by data-parallel rank."""
    out: dict[str, dict[str, Any]] = {}
    for family in _FAMILIES:
        label = f"{family.field}/{family.family}"
        grouped: dict[str, dict[str, dict[int, dict[int, float]]]] = {}
        for (field, rank, stage, tensor, part), value in values.items():
            if field == label:
                grouped.setdefault(rank, {}).setdefault(part, {}).setdefault(stage, {})[tensor] = value
        for rank, parts in grouped.items():
            merged = {
                part: family.scale * _pick(family.stages, {s: _pick(family.tensor, t) for s, t in stages.items()})
                for part, stages in parts.items()
            }
            result: Any = MappingProxyType(merged) if family.phases else sum(merged.values())
            out.setdefault(rank, {}).setdefault(family.field, result)
    return out


def _pick(merge: Merge, by_rank: dict[int, float]) -> float:
    match merge:
        case Merge.FIRST:
            return by_rank[min(by_rank)]
        case Merge.LARGEST:
            return max(by_rank.values())
        case Merge.SMALLEST:
            return min(by_rank.values())
