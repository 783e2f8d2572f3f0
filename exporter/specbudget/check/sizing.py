"""The KV pools of a plan: as the running engine has them, else as they are predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from specbudget.budget.model import Budget
from specbudget.check.start_figures import StartFigures
from specbudget.domain.argument_problems import argument_problems
from specbudget.domain.finding import CheckResult
from specbudget.domain.kv_geometry import LatentLayer
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.domain.pool_sizing import (
    MULTIMODAL_EMBEDDING_MIB,
    Certainty,
    ExtraBuffer,
    FractionInputs,
    NotEnoughMemory,
    NotPredicted,
    PoolInputs,
    PoolOutcome,
    ProfiledMemory,
    ServingRole,
    StatePlan,
    TokenSpan,
    estimated_fraction,
    memory_from_bytes,
    memory_from_label,
    predict_pool,
    within_share,
)
from specbudget.domain.pool_sizing.memory import LOG_ROUNDING
from specbudget.domain.pool_sizing.refusals import FRACTION_UNKNOWN
from specbudget.pair.kv import Pair
from specbudget.pair.served_weights import weight_shares, why_weights_unknown
from specbudget.sources.checkpoint import DeviceWeights

REPACKED = 0.02
"""Quantised weights that an engine lays out anew differ from their files by per cent."""

SAME_LOAD = 0.05
"""A load in a log within this share of the weights at hand was a load of them."""

_NO_WEIGHTS = (
    "weights on one device are not known: its tensors cannot all be read, or their split over ranks is not known"
)

LATENT_LAYOUT = (
    "the bytes of a sparse latent in fp8 follow the attention backend: set --dsa-prefill-backend and "
    "--dsa-decode-backend"
)

_SSM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
_BUFFERS = {"extra_buffer": ExtraBuffer.PLAIN, "extra_buffer_lazy": ExtraBuffer.LAZY, "no_buffer": ExtraBuffer.NONE}
_OWN_LAYOUTS = {"enable_unified_memory": "--enable-unified-memory", "enable_hisparse": "--enable-hisparse"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingFacts:
    """What sizes the pools, gathered from checkpoints, arguments, log and engine.

    `most_running` is the engine's limit of running requests on one data-parallel rank; `running` says that an engine
    answered, whose own word on its arguments stands.
    """

    pair: Pair
    budget: Budget
    facts: EngineFacts
    most_running: int | None
    target_weights: DeviceWeights | None
    drafter_weights: DeviceWeights | None
    repacked: bool
    multimodal: bool
    start: StartFigures | None
    ranks: Mapping[str, RankReading]
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSize:
    """Tokens of the target's pool. `told_by` says whose number it is; None of `tokens`: not known, for `reason`.

    `outcome` is the prediction, also where a running engine's own number stands, and `inputs` what it was made from;
    None where they were not known. `own_fraction` is the mem_fraction_static that the engine would choose by itself.
    """

    tokens: TokenSpan | None
    certainty: Certainty
    told_by: str
    reason: str
    outcome: PoolOutcome
    inputs: PoolInputs | None = None
    own_fraction: float | None = None


def pool_size(given: SizingFacts) -> PoolSize:
    """The running engine's own number, else the prediction's, else why there is none."""
    prepared = _prepared(given)
    if isinstance(prepared, str):
        return _told(given, NotPredicted(reason=prepared))
    outcome = predict_pool(prepared)
    if outcome == NotPredicted(reason=FRACTION_UNKNOWN) and given.budget.engine.gpu_memory is None:
        outcome = NotPredicted(
            reason=f"{FRACTION_UNKNOWN}, or engine.gpu_memory, from which SGLang's own choice follows"
        )
    return replace(_told(given, outcome), inputs=prepared, own_fraction=_fraction(given))


def _told(given: SizingFacts, outcome: PoolOutcome) -> PoolSize:
    running = [int(r.capacity_tokens) for r in given.ranks.values() if r.capacity_tokens]
    if running:
        least = min(running)
        return PoolSize(
            tokens=TokenSpan(low=least, point=least, high=least),
            certainty=Certainty.EXACT,
            told_by="the running engine",
            reason="",
            outcome=outcome,
        )
    match outcome:
        case NotPredicted():
            return _unknown(outcome.reason, outcome)
        case NotEnoughMemory():
            return _unknown(outcome.message, outcome)
        case _:
            return PoolSize(
                tokens=outcome.tokens, certainty=outcome.certainty, told_by="predicted", reason="", outcome=outcome
            )


def _unknown(reason: str, outcome: PoolOutcome) -> PoolSize:
    return PoolSize(tokens=None, certainty=Certainty.ESTIMATE, told_by="", reason=reason, outcome=outcome)


def _prepared(given: SizingFacts) -> PoolInputs | str:
    """What the prediction is made from, or what is missing."""
    reason = _not_readable(given)
    memory = reason if reason is not None else _memory(given)
    if isinstance(memory, str):
        return memory
    return LATENT_LAYOUT if given.pair.scaled_fp8_latent is None else _inputs(given, memory)


def _not_readable(given: SizingFacts) -> str | None:
    """What of the arguments is not known or refused, so that a size would be of another engine than the planned."""
    engine = given.budget.engine
    if given.running or engine.args is None or engine.kind != "sglang":
        return None
    problems = argument_problems(engine.args, given.facts.version or "")
    return next((each.message for each in problems if each.result is not CheckResult.WARN), None)


def _memory(given: SizingFacts) -> ProfiledMemory | str:
    """The memory while the pool is sized, from the best evidence there is; or what is missing."""
    target, drafter, start = given.target_weights, given.drafter_weights, given.start
    if start is not None and _same_load(start, target, drafter):
        return start.memory
    if target is None:
        return f"the target's {_NO_WEIGHTS}"
    if given.pair.algorithm is not None and drafter is None and _has_model(given.pair):
        return f"the drafter's {_NO_WEIGHTS}"
    reason = why_weights_unknown(given.pair)
    if reason is not None:
        return reason
    shares = weight_shares(given.pair)
    wide, drafter_wide = shares.target, shares.drafter
    target = replace(target, charged_bytes=round(target.charged_bytes * wide))
    charged = None if drafter is None else round(drafter.charged_bytes * drafter_wide)
    error = REPACKED if given.repacked or wide != 1 or drafter_wide != 1 else 0.0
    engine = given.budget.engine
    if engine.free_before_load is not None:
        memory = memory_from_bytes(
            before_load=engine.free_before_load,
            target_weights=target.charged_bytes,
            drafter_weights=charged,
            weights_error=error,
            rounding=engine.free_before_load.rounding,
        )
        return replace(memory, certainty=Certainty.ESTIMATE) if _allocates_more(given.facts) else memory
    if start is not None:
        # the weights are others than at that start, the device is the same
        return ProfiledMemory(
            before_load=start.memory.before_load,
            target_weights=within_share(target.charged_bytes, error),
            drafter_weights=None if charged is None else within_share(charged, error),
            certainty=Certainty.ESTIMATE if error or _allocates_more(given.facts) else Certainty.FROM_LOG,
        )
    if engine.gpu_memory is not None:
        return memory_from_label(
            gpu_memory=engine.gpu_memory,
            target_weights=target.charged_bytes,
            drafter_weights=charged,
            weights_error=error,
        )
    return (
        "the device's memory is not known: set engine.gpu_memory to what its label says, such as 80GiB; "
        "engine.free_before_load, or the log of a start named as engine.server_log, makes the prediction exact"
    )


def _has_model(pair: Pair) -> bool:
    return pair.algorithm is not None and (pair.algorithm.is_block or pair.algorithm.is_chain)


def _same_load(start: StartFigures, target: DeviceWeights | None, drafter: DeviceWeights | None) -> bool:
    """Whether the log tells of a load of these two models."""
    loaded = start.memory.drafter_weights
    return _close(start.memory.target_weights.point, target) and _close(
        0.0 if loaded is None else loaded.point, drafter
    )


def _close(logged: float, weights: DeviceWeights | None) -> bool:
    charged = 0 if weights is None else weights.charged_bytes
    return abs(logged - charged) <= max(SAME_LOAD * charged, 4 * LOG_ROUNDING)


def _allocates_more(facts: EngineFacts) -> bool:
    """An all-to-all backend takes GiBs of its own before the pool is sized."""
    return facts.moe_backend not in (None, "none")


def _inputs(given: SizingFacts, memory: ProfiledMemory) -> PoolInputs:
    pair, facts, budget = given.pair, given.facts, given.budget
    sizing, flags = facts.sizing, facts.flags
    env = budget.engine.env
    scaled = pair.scaled_fp8_latent
    ranks = (facts.data_parallel or budget.parallelism.data) if facts.attention_dp else 1
    fraction = facts.mem_fraction_static or _fraction(given)
    return PoolInputs(
        engine=budget.engine.kind,
        release=facts.version or "",
        memory=memory,
        target=pair.target.geometry,
        drafter=pair.drafter.geometry,
        algorithm=pair.algorithm,
        draft_tokens=facts.num_draft_tokens,
        tensor_parallel=pair.tensor_parallel,
        pipeline_parallel=pair.pipeline_parallel,
        attention_data_parallel=ranks,
        context_parallel=sizing.attn_cp_size or 1,
        decode_context_parallel=pair.decode_context_parallel,
        page=facts.page_tokens or 1,
        target_element_bytes=pair.target_element_bytes,
        drafter_element_bytes=pair.drafter_element_bytes,
        scaled_fp8_latent=bool(scaled),
        fraction=fraction,
        fraction_estimated=facts.mem_fraction_static is None and fraction is not None,
        reserved_mib=MULTIMODAL_EMBEDDING_MIB if given.multimodal else 0,
        max_running=None if given.most_running is None else given.most_running * ranks,
        max_tokens=sizing.max_total_tokens,
        context_length=flags.context_length,
        radix_cache=not sizing.disable_radix_cache,
        overlap_schedule=not sizing.disable_overlap_schedule,
        state=_state(facts, env),
        own_path=facts.drafter_path is not None or budget.drafter.path is not None,
        nextn_layers=pair.drafter.nextn_layers,
        post_capture_sizing=env.get("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING", "").lower() in ("1", "true"),
        role=_role(facts),
        hierarchical_cache=bool(sizing.enable_hierarchical_cache),
        other_layouts=tuple(flag for name, flag in _OWN_LAYOUTS.items() if getattr(sizing, name)),
    )


def _role(facts: EngineFacts) -> ServingRole:
    mode = facts.role or facts.flags.disaggregation_mode
    return ServingRole(mode) if mode in set(ServingRole) else ServingRole.UNIFIED


def _fraction(given: SizingFacts) -> float | None:
    """mem_fraction_static as the engine would choose it; None where the device's memory is not known."""
    facts, sizing, total = given.facts, given.facts.sizing, given.budget.engine.gpu_memory
    target = given.pair.target.geometry
    if total is None or target is None or given.budget.engine.kind != "sglang":
        return None
    return estimated_fraction(
        FractionInputs(
            release=facts.version or "",
            gpu_memory_mib=total >> 20,
            latent=any(isinstance(layer, LatentLayer) for layer in target.layers),
            tensor_parallel=given.pair.tensor_parallel,
            pipeline_parallel=given.pair.pipeline_parallel,
            attention_data_parallel=(facts.data_parallel or 1) if facts.attention_dp else 1,
            chunked_prefill=sizing.chunked_prefill_size,
            largest_graph=sizing.cuda_graph_max_bs,
            max_running=facts.max_running_requests,
            max_tokens=sizing.max_total_tokens,
            decode_graphs=not sizing.disable_cuda_graph,
            deepep=facts.moe_backend == "deepep",
            multimodal=given.multimodal,
            role=_role(facts),
        )
    )


def _state(facts: EngineFacts, env: Mapping[str, str]) -> StatePlan:
    sizing, flags = facts.sizing, facts.flags
    default = StatePlan()
    strategy = sizing.mamba_radix_cache_strategy
    buffer = _BUFFERS.get(strategy or "auto")
    if buffer is None:
        # auto: a tracking buffer wherever scheduling overlaps
        buffer = ExtraBuffer.NONE if sizing.disable_overlap_schedule else ExtraBuffer.PLAIN
    return StatePlan(
        full_memory_ratio=facts.mamba_full_memory_ratio or default.full_memory_ratio,
        max_slots=sizing.max_mamba_cache_size,
        ssm_bytes=_SSM_BYTES.get(sizing.mamba_ssm_dtype or env.get("SGLANG_MAMBA_SSM_DTYPE", "")),
        conv_bytes=_SSM_BYTES.get(env.get("SGLANG_MAMBA_CONV_DTYPE", "")),
        extra_buffer=buffer,
        replay=bool(flags.enable_linear_replayssm_spec),
        replay_records=flags.linear_replayssm_cache_len or default.replay_records,
        skip_decode_lock=env.get("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK", "").lower() in ("1", "true"),
    )
