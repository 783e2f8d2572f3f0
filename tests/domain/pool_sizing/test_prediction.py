"""The pool's tokens to the byte, for plain targets and for those with recurrent state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from domain.pool_sizing.deployments import (
    DENSE,
    GATED,
    GIB,
    LATENT,
    LING_DRAFTER,
    LING_PAIR,
    attention,
    changed,
    hybrid,
    predicted,
)
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import LatentLayer, ModelGeometry
from specbudget.domain.pool_sizing import (
    Certainty,
    ExtraBuffer,
    PoolInputs,
    ProfiledMemory,
    Span,
    StatePlan,
    exactly,
    memory_from_bytes,
    memory_from_label,
    memory_from_log,
    predict_pool,
)

SGLANG = Path(__file__).parents[2] / "fixtures" / "sglang"

LATENTS = ModelGeometry(layers=(LATENT,) * 7)
"""Ling's latent layers alone."""


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


def test_ling_and_its_drafter_share_the_memory() -> None:
    """8,064 of 28,544 bytes per token are the target's: the drafter's KV takes 71.7 % of its tokens."""
    found = predicted(predict_pool(changed(LING_PAIR, target=LATENTS)))
    assert (found.target_token_bytes, found.charged_token_bytes, found.cell_bytes) == (8_064, 20_480, 28_544)
    assert found.cost is not None
    share = found.cost.kv_tokens / (found.cost.kv_tokens + found.tokens.point)
    assert share == pytest.approx(20_480 / 28_544, abs=1e-5)
    assert round(share, 3) == 0.717


def test_a_gib_of_free_memory_is_many_tokens() -> None:
    """At a fraction of 0.85 and 28,544 bytes a token each GiB is 31,974 tokens."""

    def tokens(gib: int) -> int:
        memory = memory_from_bytes(before_load=gib * GIB, target_weights=40 * GIB, drafter_weights=0)
        return predicted(predict_pool(changed(LING_PAIR, target=LATENTS, memory=memory))).tokens.point

    assert tokens(79) - tokens(78) in (31_974, 31_975)


def test_a_log_leaves_216_tokens_open_either_way() -> None:
    """0.005 x 1.15 GiB at 28,544 bytes a token."""
    memory = memory_from_log(
        before_load=78.42 * GIB, after_load=30.0 * GIB, target_weights=48.0 * GIB, drafter_weights=0.42 * GIB
    )
    found = predicted(predict_pool(changed(LING_PAIR, target=LATENTS, memory=memory)))
    assert found.certainty is Certainty.FROM_LOG
    assert found.tokens.high - found.tokens.point in (216, 217)
    assert found.tokens.point - found.tokens.low in (216, 217)


def test_an_estimate_is_never_tighter_than_a_twentieth() -> None:
    """A label of 80 GiB, and a fraction that was derived, leave 5 % open or more."""
    memory = memory_from_label(gpu_memory=80 * GIB, target_weights=15 * GIB, drafter_weights=GIB)
    for inputs in (changed(DENSE, memory=memory), changed(DENSE, fraction_estimated=True)):
        found = predicted(predict_pool(inputs))
        assert found.certainty is Certainty.ESTIMATE
        assert found.tokens.low <= found.tokens.point * 0.95
        assert found.tokens.high >= found.tokens.point * 1.05


def test_recurrent_state_with_the_states_of_a_verify_step() -> None:
    """Ling: 8,462,672,689 bytes, of them 9/19 plan (x - 10 x per) // (2.8 x per) = 71 slots of per = 18,995,200.

    15 x 9 states of a verify step and 72 slots leave 4,530,666,289 bytes, 158,725 tokens.
    """
    found = predicted(predict_pool(LING_PAIR))
    assert found.state is not None
    assert (found.state.slots, found.state.ratio, found.state.bytes_per_slot) == (71, 5, 18_995_200)
    assert found.state.scratch_bytes == 15 * 9 * 18_995_200
    assert found.state.state_bytes == 72 * 18_995_200
    assert found.tokens.point == 158_725
    assert found.max_running == 14


def test_a_replay_ring_takes_the_place_of_those_states() -> None:
    """A ring of 32 records is 13,798,400 bytes a slot: 121 slots, and 4,461,853,489 bytes are left."""
    found = predicted(predict_pool(changed(LING_PAIR, state=StatePlan(replay=True, replay_records=32))))
    assert found.state is not None
    assert (found.state.slots, found.state.bytes_per_slot) == (121, 18_995_200 + 13_798_400)
    assert found.state.scratch_bytes == 0
    assert found.tokens.point == 4_461_853_489 // 28_544 == 156_314


def test_slots_that_are_given() -> None:
    """100 slots serve 20 requests; 16 requests without a radix cache have one slot each."""
    given = predicted(predict_pool(changed(LING_PAIR, state=StatePlan(max_slots=100))))
    assert given.state is not None
    assert given.state.scratch_bytes == 21 * 9 * 18_995_200
    assert given.tokens.point == (8_462_672_689 - (21 * 9 + 101) * 18_995_200) // 28_544
    plain = predicted(predict_pool(changed(LING_PAIR, radix_cache=False, max_running=16)))
    assert plain.state is not None
    assert (plain.state.slots, plain.state.ratio) == (16, 1)
    assert plain.tokens.point == (8_462_672_689 - 17 * 10 * 18_995_200) // 28_544


GDN_PAIR = PoolInputs(
    release="0.5.23",
    memory=memory_from_bytes(before_load=100 * GIB, target_weights=69 * GIB, drafter_weights=GIB),
    target=hybrid(GATED, layers=48, interval=4),
    drafter=ModelGeometry(layers=(LATENT,)),
    algorithm=DraftAlgorithm.MTP,
    draft_tokens=4,
    nextn_layers=1,
    fraction=0.9,
    state=StatePlan(replay=True),
)
"""20 GiB for 36 layers of gated delta attention and 12 latent ones, with a bundled head."""


@pytest.mark.parametrize(
    ("release", "slot", "fixed", "slots", "cell"),
    [
        # one ring of 16 records, 14,229,504 bytes, for each of 48 requests and one more
        ("0.5.23", 77_266_944, 49 * 14_229_504, 121, 14_976),
        # a window of 4 tokens in each slot: 36 x (32,768 + 16,384 + 1,024) bytes
        ("0.5.18", 77_266_944 + 1_806_336, 0, 127, 14_975),
    ],
)
def test_gated_delta_rings_differ_by_release(release: str, slot: int, fixed: int, slots: int, cell: int) -> None:
    """0.5.23 keeps them by request, 0.5.18 by slot and only as long as a verify window.

    0.5.18 multiplies 13,824 bytes by 1 + 1/12 in floating point and so comes to 14,975 of the 14,976.
    """
    found = predicted(predict_pool(changed(GDN_PAIR, release=release)))
    assert found.state is not None
    assert (found.state.bytes_per_slot, found.state.fixed_bytes) == (slot, fixed)
    assert (found.state.slots, found.cell_bytes) == (slots, cell)
    assert found.tokens.point == (20 * GIB - (slots + 1) * slot - fixed) // cell


@pytest.mark.parametrize(
    ("buffer", "overlap", "skips", "ratio"),
    [
        (ExtraBuffer.PLAIN, True, False, 5),
        (ExtraBuffer.PLAIN, False, False, 4),
        (ExtraBuffer.LAZY, True, False, 4),
        (ExtraBuffer.NONE, False, False, 3),
        (ExtraBuffer.PLAIN, True, True, 4),
        (ExtraBuffer.NONE, False, True, 3),
    ],
)
def test_slots_per_running_request(buffer: ExtraBuffer, overlap: bool, skips: bool, ratio: int) -> None:
    """Three, and what the radix cache tracks beside them."""
    plan = StatePlan(extra_buffer=buffer, skip_decode_lock=skips)
    found = predicted(predict_pool(changed(LING_PAIR, state=plan, overlap_schedule=overlap)))
    assert found.state is not None
    assert found.state.ratio == ratio


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


def test_a_fp8_drafter_halves_its_share() -> None:
    """98,304 bytes of a target in fp8 beside 20,480 or 10,240 of the drafter: 17.2 % and 9.4 %."""
    target, drafter = attention(48, 8), attention(5, 8)
    wide = predicted(predict_pool(changed(DENSE, target=target, drafter=drafter, target_element_bytes=1)))
    narrow = predicted(
        predict_pool(changed(DENSE, target=target, drafter=drafter, target_element_bytes=1, drafter_element_bytes=1))
    )
    assert (wide.target_token_bytes, wide.charged_token_bytes) == (98_304, 20_480)
    assert round(wide.charged_token_bytes / wide.cell_bytes, 3) == 0.172
    assert round(narrow.charged_token_bytes / narrow.cell_bytes, 3) == 0.094


def test_copies_of_embedding_and_head_cost_tokens() -> None:
    """2,621,440,000 bytes of copies at 16,384 a token take 160,000 of 600,000 tokens."""
    target = ModelGeometry(layers=attention(16, 4).layers)
    rest, copies = 9_830_400_000, 2_621_440_000

    def tokens(drafter_weights: int) -> int:
        memory = memory_from_bytes(
            before_load=40 * GIB + rest, target_weights=40 * GIB, drafter_weights=drafter_weights
        )
        inputs = changed(
            DENSE, release="0.5.18", target=target, algorithm=DraftAlgorithm.MTP, memory=memory, own_path=False
        )
        return predicted(predict_pool(changed(inputs, target_element_bytes=1, fraction=1.0))).tokens.point

    assert (tokens(0), tokens(copies)) == (600_000, 440_000)


def test_published_pools_of_a_large_pair() -> None:
    """24 latent layers with a drafter of plain heads: 27,648 and 20,480 bytes a token; of a latent one 5,760.

    The published pools are 1,779,275 tokens with 33.94 GiB of drafter KV and 2,491,831 with 13.37 GiB.
    """
    target = ModelGeometry(layers=(LATENT,) * 24)
    latent_drafter = ModelGeometry(layers=(LATENT,) * 5)
    inputs = changed(LING_PAIR, target=target, drafter=attention(5, 8), tensor_parallel=1)
    found = predicted(predict_pool(changed(inputs, max_tokens=1_779_275, fraction=0.98, memory=_roomy())))
    assert (found.target_token_bytes, found.drafter_token_bytes) == (27_648, 20_480)
    assert round(found.drafter_pool_bytes / GIB, 2) == 33.94
    head = changed(inputs, algorithm=DraftAlgorithm.MTP, drafter=latent_drafter, max_tokens=2_491_831, memory=_roomy())
    narrow = predicted(predict_pool(changed(head, fraction=0.98)))
    assert narrow.drafter_token_bytes == narrow.charged_token_bytes == 5_760
    assert round(narrow.drafter_pool_bytes / GIB, 2) == 13.37
    assert round(narrow.tokens.point / found.tokens.point, 2) == 1.40
    assert LING_DRAFTER.layers[0] != latent_drafter.layers[0]


def _roomy() -> ProfiledMemory:
    return memory_from_bytes(before_load=400 * GIB, target_weights=100 * GIB, drafter_weights=GIB)


def test_one_drafter_layer_is_one_whatever_the_draft_length() -> None:
    """100 GiB at 131,072 + 4,096 bytes a token hold 794,375 tokens, of which the target has 96.97 %."""
    memory = memory_from_bytes(before_load=200 * GIB, target_weights=100 * GIB, drafter_weights=0)
    inputs = changed(DENSE, target=attention(32, 8), algorithm=DraftAlgorithm.EAGLE3, drafter=attention(1, 8))
    found = predicted(predict_pool(changed(inputs, memory=memory, fraction=1.0, draft_tokens=5)))
    assert found.tokens.point == 794_375
    assert round(found.target_token_bytes / found.cell_bytes, 4) == 0.9697


def test_a_drafter_outside_the_budget_costs_bytes_elsewhere() -> None:
    """40 GiB at 98,304 bytes hold 436,906 tokens; with 900,000,000 bytes of weights and 4,096 a token 410,641."""
    memory = memory_from_bytes(before_load=80 * GIB, target_weights=40 * GIB, drafter_weights=900_000_000)
    inputs = changed(
        DENSE,
        target=attention(48, 8),
        target_element_bytes=1,
        algorithm=DraftAlgorithm.DFLASH,
        drafter=attention(1, 8),
        memory=memory,
        fraction=1.0,
    )
    found = predicted(predict_pool(inputs))
    assert found.tokens.point == 410_641
    assert found.without_drafter is not None
    assert found.without_drafter.point == 436_906


def test_one_more_slot_takes_tokens_at_once() -> None:
    """From 71 to 72 slots 18,995,200 bytes leave the KV: the bounds hold what lies between their ends."""
    # the plan reaches 72 slots at 19/9 x (72 x 2.8 + 10) x 18,995,200 = 8,485,366,897 bytes, 22,694,208 more
    before = 78 * GIB + int(22_694_208 / 0.85)
    memory = LING_PAIR.memory
    low, high = (
        predicted(predict_pool(changed(LING_PAIR, memory=replace(memory, before_load=exactly(free)))))
        for free in (before - 1000, before + 1000)
    )
    assert (low.state and low.state.slots, high.state and high.state.slots) == (71, 72)
    assert high.tokens.point - low.tokens.point == pytest.approx(-18_995_200 / 28_544, abs=1)
    span = Span(low=before - 1000, point=before, high=before + 20_000_000)
    wide = predicted(predict_pool(changed(LING_PAIR, memory=replace(memory, before_load=span))))
    assert wide.tokens.low <= high.tokens.point < low.tokens.point <= wide.tokens.high


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
def test_pools_are_those_that_the_engine_allocated(version: str) -> None:
    """The engine's own pool classes, executed for 8,192 tokens, took as many bytes for target and drafter."""
    recorded = {
        case["tag"]: case["real_total"]
        for case in json.loads((SGLANG / f"kv_pool_formula_check_{version}.json").read_text())
    }
    small = changed(DENSE, release=version, max_tokens=8_192)
    found = predicted(predict_pool(small))
    assert found.target_pool_bytes == recorded["target qwen3-8b-like 36L 8kv 128 bf16 (tokens scaled down)"]
    assert found.drafter_pool_bytes == recorded["dflash draft 5L 8kv 128 bf16"]
    narrow = predicted(predict_pool(changed(small, page=64, drafter_element_bytes=1)))
    assert narrow.drafter_pool_bytes == recorded["dflash draft 5L 8kv 128 fp8"]
    head = changed(small, page=64, algorithm=DraftAlgorithm.EAGLE3, drafter=attention(1, 8))
    assert predicted(predict_pool(head)).drafter_pool_bytes == recorded["eagle3 draft 1L 8kv 128 bf16 page64"]
    latents = changed(small, page=64, target=ModelGeometry(layers=(LATENT,) * 27))
    assert predicted(predict_pool(latents)).target_pool_bytes == recorded["MLA 27L 512+64 bf16"]


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
