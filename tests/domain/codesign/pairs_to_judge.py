"""Pairs that fit, from which the tests change one fact at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specbudget.domain.codesign import (
    DEFAULTS,
    DrafterFacts,
    EngineFlags,
    EngineSetup,
    PairFacts,
    TapStatement,
    TargetFacts,
    TokenComparison,
    TokenizerState,
    VocabularyMap,
    judge,
)
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Finding

NESTED = "dflash_config.target_layer_ids"
EAGLE3_KEY = "eagle_config.eagle_aux_hidden_state_layer_ids"

TARGET = TargetFacts(
    name="/models/Qwen3-8B",
    architecture="Qwen3ForCausalLM",
    model_type="qwen3",
    layers=36,
    numbered_layers=36,
    hidden=4096,
    vocab=151936,
    positions=40960,
    linear_layers=0,
    nextn_layers=0,
    dtype="bfloat16",
    kv_scales=False,
)
DRAFTER = DrafterFacts(
    architecture="DSparkDraftModel",
    model_type="qwen3",
    stated_algorithm=DraftAlgorithm.DSPARK,
    taps=(TapStatement(key=NESTED, ids=(1, 9, 17, 25, 33)),),
    num_target_layers=36,
    block_size=7,
    layers=5,
    hidden=4096,
    heads=32,
    vocab=151936,
    mask_token_id=151669,
    markov_rank=256,
    markov_type="vanilla",
    positions=40960,
    target_name="Qwen/Qwen3-8B",
    weights_known=True,
    dtypes=frozenset({"BF16"}),
    fc=(4096, 5 * 4096),
    own_embedding=True,
    own_head=True,
    vocabulary_bytes=2 * 151936 * 4096 * 2,
    markov_shape=(151936, 256),
    dtype="bfloat16",
    kv_scales=False,
    windowed_layers=0,
)
SAME_TOKENS = TokenComparison(state=TokenizerState.SAME_FILE)
ENGINE = EngineSetup(
    kind="sglang",
    version="0.5.23",
    algorithm=DraftAlgorithm.DSPARK,
    num_draft_tokens=8,
    tensor_parallel=4,
    pipeline_parallel=1,
    data_parallel=1,
    kv_dtype="auto",
    flags=DEFAULTS,
)
DSPARK = PairFacts(algorithm=DraftAlgorithm.DSPARK, target=TARGET, drafter=DRAFTER, engine=ENGINE, tokens=SAME_TOKENS)

DFLASH = PairFacts(
    algorithm=DraftAlgorithm.DFLASH,
    target=TARGET,
    drafter=replace(
        DRAFTER,
        architecture="DFlashDraftModel",
        stated_algorithm=DraftAlgorithm.DFLASH,
        block_size=16,
        markov_rank=None,
        markov_type=None,
        markov_shape=None,
    ),
    engine=replace(ENGINE, algorithm=DraftAlgorithm.DFLASH, num_draft_tokens=16),
    tokens=SAME_TOKENS,
)

EAGLE3 = PairFacts(
    algorithm=DraftAlgorithm.EAGLE3,
    target=TARGET,
    drafter=DrafterFacts(
        architecture="LlamaForCausalLMEagle3",
        model_type="llama",
        stated_algorithm=DraftAlgorithm.EAGLE3,
        taps=(TapStatement(key=EAGLE3_KEY, ids=(1, 17, 32)),),
        layers=1,
        hidden=4096,
        heads=32,
        vocab=151936,
        draft_vocab=32000,
        positions=40960,
        target_name="Qwen/Qwen3-8B",
        weights_known=True,
        dtypes=frozenset({"BF16"}),
        fc=(4096, 3 * 4096),
        own_embedding=True,
        own_head=True,
        vocabulary_map_rows=32000,
        vocabulary_map=VocabularyMap(
            rows=32000, least=0, most=151640, distinct=32000, flags=151936, flagged=32000, agrees=True
        ),
        dtype="bfloat16",
        kv_scales=False,
        windowed_layers=0,
    ),
    engine=replace(ENGINE, algorithm=DraftAlgorithm.EAGLE3, num_draft_tokens=4, num_steps=3, topk=1),
    tokens=SAME_TOKENS,
)

VLLM = replace(
    EAGLE3,
    drafter=replace(EAGLE3.drafter, taps=(TapStatement(key=EAGLE3_KEY, ids=(2, 18, 33)),)),
    engine=EngineSetup(
        kind="vllm",
        version="0.32.0",
        algorithm=DraftAlgorithm.EAGLE3,
        num_draft_tokens=4,
        draft_tensor_parallel=4,
        tensor_parallel=4,
        pipeline_parallel=1,
        kv_dtype="auto",
    ),
)
"""An EAGLE-3 head on vLLM, which takes its taps as inputs of layers."""


def target(pair: PairFacts, **changes: Any) -> PairFacts:
    """The pair with other facts of its target."""
    return replace(pair, target=replace(pair.target, **changes))


def drafter(pair: PairFacts, **changes: Any) -> PairFacts:
    """The pair with other facts of its drafter."""
    return replace(pair, drafter=replace(pair.drafter, **changes))


def engine(pair: PairFacts, **changes: Any) -> PairFacts:
    """The pair on another engine."""
    return replace(pair, engine=replace(pair.engine, **changes))


def flags(pair: PairFacts, **changes: Any) -> PairFacts:
    """The pair with other launch arguments."""
    return engine(pair, flags=EngineFlags(**changes).filled_from(pair.engine.flags))


def environment(pair: PairFacts, **variables: str) -> PairFacts:
    """The pair on an engine with these environment variables."""
    return engine(pair, environment=variables)


def tokens(pair: PairFacts, **comparison: Any) -> PairFacts:
    """The pair with tokenizers of which something else was found."""
    return replace(pair, tokens=TokenComparison(**{"state": TokenizerState.COMPARED, **comparison}))


def taps(pair: PairFacts, *ids: int, key: str | None = None) -> PairFacts:
    """The pair with other taps."""
    assert pair.drafter.taps is not None
    return drafter(pair, taps=(TapStatement(key=key or pair.drafter.taps[0].key, ids=ids),))


def finding(pair: PairFacts, what: str) -> Finding:
    """The finding of one rule."""
    found = [each for each in judge(pair) if each.check == what]
    assert len(found) == 1, f"{what}: {len(found)} findings"
    return found[0]
