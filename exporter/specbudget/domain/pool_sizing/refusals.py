"""Deployments whose pool is sized by rules that are not covered here, or whose facts are not known."""

from __future__ import annotations

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, SharedKvLayer
from specbudget.domain.pool_sizing.inputs import READ_RELEASES, PoolInputs, ServingRole
from specbudget.domain.pool_sizing.state_sizing import device_states, has_recurrent_layers

FRACTION_UNKNOWN = "mem_fraction_static is not given and cannot be derived: set --mem-fraction-static in engine.args"


def why_not_predicted(inputs: PoolInputs) -> str | None:
    """The first reason why the size of the pool is not predicted; None where it is."""
    return _engine(inputs) or _target(inputs) or _drafter(inputs) or _state(inputs)


def _engine(inputs: PoolInputs) -> str | None:
    if inputs.engine != "sglang":
        return f"{inputs.engine} sizes its pool from a profiling run; take the figure of its log"
    if not inputs.release:
        return f"the engine's release is not known: set engine.version; {' and '.join(READ_RELEASES)} were read"
    if inputs.read_release is None:
        return f"the sizing of SGLang {inputs.release} was not read; known are {' and '.join(READ_RELEASES)}"
    if inputs.other_layouts:
        return f"{', '.join(inputs.other_layouts)} lays the pools out in its own way"
    if inputs.pipeline_parallel > 1:
        return "the layers of each pipeline stage are not known"
    if inputs.context_parallel > 1:
        return "context parallelism may split the layers' KV over its ranks"
    if inputs.fraction is None:
        return FRACTION_UNKNOWN
    return None


def _target(inputs: PoolInputs) -> str | None:
    target = inputs.target
    if target is None:
        return "the geometry of the target's KV is not known"
    if inputs.target_element_bytes is None:
        return "the target's KV dtype has no plain size per element"
    if target.has_windows:
        return "a target with sliding windows has pools of its own for them"
    if any(isinstance(layer, SharedKvLayer) for layer in target.layers):
        return "layers of the target share their KV"
    if not target.kv_layers:
        return "no layer of the target holds KV; its pool has as many tokens as the context"
    if target.is_sparse and inputs.decode_context_parallel > 1:
        return "sparse attention under decode context parallelism is sized by a rule that is not covered"
    latents = [layer for layer in target.layers if isinstance(layer, LatentLayer)]
    shares_index = target.is_sparse and any(layer.index_head_dim is None for layer in latents)
    apart = inputs.hierarchical_cache or inputs.role is not ServingRole.UNIFIED
    if shares_index and apart and inputs.read_release == "0.5.18":
        return "SGLang 0.5.18 keeps index keys in the layers that share them when it disaggregates or offloads"
    if inputs.post_capture_sizing and not latents and inputs.decode_context_parallel == 1:
        return "the pool is sized anew after graph capture (SGLANG_ENABLE_POST_CAPTURE_KV_SIZING)"
    return None


def _drafter(inputs: PoolInputs) -> str | None:
    algorithm = inputs.algorithm
    if algorithm is None or algorithm is DraftAlgorithm.NGRAM:
        return None
    if inputs.drafter is None:
        return "the geometry of the drafter's KV is not known"
    if inputs.drafter_element_bytes is None:
        return "the drafter's KV dtype has no plain size per element"
    if algorithm.is_block and not all(isinstance(layer, AttentionLayer) for layer in inputs.drafter.layers):
        return "the drafter's layers are not plain attention, on which the engine's charge rests"
    early_data_parallel = inputs.read_release == "0.5.18" and inputs.attention_data_parallel > 1
    if algorithm is DraftAlgorithm.DFLASH and early_data_parallel:
        return "SGLang 0.5.18 refuses DFlash together with attention data parallelism"
    return None


def _state(inputs: PoolInputs) -> str | None:
    if inputs.target is None or not has_recurrent_layers(inputs.target):
        return None
    if device_states(inputs) is None:
        return "the recurrent state of the target's linear layers is not known from its config"
    if inputs.algorithm is not None and inputs.draft_tokens is None:
        return "the number of draft tokens is not known, which a verify step keeps states for"
    return None
