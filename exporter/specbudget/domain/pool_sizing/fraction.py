"""mem_fraction_static where it is not given: SGLang's own rule of thumb, as far as it follows from arguments.

Source: SGLang 0.5.18 `server_args.py` (`_handle_gpu_memory_settings`, `reserve_for_graph_mb`) and 0.5.23
`arg_groups/memory_hook.py`, on CUDA devices. What it gives is an estimate: a driver that reports another total, or
graphs that the engine turns off by itself, move it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from specbudget.domain.pool_sizing.inputs import ServingRole, read_release

_GIB_MIB = 1024
_LEAST_ACTIVATION_TOKENS = 2048
_MIB_PER_ACTIVATION_TOKEN = 1.5
_FIXED_MIB = 512
_FLOOR_FROM_MIB, _FLOOR_MIB = 60 * _GIB_MIB, 10 * _GIB_MIB
_LATENT_PREFILL_MIB = 1.5 * _GIB_MIB
_MANY_GRAPHS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionInputs:
    """Arguments that the rule reads, None for not given.

    `gpu_memory_mib` is the device's total as nvidia-smi reports it. `latent` is a target with a latent KV.
    `decode_graphs` and `prefill_graphs` say whether graphs are captured for each phase. `deepep` is
    `--moe-a2a-backend deepep`; `multimodal` a target with an image or audio encoder.
    """

    release: str
    gpu_memory_mib: int
    latent: bool
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    attention_data_parallel: int = 1
    chunked_prefill: int | None = None
    largest_graph: int | None = None
    max_running: int | None = None
    max_tokens: int | None = None
    decode_graphs: bool = True
    prefill_graphs: bool = True
    deepep: bool = False
    multimodal: bool = False
    post_capture_sizing: bool = False
    role: ServingRole = ServingRole.UNIFIED


def estimated_fraction(inputs: FractionInputs) -> float | None:
    """The engine's own mem_fraction_static; None where it follows from more than these arguments.

    That is so for releases that were not read, for a prefill without chunks, for decode servers, whose reserve
    follows their draft tokens, for DeepEP, whose graphs decide, and for multimodal targets.
    """
    if read_release(inputs.release) is None or inputs.gpu_memory_mib <= 0 or inputs.post_capture_sizing:
        return None
    if inputs.multimodal or inputs.deepep or inputs.role is ServingRole.DECODE:
        return None
    chunk = _chunk(inputs) if inputs.chunked_prefill is None else inputs.chunked_prefill
    if chunk <= 0:
        return None
    reserve = _FIXED_MIB + max(chunk, _LEAST_ACTIVATION_TOKENS) * _MIB_PER_ACTIVATION_TOKEN
    reserve += inputs.tensor_parallel * inputs.pipeline_parallel / 8 * _GIB_MIB
    reserve += _graphs_mib(inputs, chunk)
    if inputs.gpu_memory_mib > _FLOOR_FROM_MIB:
        reserve = max(reserve, _FLOOR_MIB)
    fraction = round((inputs.gpu_memory_mib - reserve) / inputs.gpu_memory_mib, 3)
    return fraction if 0 < fraction < 1 else None


def _is_early(inputs: FractionInputs) -> bool:
    return read_release(inputs.release) == "0.5.18"


def _chunk(inputs: FractionInputs) -> int:
    gib = inputs.gpu_memory_mib / _GIB_MIB
    if gib < 20:
        return 2048
    if gib < 35:
        return 2048 if _is_early(inputs) else 4096
    if gib < 60:
        return 4096
    return 8192 if gib < 160 else 16384


def _largest_graph(inputs: FractionInputs) -> int:
    """Requests in the largest decode graph: by the device's memory, less than four ranks getting fewer."""
    if inputs.largest_graph is not None:
        return inputs.largest_graph
    gib, few = inputs.gpu_memory_mib / _GIB_MIB, inputs.tensor_parallel < 4
    if gib < 20:
        largest = 8
    elif gib < 35:
        early = _is_early(inputs)
        largest = (24 if early else 48) if few else (80 if early else 160)
    elif gib < 60:
        largest = 32 if few else 160
    elif gib < 160:
        largest = 256 if few else 512
    else:
        largest = 512
    # only a limit that is given counts: the one that speculation sets comes later
    if not _is_early(inputs) and inputs.max_running is not None:
        largest = min(largest, inputs.max_running)
    return largest


def _graphs_mib(inputs: FractionInputs, chunk: int) -> float:
    reserve, largest = 0.0, _largest_graph(inputs)
    if inputs.role is not ServingRole.PREFILL:
        if inputs.decode_graphs:
            reserve += largest * 2
        if inputs.attention_data_parallel > 1:
            reserve += largest * inputs.attention_data_parallel * (4.5 if largest > _MANY_GRAPHS else 3)
    if inputs.prefill_graphs:
        reserve += _LATENT_PREFILL_MIB if inputs.latent else len(_prefill_sizes(inputs, chunk)) * 8
    return reserve


def _prefill_sizes(inputs: FractionInputs, chunk: int) -> list[int]:
    """Token counts for which the engine captures a prefill graph."""
    largest = chunk if inputs.max_tokens is None else min(chunk, inputs.max_tokens)
    sizes = chain(
        range(4, 33, 4),
        range(48, 257, 16),
        range(288, 513, 32),
        range(576, 1025, 64),
        range(1280, 4097, 256),
        range(4608, largest + 1, 512),
    )
    return [size for size in sizes if size <= largest]
