"""Turns two checkpoints and what the engine says into the plain facts that the co-design rules read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from specbudget.budget.model import Budget
from specbudget.domain.codesign import (
    DEFAULTS,
    DrafterFacts,
    DraftShape,
    EngineFlags,
    EngineSetup,
    PairFacts,
    TargetFacts,
    TokenComparison,
    VllmArguments,
    read_launch_args,
    read_vllm_args,
)
from specbudget.domain.codesign.flag_rules import SIMULATED_LENGTH
from specbudget.domain.drafter import DraftAlgorithm, parse_algorithm
from specbudget.domain.kv_geometry import AttentionLayer, RecurrentLayer
from specbudget.domain.launch_arguments import spelled_out
from specbudget.domain.observation import EngineFacts
from specbudget.pair.launch_facts import with_defaults
from specbudget.pair.side import Side
from specbudget.sources.checkpoint import Checkpoint, ConfigFacts, TensorPart

_NOTABLE_SHARE = 0.01
_ALIASES = {DraftAlgorithm.EAGLE, DraftAlgorithm.MTP}
_NEVER_BUNDLED = {DraftAlgorithm.DFLASH, DraftAlgorithm.EAGLE3, DraftAlgorithm.STANDALONE}
_ALGORITHM_BY_NAME = (
    ("dspark", DraftAlgorithm.DSPARK),
    ("dflash", DraftAlgorithm.DFLASH),
    ("eagle3", DraftAlgorithm.EAGLE3),
    ("causallmeagle", DraftAlgorithm.EAGLE),
    ("nextn", DraftAlgorithm.MTP),
    ("mtp", DraftAlgorithm.MTP),
)
"""Words in the names of draft model classes, the more telling first."""

_NO_FACTS = ConfigFacts()


def pair_facts(
    target: Side | None,
    drafter: Side | None,
    *,
    engine: EngineSetup,
    budgeted: DraftAlgorithm | None = None,
    tokens: TokenComparison | None = None,
) -> PairFacts | None:
    """The facts of a pair; None where nothing points to a second model.

    Without a drafter of its own the target's checkpoint holds it. `budgeted` is the budget's algorithm; the engine's
    word comes first, then the budget's, then what the drafter's config says of itself. `tokens` is what
    `pair.tokens` says of their tokenizers: comparing them reads large files, so that the caller chooses when.
    """
    stated = None if drafter is None else stated_algorithm(drafter.checkpoint)
    algorithm = engine.algorithm or budgeted or stated
    if {engine.algorithm, budgeted} == _ALIASES:
        # the engine has one word for both, the budget tells which
        algorithm = budgeted
    if drafter is None and algorithm is None:
        return None
    bundled = drafter is None
    return PairFacts(
        algorithm=algorithm,
        target=TargetFacts() if target is None else _target(target),
        drafter=DrafterFacts(bundled=True, unseen=True)
        if bundled and engine.kind == "sglang" and algorithm in _NEVER_BUNDLED
        else _drafter(drafter or target, bundled=bundled, stated=stated),
        engine=_with_shape(engine, algorithm, target),
        budgeted=budgeted,
        second_model=algorithm is not DraftAlgorithm.NGRAM,
        tokens=tokens,
    )


def lone_facts(target: Side | None, *, engine: EngineSetup) -> PairFacts:
    """The facts of a target without a second model, for the rules that hold for it alone."""
    return PairFacts(
        algorithm=None,
        target=TargetFacts() if target is None else _target(target),
        drafter=DrafterFacts(),
        engine=engine,
        second_model=False,
    )


def _with_shape(engine: EngineSetup, algorithm: DraftAlgorithm | None, target: Side | None) -> EngineSetup:
    """The engine with what SGLang chooses of a chain's steps where none is given; a default, not a statement."""
    given = (engine.num_steps, engine.topk, engine.num_draft_tokens)
    told = engine.kind != "sglang" or engine.running or engine.flags.speculative_adaptive or given != (None, None, None)
    if told or algorithm is None or not algorithm.is_chain or target is None:
        return engine
    architecture = target.checkpoint.architecture
    chosen = with_defaults(EngineFacts(), algorithm=algorithm, architecture=architecture, block_size=None)
    shape = DraftShape(steps=chosen.num_steps, topk=chosen.topk, draft_tokens=chosen.num_draft_tokens)
    return replace(engine, default_shape=shape)


def engine_setup(budget: Budget, running: EngineFacts, flags: EngineFlags | None = None) -> EngineSetup:
    """The engine: the running one's word first, then the budget's launch arguments and what they leave at default.

    `running` are fresh facts, or ones that say nothing; `flags` what the running engine says of its arguments.
    """
    engine = budget.engine
    given, planned, asked = EngineFlags(), EngineFlags(), VllmArguments()
    if engine.args is not None and engine.kind == "sglang":
        given = read_launch_args(spelled_out(engine.args, running.version or engine.version or ""))
        planned = given.filled_from(DEFAULTS)
    elif engine.args is not None and engine.kind == "vllm":
        asked = read_vllm_args(engine.args)
        given = planned = asked.flags
    known = planned if flags is None else flags.filled_from(planned)
    staging = budget.budget.staging
    role = running.role or {"null": "unified"}.get(known.disaggregation_mode or "", known.disaggregation_mode)
    # vLLM counts drafts without the token that the target adds
    drafts = None if asked.num_speculative_tokens is None else asked.num_speculative_tokens + 1
    return EngineSetup(
        kind=engine.kind,
        version=running.version or engine.version,
        running=running != EngineFacts(),
        algorithm=parse_algorithm(running.algorithm or known.speculative_algorithm) or asked.algorithm,
        num_steps=_first(running.num_steps, known.speculative_num_steps),
        num_draft_tokens=_first(_first(running.num_draft_tokens, known.speculative_num_draft_tokens), drafts),
        topk=_first(running.topk, known.speculative_eagle_topk),
        adaptive=running.adaptive,
        draft_window=_first(running.draft_window, known.speculative_draft_window_size),
        tensor_parallel=_first(running.tensor_parallel, _first(given.tp_size, budget.parallelism.tensor)),
        pipeline_parallel=_first(running.pipeline_parallel, _first(given.pp_size, budget.parallelism.pipeline)),
        data_parallel=_first(running.data_parallel, _first(given.dp_size, budget.parallelism.data)),
        draft_tensor_parallel=asked.draft_tensor_parallel,
        attention_dp=running.attention_dp if running.attention_dp is not None else _attention_dp(known),
        prefill_only=role == "prefill",
        planned_staging=None if staging is None else staging.mode,
        kv_dtype=running.kv_dtype or known.kv_cache_dtype,
        draft_kv_dtype=running.draft_kv_dtype or known.speculative_draft_kv_cache_dtype,
        environment=MappingProxyType(dict(engine.env)),
        flags=known,
    )


def _attention_dp(flags: EngineFlags) -> bool | None:
    """Whether attention is data parallel, in the older spelling or the newer."""
    return True if (flags.attn_dp_size or 1) > 1 else flags.enable_dp_attention


def simulated_length(environment: Mapping[str, str]) -> float | None:
    """The acceptance length that an engine with this environment pretends; None for a real one."""
    try:
        length = float(environment.get(SIMULATED_LENGTH, ""))
    except ValueError:
        return None
    return length if math.isfinite(length) and length > 0 else None


def stated_algorithm(checkpoint: Checkpoint) -> DraftAlgorithm | None:
    """What a drafter's config says of itself: the speculators word, a Markov head, or the name of its class."""
    facts = checkpoint.facts
    if facts is None:
        return None
    if facts.algorithm is not None:
        return parse_algorithm(facts.algorithm)
    if facts.markov_rank:
        return DraftAlgorithm.DSPARK
    name = (checkpoint.architecture or "").lower()
    return next((algorithm for word, algorithm in _ALGORITHM_BY_NAME if word in name), None)


def _target(side: Side) -> TargetFacts:
    checkpoint, facts = side.checkpoint, side.checkpoint.facts or _NO_FACTS
    layers = facts.num_hidden_layers
    geometry = checkpoint.geometry
    return TargetFacts(
        name=str(checkpoint.path),
        architecture=checkpoint.architecture,
        model_type=facts.model_type,
        layers=None if layers is None else layers * side.loops,
        hidden=facts.hidden_size,
        numbered_layers=checkpoint.numbered_layers if side.loops == 1 else None,
        heads=facts.num_attention_heads,
        kv_heads=_kv_heads(checkpoint),
        vocab=facts.vocab_size,
        positions=facts.max_position_embeddings,
        rope=side.rope,
        quantization=facts.quantization_method,
        nextn_layers=facts.num_nextn_predict_layers,
        dtype=facts.dtype or checkpoint.dtype,
        kv_quantization=facts.kv_quantization,
        kv_scales=checkpoint.kv_scales,
        linear_layers=None if geometry is None else sum(isinstance(layer, RecurrentLayer) for layer in geometry.layers),
    )


def _drafter(side: Side | None, *, bundled: bool, stated: DraftAlgorithm | None) -> DrafterFacts:
    if side is None:
        return DrafterFacts(bundled=bundled)
    checkpoint, facts = side.checkpoint, side.checkpoint.facts or _NO_FACTS
    embedding, head = checkpoint.landmark("embed_tokens"), checkpoint.landmark("lm_head")
    fc, rows = _shape(checkpoint, "fc"), _shape(checkpoint, "d2t")
    known = checkpoint.tensor_groups is not None
    return DrafterFacts(
        architecture=checkpoint.architecture,
        model_type=facts.model_type,
        stated_algorithm=stated,
        taps=side.taps,
        uses_taps=side.uses_taps,
        tap_count=side.tap_count,
        num_target_layers=facts.num_target_layers,
        block_size=facts.block_size,
        sample_from_anchor=side.sample_from_anchor,
        layers=facts.num_hidden_layers,
        hidden=facts.hidden_size,
        target_hidden=facts.target_hidden_size,
        heads=None if bundled else facts.num_attention_heads,
        kv_heads=None if bundled else _kv_heads(checkpoint),
        vocab=facts.vocab_size,
        draft_vocab=facts.draft_vocab_size,
        mask_token_id=facts.mask_token_id,
        markov_rank=facts.markov_rank,
        markov_type=facts.markov_head_type,
        positions=facts.max_position_embeddings,
        rope=None if bundled else side.rope,
        quantization=facts.quantization_method,
        target_name=facts.target_name,
        bundled=bundled,
        bundled_block=any(key.startswith("dspark_") for _, key in facts.found),
        bundled_folder=bundled and (checkpoint.path / "dspark" / "config.json").is_file(),
        tied=facts.tie_word_embeddings,
        weights_known=known,
        dtypes=_dtypes(checkpoint),
        fc=(fc[0], fc[1]) if fc is not None and len(fc) == 2 else None,
        own_embedding=embedding is not None if known else None,
        own_head=head is not None if known else None,
        own_confidence=checkpoint.landmark("confidence_head") is not None if known else None,
        vocabulary_map_rows=rows[0] if rows else None,
        vocabulary_map=side.vocabulary_map,
        vocabulary_bytes=_vocabulary_bytes(checkpoint),
        markov_shape=_shape(checkpoint, "markov_w1"),
        dtype=facts.dtype or checkpoint.dtype,
        kv_quantization=facts.kv_quantization,
        kv_scales=checkpoint.kv_scales,
        windowed_layers=_windowed(checkpoint),
    )


def _shape(checkpoint: Checkpoint, module: str) -> tuple[int, ...] | None:
    mark = checkpoint.landmark(module)
    return None if mark is None else mark.shape


def _vocabulary_bytes(checkpoint: Checkpoint) -> int | None:
    """Embedding and head as stored."""
    if checkpoint.tensor_groups is None:
        return None
    parts = (TensorPart.EMBEDDING, TensorPart.HEAD)
    return sum(group.bytes for group in checkpoint.tensor_groups if group.part in parts)


def _kv_heads(checkpoint: Checkpoint) -> int | None:
    """KV heads of its layers; None where they differ, are latent, or are not known."""
    if checkpoint.geometry is None:
        return None
    heads = {layer.kv_heads if isinstance(layer, AttentionLayer) else None for layer in checkpoint.geometry.kv_layers}
    return heads.pop() if len(heads) == 1 else None


def _windowed(checkpoint: Checkpoint) -> int | None:
    """Layers that attend to a window of the context only."""
    if checkpoint.geometry is None:
        return None
    return sum(layer.window is not None for layer in checkpoint.geometry.kv_layers)


def _dtypes(checkpoint: Checkpoint) -> frozenset[str] | None:
    """Stored dtypes of the body that hold a notable share of it; counters and small buffers are left out."""
    if checkpoint.tensor_groups is None:
        return None
    sizes: Counter[str] = Counter()
    for group in checkpoint.tensor_groups:
        if group.part in (TensorPart.BODY, TensorPart.MTP):
            sizes[group.dtype] += group.parameters
    return frozenset(dtype for dtype, count in sizes.items() if count >= _NOTABLE_SHARE * sizes.total()) or None


def _first(value: int | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else value
