"""SGLang's /server_info as EngineFacts; the body also holds API keys in clear text, so only named keys are read.

The typed decoder skips every other value without making an object of it: `api_key`, `admin_api_key`,
`ssl_keyfile_password`, watermark keys and the launch command never exist on our side, not even in passing
(entrypoints/http_server.py; 0.5.18 and 0.5.23, where the engine repeats them in each of internal_states).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from specbudget.domain.codesign import EngineFlags
from specbudget.domain.observation import EngineFacts
from specbudget.domain.sizing_arguments import SizingArguments

ALGORITHMS_OFF = (None, "", "NONE")
_ROLES = {"null": "unified", "prefill": "prefill", "decode": "decode"}


_Size = Annotated[int, msgspec.Meta(ge=1)]


class _State(msgspec.Struct):
    avg_spec_accept_length: float | None = None
    effective_max_running_requests_per_dp: int | None = None
    speculative_num_steps: int | None = None
    speculative_num_draft_tokens: int | None = None


class _Info(msgspec.Struct):
    version: str | None = None
    speculative_algorithm: str | msgspec.UnsetType | None = msgspec.UNSET
    disaggregation_mode: str | None = None
    served_model_name: str | None = None
    model_path: str | None = None
    speculative_draft_model_path: str | None = None
    tp_size: _Size | None = None
    pp_size: _Size | None = None
    dp_size: _Size | None = None
    enable_dp_attention: bool | None = None
    page_size: _Size | None = None
    speculative_num_steps: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_adaptive: bool | None = None
    speculative_draft_window_size: int | None = None
    speculative_draft_sink_size: int | None = None
    kv_cache_dtype: str | None = None
    speculative_draft_kv_cache_dtype: str | None = None
    dtype: str | None = None
    max_running_requests: int | None = None
    mem_fraction_static: float | None = None
    mamba_full_memory_ratio: float | None = None
    decode_log_interval: int | None = None
    moe_a2a_backend: str | None = None
    internal_states: list[_State] = []
    speculative_dspark_block_size: int | None = None
    speculative_dflash_block_size: int | None = None
    speculative_draft_model_quantization: str | None = None
    speculative_draft_load_format: str | None = None
    quantization: str | None = None
    load_format: str | None = None
    context_length: int | None = None
    enable_linear_replayssm: bool | None = None
    enable_linear_replayssm_spec: bool | None = None
    linear_replayssm_cache_len: int | None = None
    startup_weight_load_mode: str | None = None
    weight_loader_prefetch_checkpoints: bool | None = None
    skip_server_warmup: bool | None = None
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


_decode = msgspec.json.Decoder(_Info).decode


def read_server_info(body: bytes) -> EngineFacts:
    """The facts; raises msgspec.DecodeError for anything but a JSON object with these types."""
    info = _decode(body)
    states = info.internal_states
    algorithm = None if info.speculative_algorithm is msgspec.UNSET else info.speculative_algorithm
    known = info.speculative_algorithm is not msgspec.UNSET
    return EngineFacts(
        version=info.version,
        algorithm=algorithm or None,
        speculates=(algorithm not in ALGORITHMS_OFF) if known else None,
        role=_ROLES.get(info.disaggregation_mode or ""),
        served_model=info.served_model_name or info.model_path,
        target_path=info.model_path,
        drafter_path=info.speculative_draft_model_path,
        tensor_parallel=info.tp_size,
        pipeline_parallel=info.pp_size,
        data_parallel=info.dp_size,
        attention_dp=info.enable_dp_attention,
        page_tokens=info.page_size,
        num_steps=_first([s.speculative_num_steps for s in states], info.speculative_num_steps),
        num_draft_tokens=_first([s.speculative_num_draft_tokens for s in states], info.speculative_num_draft_tokens),
        topk=info.speculative_eagle_topk,
        adaptive=info.speculative_adaptive,
        draft_window=info.speculative_draft_window_size,
        draft_sink=info.speculative_draft_sink_size,
        kv_dtype=info.kv_cache_dtype,
        draft_kv_dtype=info.speculative_draft_kv_cache_dtype,
        dtype=info.dtype,
        max_running_requests=_first(
            [s.effective_max_running_requests_per_dp for s in states], info.max_running_requests
        ),
        mem_fraction_static=info.mem_fraction_static,
        mamba_full_memory_ratio=info.mamba_full_memory_ratio,
        decode_report_passes=info.decode_log_interval,
        moe_backend=info.moe_a2a_backend,
        lifetime_lengths=tuple(s.avg_spec_accept_length for s in states),
        prefetches=info.weight_loader_prefetch_checkpoints,
        skips_warmup=info.skip_server_warmup,
        flags=EngineFlags(
            speculative_algorithm=algorithm or None,
            **{
                name: getattr(info, name)
                for name in EngineFlags.__slots__
                if name != "speculative_algorithm" and hasattr(info, name)
            },
        ),
        sizing=SizingArguments(**{name: getattr(info, name) for name in SizingArguments.__slots__}),
    )


def _first(values: list[int | None], otherwise: int | None) -> int | None:
    """The first rank's value, where it has one: runtime overrides show only there."""
    return next((value for value in values if value is not None), otherwise)
