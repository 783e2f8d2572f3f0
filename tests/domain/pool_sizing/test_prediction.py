"""The pool's tokens to the byte, and what goes with them, for targets without recurrent state."""

from __future__ import annotations

import pytest

from domain.pool_sizing.deployments import (
    DENSE,
    GDN_PAIR,
    GIB,
    LATENT,
    LATENTS,
    LING_PAIR,
    attention,
    changed,
    predicted,
)
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import LatentLayer, ModelGeometry
from specbudget.domain.pool_sizing import (
    Certainty,
    StatePlan,
    memory_from_label,
    predict_pool,
)


@pytest.mark.parametrize("release", ["0.5.18", "0.5.23", "v0.5.23.post1"])
def test_a_dense_pair_to_the_byte(release: str) -> None:
    """0.85 x 78 - 15 - 1 = 50.3 GiB are 54,009,213,747 bytes; 147,456 + 20,480 a token make 321,605."""
    found = predicted(predict_pool(changed(DENSE, release=release)))
    assert (found.tokens.low, found.tokens.point, found.tokens.high) == (321_605, 321_605, 321_605)
    assert (found.target_token_bytes, found.charged_token_bytes, found.cell_bytes) == (147_456, 20_480, 167_936)
    assert found.target_pool_bytes == (321_605 + 1) * 147_456
    assert found.drafter_pool_bytes == (321_605 + 1) * 20_480
    assert found.unpriced_bytes == 20_480, "the padding page"
    assert found.certainty is Certainty.EXACT
    assert found.max_running == 48
    assert found.state is None


def test_what_the_drafter_costs_is_split() -> None:
    """Without: 51.3 GiB at 147,456 a token. Of the difference the charge takes 44,668 tokens, the weights 7,282."""
    found = predicted(predict_pool(DENSE))
    assert found.without_drafter is not None
    assert found.cost is not None
    assert found.without_drafter.point == int(51.3 * GIB) // 147_456 == 373_555
    assert (found.cost.kv_tokens, found.cost.state_tokens, found.cost.weights_tokens) == (44_668, 0, 7_282)
    assert found.cost.tokens == found.without_drafter.point - found.tokens.point


def test_pages_and_caps() -> None:
    """Whole pages of 64; a cap is brought to whole pages too."""
    assert predicted(predict_pool(changed(DENSE, page=64))).tokens.point == 321_605 // 64 * 64
    capped = predicted(predict_pool(changed(DENSE, page=64, max_tokens=100_000)))
    assert capped.tokens.point == 100_000 // 64 * 64


def test_a_running_limit_is_the_least_of_three() -> None:
    """Given, by the context where nothing is given, and half the pool."""
    plain = changed(DENSE, algorithm=None, drafter=None)
    assert predicted(predict_pool(changed(DENSE, max_running=200))).max_running == 200
    assert predicted(predict_pool(plain)).max_running is None
    # int(366272 / 40960 x 512) = 4578, at most 4096
    assert predicted(predict_pool(changed(plain, context_length=40_960))).max_running == 4_096
    assert predicted(predict_pool(changed(DENSE, max_tokens=40))).max_running == 20


def test_an_estimate_is_never_tighter_than_a_twentieth() -> None:
    """A label of 80 GiB, and a fraction that was derived, leave 5 % open or more."""
    memory = memory_from_label(gpu_memory=80 * GIB, target_weights=15 * GIB, drafter_weights=GIB)
    for inputs in (changed(DENSE, memory=memory), changed(DENSE, fraction_estimated=True)):
        found = predicted(predict_pool(inputs))
        assert found.certainty is Certainty.ESTIMATE
        assert found.tokens.low <= found.tokens.point * 0.95
        assert found.tokens.high >= found.tokens.point * 1.05


def test_attention_data_parallelism_charges_a_block_drafter_by_release() -> None:
    """With two attention-DP groups of four ranks 0.5.18 charges a quarter of the heads while a rank holds half."""
    inputs = changed(LING_PAIR, target=LATENTS, attention_data_parallel=2)
    later = predicted(predict_pool(inputs))
    early = predicted(predict_pool(changed(inputs, release="0.5.18")))
    assert later.charged_token_bytes == later.drafter_token_bytes == 40_960
    assert (early.charged_token_bytes, early.drafter_token_bytes) == (20_480, 40_960)
    assert early.unpriced_bytes == early.tokens.point * 20_480 + 40_960
    assert any("are not charged" in warning for warning in early.warnings)
    assert later.max_running == 24


def test_a_head_without_a_path_is_charged_from_0_5_23_on() -> None:
    """One of twelve latent layers' worth; before, its pool must fit where nothing is kept for it."""
    inputs = changed(GDN_PAIR, own_path=False)
    assert predicted(predict_pool(inputs)).charged_token_bytes == 1_152
    early = predicted(predict_pool(changed(inputs, release="0.5.18")))
    assert early.charged_token_bytes == 0
    assert early.unpriced_bytes == early.drafter_pool_bytes > 0


def test_an_unequal_drafter_is_charged_as_the_target() -> None:
    """One layer of the target's own bytes, though the drafter's heads are few and its elements wide."""
    inputs = changed(
        DENSE, algorithm=DraftAlgorithm.EAGLE3, drafter=attention(1, 1), target_element_bytes=1, nextn_layers=None
    )
    found = predicted(predict_pool(inputs))
    assert (found.charged_token_bytes, found.drafter_token_bytes) == (2_048, 512)
    assert found.unpriced_bytes < 0
    assert any("lie idle" in warning for warning in found.warnings)


def test_decode_context_ranks_share_the_target_and_not_the_drafter() -> None:
    """Two ranks hold the same heads of the target; the drafter has the rows of both on each."""
    inputs = changed(DENSE, tensor_parallel=4, decode_context_parallel=2)
    later = predicted(predict_pool(inputs))
    early = predicted(predict_pool(changed(inputs, release="0.5.18")))
    assert later.target_token_bytes == 147_456 // 2
    assert later.charged_token_bytes == 2 * 20_480 // 4
    assert later.tokens.point == 2 * early.tokens.point, "the later release reports the tokens of all ranks"


def test_sparse_latents_in_scaled_fp8() -> None:
    """656 bytes in both layers and index keys of 132 in one; the drafter's layer has both."""
    sparse = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
    inputs = changed(
        GDN_PAIR,
        target=ModelGeometry(layers=(sparse, LATENT)),
        drafter=ModelGeometry(layers=(sparse,)),
        target_element_bytes=1,
        drafter_element_bytes=1,
        scaled_fp8_latent=True,
        state=StatePlan(),
    )
    found = predicted(predict_pool(inputs))
    assert found.target_token_bytes == 2 * 656 + 132
    assert found.charged_token_bytes == 656 + 132
    assert found.drafter_token_bytes == 656 + 132
    assert any("attention backend" in warning for warning in found.warnings)


def test_the_steps_tell_the_arithmetic() -> None:
    """Each step has words, this deployment's value and a unit, from free memory to tokens."""
    found = predicted(predict_pool(LING_PAIR))
    told = {step.words: (step.value, step.unit) for step in found.steps}
    assert told["free before any weight is loaded"] == (78 * GIB, "bytes")
    assert told["left for KV and recurrent state"] == (8_462_672_689, "bytes")
    assert told["request slots"] == (71, "slots")
    assert told["KV of one token of the target"] == (8_064, "bytes")
    assert told["charged per token for the drafter"] == (20_480, "bytes")
    assert told["max_total_num_tokens"] == (158_725, "tokens")
    assert str(found.steps[0]) == "free before any weight is loaded: 83,751,862,272 bytes"
