"""Launch arguments of an SGLang server that decide whether a pair fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from specbudget.domain.launch_arguments import launch_words


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """Arguments beyond the ones every reading has; None: not known. Names: SGLang 0.5.23 server arguments."""

    speculative_algorithm: str | None = None
    speculative_draft_model_path: str | None = None
    speculative_num_steps: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_dspark_block_size: int | None = None
    speculative_dflash_block_size: int | None = None
    speculative_draft_window_size: int | None = None
    speculative_draft_sink_size: int | None = None
    speculative_adaptive: bool | None = None
    speculative_adaptive_config: str | None = None
    speculative_use_rejection_sampling: bool | None = None
    speculative_use_block_verification: bool | None = None
    speculative_accept_threshold_single: float | None = None
    speculative_accept_threshold_acc: float | None = None
    speculative_draft_attention_backend: str | None = None
    speculative_draft_kv_cache_dtype: str | None = None
    speculative_moe_a2a_backend: str | None = None
    speculative_dspark_sps_table_path: str | None = None
    enable_multi_layer_eagle: bool | None = None
    speculative_draft_model_quantization: str | None = None
    speculative_draft_load_format: str | None = None
    quantization: str | None = None
    load_format: str | None = None
    context_length: int | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    dp_size: int | None = None
    attn_dp_size: int | None = None
    attn_cp_size: int | None = None
    dcp_size: int | None = None
    enable_dp_attention: bool | None = None
    enable_dp_lm_head: bool | None = None
    moe_a2a_backend: str | None = None
    kv_cache_dtype: str | None = None
    quantization_param_path: str | None = None
    page_size: int | None = None
    attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    decode_attention_backend: str | None = None
    linear_attn_verify_backend: str | None = None
    enable_mixed_chunk: bool | None = None
    enable_two_batch_overlap: bool | None = None
    enable_pdmux: bool | None = None
    enable_deterministic_inference: bool | None = None
    enable_hierarchical_cache: bool | None = None
    enable_unified_memory: bool | None = None
    enable_lmcache: bool | None = None
    enable_lora: bool | None = None
    lora_paths: str | None = None
    enable_watermark: bool | None = None
    weight_cache_mode: str | None = None
    enable_pd_role_switch: bool | None = None
    disaggregation_decode_enable_radix_cache: bool | None = None
    enable_linear_replayssm: bool | None = None
    enable_linear_replayssm_spec: bool | None = None
    linear_replayssm_cache_len: int | None = None
    startup_weight_load_mode: str | None = None
    disaggregation_mode: str | None = None

    def filled_from(self, other: EngineFlags) -> EngineFlags:
        """These flags, with what they do not say taken from `other`."""
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return EngineFlags(**{name: theirs if own is None else own for name, (own, theirs) in pairs.items()})


_OFF: dict[str, Any] = dict.fromkeys((f.name for f in fields(EngineFlags) if str(f.type).startswith("bool")), False)

DEFAULTS = EngineFlags(
    **_OFF,
    linear_replayssm_cache_len=16,
    startup_weight_load_mode="serial",
    speculative_accept_threshold_single=1.0,
    speculative_accept_threshold_acc=1.0,
    load_format="auto",
    disaggregation_mode="null",
    kv_cache_dtype="auto",
    moe_a2a_backend="none",
    weight_cache_mode="off",
    pp_size=1,
    tp_size=1,
    dp_size=1,
    attn_cp_size=1,
    dcp_size=1,
)
"""What SGLang 0.5.18 and 0.5.23 take where an argument is not given; every switch is off."""

_OTHER_NAMES = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "speculative_draft_model": "speculative_draft_model_path",
    "enable_gdn_replayssm_spec": "enable_linear_replayssm_spec",
}
_KINDS = {f.name: str(f.type) for f in fields(EngineFlags)}
_AT_LEAST_ONE = frozenset({"tp_size", "pp_size", "dp_size", "attn_cp_size", "dcp_size"})


def read_launch_args(args: str | Sequence[str]) -> EngineFlags:
    """The flags that stand in launch arguments, the last one of each counting; unknown ones are passed over.

    A value that is no number where one belongs, and a group of no ranks, leave their flag unknown. Text with an open
    quote is split at spaces.
    """
    values: dict[str, str | int | float | bool] = {}
    words = launch_words(args)
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        name = _OTHER_NAMES.get(name, name)
        kind = _KINDS.get(name)
        if kind is None:
            continue
        if kind.startswith("bool"):
            values[name] = True
            continue
        if not equals:
            value = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("--") else ""
        if kind.startswith("str"):
            values[name] = value
        elif kind.startswith("float"):
            _take_number(values, name, value)
        elif value.isascii() and value.isdigit() and len(value) <= 12:
            values[name] = int(value)
            if name in _AT_LEAST_ONE and not int(value):
                del values[name]
    return EngineFlags(**values)  # type: ignore[arg-type]


def _take_number(values: dict[str, str | int | float | bool], name: str, text: str) -> None:
    try:
        number = float(text)
    except ValueError:
        return
    if math.isfinite(number):
        values[name] = number
