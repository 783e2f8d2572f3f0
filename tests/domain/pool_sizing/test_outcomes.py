"""What is not predicted, and where the engine refuses to start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.pool_sizing.deployments import DENSE, GIB, LATENT, LING_PAIR, attention, changed, hybrid, predicted
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, ModelGeometry, RecurrentLayer, SharedKvLayer
from specbudget.domain.pool_sizing import (
    LimitVerdict,
    NotEnoughMemory,
    NotPredicted,
    PoolInputs,
    ServingRole,
    Span,
    StatePlan,
    at_least,
    memory_from_bytes,
    predict_pool,
)
from specbudget.domain.recurrent_state import NO_STATE

WINDOWED = ModelGeometry(layers=(AttentionLayer(kv_heads=8, head_dim=128, v_head_dim=128, window=128),))
INDEXED = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)

REASONS: list[tuple[str, PoolInputs, dict[str, Any], str]] = [
    ("another engine", DENSE, {"engine": "vllm"}, "vllm"),
    ("another release", DENSE, {"release": "0.5.20"}, "0.5.20 was not read"),
    ("another layout", DENSE, {"other_layouts": ("--enable-unified-memory",)}, "--enable-unified-memory"),
    ("pipeline stages", DENSE, {"pipeline_parallel": 2}, "pipeline stage"),
    ("context ranks", DENSE, {"context_parallel": 2}, "context parallelism"),
    ("no fraction", DENSE, {"fraction": None}, "mem_fraction_static"),
    ("no target", DENSE, {"target": None}, "target's KV is not known"),
    ("no element size", DENSE, {"target_element_bytes": None}, "target's KV dtype"),
    ("windows", DENSE, {"target": WINDOWED}, "sliding windows"),
    ("shared KV", DENSE, {"target": ModelGeometry(layers=(LATENT, SharedKvLayer()))}, "share their KV"),
    ("no KV", DENSE, {"target": ModelGeometry(layers=(RecurrentLayer(state=NO_STATE),))}, "no layer"),
    (
        "a sparse target over context ranks",
        LING_PAIR,
        {"target": ModelGeometry(layers=(INDEXED,)), "decode_context_parallel": 2},
        "decode context",
    ),
    ("sizing after capture", DENSE, {"post_capture_sizing": True}, "graph capture"),
    ("no drafter", DENSE, {"drafter": None}, "drafter's KV is not known"),
    ("no element size of the drafter", DENSE, {"drafter_element_bytes": None}, "drafter's KV dtype"),
    ("a block drafter of latents", DENSE, {"drafter": ModelGeometry(layers=(LATENT,))}, "plain attention"),
    (
        "DFlash with attention-DP",
        DENSE,
        {"release": "0.5.18", "tensor_parallel": 2, "attention_data_parallel": 2},
        "refuses DFlash",
    ),
    ("unknown state", LING_PAIR, {"target": hybrid(None)}, "recurrent state"),
    ("state that does not split", LING_PAIR, {"tensor_parallel": 3}, "recurrent state"),
    ("no draft tokens", LING_PAIR, {"draft_tokens": None}, "draft tokens"),
    (
        "index keys apart",
        LING_PAIR,
        {"target": ModelGeometry(layers=(INDEXED, LATENT)), "release": "0.5.18", "role": ServingRole.DECODE},
        "index keys",
    ),
]


@pytest.mark.parametrize(
    ("inputs", "changes", "words"), [case[1:] for case in REASONS], ids=[case[0] for case in REASONS]
)
def test_what_is_not_predicted_says_why(inputs: PoolInputs, changes: dict[str, Any], words: str) -> None:
    """Nothing is approximated where a rule or a fact is missing."""
    found = predict_pool(changed(inputs, **changes))
    assert isinstance(found, NotPredicted)
    assert words in found.reason


def test_sizing_after_capture_leaves_latent_targets_alone() -> None:
    """The engine leaves out targets with a latent KV, so the prediction stands."""
    found = predicted(predict_pool(changed(LING_PAIR, post_capture_sizing=True)))
    assert found.tokens == predicted(predict_pool(LING_PAIR)).tokens
    assert any("no effect" in warning for warning in found.warnings)


def test_weights_that_leave_nothing_are_a_refusal() -> None:
    """0.85 of 78 GiB is less than 70 GiB of weights."""
    memory = memory_from_bytes(before_load=78 * GIB, target_weights=69 * GIB, drafter_weights=GIB)
    found = predict_pool(changed(DENSE, memory=memory))
    assert isinstance(found, NotEnoughMemory)
    assert "3.70 GiB are missing" in found.message
    assert found.rest_bytes.point < 0
    assert found.steps


def test_state_that_does_not_serve_one_request_is_a_refusal() -> None:
    """A slot per request is asked for, and what is left holds fewer than one request needs."""
    found = predict_pool(changed(LING_PAIR, state=StatePlan(max_slots=4)))
    assert isinstance(found, NotEnoughMemory)
    assert "state of one request" in found.message


def test_a_refusal_within_the_bounds_is_said() -> None:
    """From a GiB too little to a GiB left: no limit is met for sure."""
    memory = memory_from_bytes(before_load=78 * GIB, target_weights=65 * GIB, drafter_weights=GIB)
    wide = replace(memory, target_weights=Span(low=64.0 * GIB, point=65.0 * GIB, high=66.0 * GIB))
    found = predicted(predict_pool(changed(DENSE, memory=wide)))
    assert found.tokens.low == 0 < found.tokens.point < found.tokens.high
    assert any("refuses to start" in warning for warning in found.warnings)
    assert at_least(found.tokens, 1) is LimitVerdict.UNDECIDED


def test_an_ngram_drafter_costs_only_its_part_of_the_state() -> None:
    """No weights, no KV, no charge."""
    memory = memory_from_bytes(before_load=78 * GIB, target_weights=16 * GIB, drafter_weights=0)
    inputs = changed(DENSE, algorithm=DraftAlgorithm.NGRAM, drafter=None, memory=memory)
    found = predicted(predict_pool(inputs))
    assert found.charged_token_bytes == found.drafter_pool_bytes == 0
    assert found.cost is not None
    assert found.cost.tokens == 0


def test_without_the_drafter_s_weights_its_cost_is_not_said() -> None:
    """What was measured after loading stands, what the weights took does not."""
    memory = replace(DENSE.memory, drafter_weights=None)
    found = predicted(predict_pool(changed(DENSE, memory=memory)))
    assert found.without_drafter is None
    assert found.cost is None


def test_a_run_without_speculation_has_no_cost() -> None:
    """There is nothing to compare with."""
    found = predicted(predict_pool(changed(DENSE, algorithm=None, drafter=None, target=attention(36, 8))))
    assert found.cost is None
    assert found.charged_token_bytes == 0
