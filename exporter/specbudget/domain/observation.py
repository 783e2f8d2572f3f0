"""What one reading of an engine said, by data-parallel rank, in base units. None: the engine did not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from specbudget.domain.codesign.launch import EngineFlags
from specbudget.domain.sizing_arguments import SizingArguments

MAX_RANKS = 256
"""Data-parallel ranks that are told apart; no deployment has more, and a label must not grow without bound."""

NO_PHASES: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReading:
    """One data-parallel rank.

    Copies of a value that tensor-parallel ranks publish are one value here, never a sum; over pipeline stages the
    smallest capacity and the largest memory hold. Byte figures are of one device. Counters are the engine's own,
    since its start. `length` and what follows it are the latest decode report's gauges, held when idle.
    """

    running: float | None = None
    queued: float | None = None
    capacity_tokens: float | None = None
    used_tokens: float | None = None
    evictable_tokens: float | None = None
    available_tokens: float | None = None
    page_tokens: float | None = None
    context_tokens: float | None = None
    length: float | None = None
    cap_length: float | None = None
    block_length: float | None = None
    num_steps: float | None = None
    num_draft_tokens: float | None = None
    target_weight_bytes: float | None = None
    target_kv_bytes: float | None = None
    free_bytes: float | None = None
    graph_bytes: Mapping[str, float] = field(default_factory=lambda: NO_PHASES)
    retractions: float | None = None
    decode_passes: float | None = None
    decode_tokens: float | None = None
    prefill_tokens: float | None = None

    def filled_from(self, other: RankReading) -> RankReading:
        """This reading with what it does not say taken from `other`."""
        values: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            values[name] = getattr(other, name) if value is None or value is NO_PHASES else value
        return RankReading(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """One reading of the engine's metrics or loads, taken `at` (seconds since the epoch)."""

    at: float
    ranks: Mapping[str, RankReading] = field(default_factory=dict)
    role: str | None = None
    model: str | None = None
    generation_tokens: float | None = None
    prompt_tokens: float | None = None
    verify_steps: float | None = None
    not_finite: int = 0
    out_of_bounds: int = 0
    ambiguous: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What the engine says of itself: arguments as resolved, version, pair; secrets are never part of it.

    `lifetime_lengths` is the acceptance length since start by rank, for people: it is no window's value.
    """

    version: str | None = None
    algorithm: str | None = None
    speculates: bool | None = None
    role: str | None = None
    served_model: str | None = None
    target_path: str | None = None
    drafter_path: str | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    attention_dp: bool | None = None
    page_tokens: int | None = None
    num_steps: int | None = None
    num_draft_tokens: int | None = None
    topk: int | None = None
    adaptive: bool | None = None
    draft_window: int | None = None
    draft_sink: int | None = None
    kv_dtype: str | None = None
    draft_kv_dtype: str | None = None
    dtype: str | None = None
    max_running_requests: int | None = None
    mem_fraction_static: float | None = None
    mamba_full_memory_ratio: float | None = None
    decode_report_passes: int | None = None
    moe_backend: str | None = None
    lifetime_lengths: tuple[float | None, ...] = ()
    prefetches: bool | None = None
    skips_warmup: bool | None = None
    flags: EngineFlags = field(default_factory=EngineFlags)
    sizing: SizingArguments = field(default_factory=SizingArguments)

    def filled_from(self, other: EngineFacts) -> EngineFacts:
        """These facts, with what they do not say taken from `other`; flags are filled one by one."""
        values: dict[str, Any] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            values[name] = getattr(other, name) if value is None or value == () else value
        flags, sizing = self.flags.filled_from(other.flags), self.sizing.filled_from(other.sizing)
        return EngineFacts(**{**values, "flags": flags, "sizing": sizing})
