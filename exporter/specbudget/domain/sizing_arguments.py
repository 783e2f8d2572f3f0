"""Arguments of an SGLang server that decide how large its KV pool is, beyond those that every reading has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingArguments:
    """None: not known. Names: SGLang 0.5.18 and 0.5.23 server arguments."""

    max_total_tokens: int | None = None
    disable_radix_cache: bool | None = None
    disable_overlap_schedule: bool | None = None
    mamba_radix_cache_strategy: str | None = None
    max_mamba_cache_size: int | None = None
    mamba_ssm_dtype: str | None = None
    dcp_size: int | None = None
    attn_cp_size: int | None = None
    enable_unified_memory: bool | None = None
    enable_hisparse: bool | None = None
    enable_hierarchical_cache: bool | None = None
    chunked_prefill_size: int | None = None
    cuda_graph_max_bs: int | None = None
    disable_cuda_graph: bool | None = None
    cpu_offload_gb: int | None = None
    offload_group_size: int | None = None
    dsa_prefill_backend: str | None = None
    dsa_decode_backend: str | None = None

    def filled_from(self, other: SizingArguments) -> SizingArguments:
        """These arguments, with what they do not say taken from `other`."""
        values: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            values[each.name] = getattr(other, each.name) if value is None else value
        return SizingArguments(**values)
