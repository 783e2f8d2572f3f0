"""The drafter's KV numbers against worked examples, and the laws between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.drafter import (
    DraftAlgorithm,
    DraftKv,
    block_draft_tokens,
    parse_algorithm,
    step_rows,
    verify_window,
)
from specbudget.domain.drafter_cost import charged_bytes_per_token, cost_in_target_tokens, kv_cost_ratio
from specbudget.domain.kv_geometry import (
    AttentionLayer,
    LatentLayer,
    ModelGeometry,
    RecurrentLayer,
    SharedKvLayer,
)

GIB = 2**30
DSPARK, DFLASH, EAGLE, EAGLE3, MTP, STANDALONE, NGRAM = DraftAlgorithm


def attention(layers: int, kv_heads: int, head_dim: int, window: int | None = None) -> ModelGeometry:
    """A drafter with per-head KV."""
    layer = AttentionLayer(kv_heads=kv_heads, head_dim=head_dim, v_head_dim=head_dim, window=window)
    return ModelGeometry(layers=(layer,) * layers)


LATENT = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64)
LING = ModelGeometry(layers=tuple(LATENT if (index + 1) % 6 == 0 else RecurrentLayer() for index in range(42)))
LING_DSPARK = attention(5, 32, 128)
ONE = attention(1, 1, 1)
"""A drafter whose token takes 4 bytes at two bytes per element."""


@pytest.mark.parametrize(
    ("word", "algorithm"),
    [
        ("DSPARK", DSPARK),
        ("DFLASH", DFLASH),
        ("EAGLE", EAGLE),
        ("EAGLE3", EAGLE3),
        ("STANDALONE", STANDALONE),
        ("NGRAM", NGRAM),
        ("NEXTN", MTP),
        ("mtp", MTP),
        (" dspark ", DSPARK),
        ("UNO", None),
        ("FROZEN_KV_MTP", None),
        ("", None),
        (None, None),
    ],
)
def test_words_for_algorithms(word: str | None, algorithm: DraftAlgorithm | None) -> None:
    """The engine's and the budget's words in any case; anything else is nothing known."""
    assert parse_algorithm(word) is algorithm


@pytest.mark.parametrize(
    ("algorithm", "steps", "tokens", "window"),
    [
        (DSPARK, 1, 9, 9),
        (DFLASH, 1, 16, 16),
        (EAGLE, 3, 4, 4),
        (EAGLE, 3, 16, 4),
        (EAGLE3, 3, 2, 2),
        (EAGLE3, 5, 32, 6),
        (MTP, 1, 2, 2),
        (STANDALONE, 4, None, 5),
        (NGRAM, None, 12, 12),
        (DSPARK, 1, None, None),
        (EAGLE, None, 4, None),
        (None, 1, 9, 9),
        (None, None, 12, 12),
        (None, 3, 16, 4),
        (None, None, None, None),
    ],
)
def test_verify_window(
    algorithm: DraftAlgorithm | None, steps: int | None, tokens: int | None, window: int | None
) -> None:
    """The largest acceptance length: the block's tokens, or a path of one draft per step and the bonus token."""
    assert verify_window(algorithm, num_steps=steps, num_draft_tokens=tokens) == window


@pytest.mark.parametrize(
    ("algorithm", "block", "tokens"), [(DSPARK, 8, 9), (DFLASH, 16, 16), (EAGLE, 8, None), (DSPARK, None, None)]
)
def test_draft_tokens_of_a_block(algorithm: DraftAlgorithm, block: int | None, tokens: int | None) -> None:
    """DSpark's block size is gamma, so one token more is verified; DFlash's block is the window."""
    assert block_draft_tokens(algorithm, block) == tokens


@pytest.mark.parametrize(
    ("algorithm", "steps", "topk", "tokens", "rows"),
    [
        (DSPARK, 1, 1, 9, 9),
        (DFLASH, 1, 1, 16, 16),
        (EAGLE, 3, 1, 4, 4),
        (EAGLE, 5, 8, 16, 40),
        (EAGLE3, 3, 4, 64, 64),
        (MTP, 3, None, None, 4),
        (EAGLE, 3, 4, None, None),
        (EAGLE, None, 1, 4, None),
        (NGRAM, None, None, 12, 0),
        (DSPARK, 1, 1, None, None),
    ],
)
def test_rows_of_a_step(
    algorithm: DraftAlgorithm, steps: int | None, topk: int | None, tokens: int | None, rows: int | None
) -> None:
    """A tree writes topk rows per step although only one path can be accepted."""
    assert step_rows(algorithm, num_steps=steps, topk=topk, num_draft_tokens=tokens) == rows


def test_ling_dspark_at_tp4() -> None:
    """Block floor 8.4 MiB, need 7.51 GiB at 48 requests of 8,192 tokens, and 71.7 % of the target's token budget."""
    kv = DraftKv(algorithm=DSPARK, geometry=LING_DSPARK, step_rows=9, tensor_parallel=4)
    assert kv.bytes_per_token == 20_480
    assert kv.block_floor_bytes(48) == 48 * 9 * 20_480
    assert round(kv.block_floor_bytes(48) / 2**20, 1) == 8.4
    need = kv.planned_need_bytes(concurrency=48, tokens_per_request=8192)
    assert need == 48 * 8201 * 20_480
    assert round(need / GIB, 2) == 7.51
    assert round(kv_cost_ratio(target_token_bytes=8064, charged_token_bytes=20_480), 3) == 0.717


@pytest.mark.parametrize("tokens", [2047, 8192, 1_000_000])
def test_a_windowed_drafter_needs_no_more_than_its_windows(tokens: int) -> None:
    """GLM-5.3's DSpark drafter, three layers of window 2,048: 4.52 GiB at any request length from 2,047 on."""
    kv = DraftKv(algorithm=DSPARK, geometry=attention(3, 64, 64, window=2048), step_rows=9)
    assert kv.bytes_per_token == 49_152
    assert round(kv.planned_need_bytes(concurrency=48, tokens_per_request=tokens) / GIB, 2) == 4.52


def test_each_layer_has_its_own_window() -> None:
    """Four sliding layers and a full one: only the full one needs a row for every token."""
    layers = (*attention(4, 8, 128, window=2048).layers, *attention(1, 8, 128).layers)
    kv = DraftKv(algorithm=DFLASH, geometry=ModelGeometry(layers=layers), step_rows=16)
    per_layer = 4096
    assert kv.planned_need_bytes(concurrency=1, tokens_per_request=8192) == per_layer * (4 * (2047 + 16) + 8192 + 16)


WINDOW_FLAGS = [
    ("DFlash keeps a page more", DFLASH, None, 64, 1024 + 63),
    ("DFlash with a narrower window of its own", DFLASH, 512, 64, 511),
    ("EAGLE keeps its sink", EAGLE, None, 64, 1024 + 4),
    ("MTP too", MTP, None, 64, 1024 + 4),
    ("an EAGLE drafter's own window wins", EAGLE3, 2048, 64, 2047),
    ("DSpark ignores the flag", DSPARK, None, 64, 8192),
    ("a standalone drafter ignores it", STANDALONE, None, 64, 8192),
]


@pytest.mark.parametrize(
    ("algorithm", "own", "page", "committed"),
    [case[1:] for case in WINDOW_FLAGS],
    ids=[case[0] for case in WINDOW_FLAGS],
)
def test_the_window_argument(algorithm: DraftAlgorithm, own: int | None, page: int, committed: int) -> None:
    """--speculative-draft-window-size of 1,024 over requests of 8,192 tokens, by algorithm."""
    kv = DraftKv(
        algorithm=algorithm,
        geometry=attention(1, 1, 1, window=own),
        step_rows=8,
        page=page,
        draft_window=1024,
        draft_sink=4,
    )
    assert kv.planned_need_bytes(concurrency=1, tokens_per_request=8192) == 4 * (committed + 8)


def test_ngram_needs_nothing() -> None:
    """An n-gram drafter has no model, so no KV in any of the numbers."""
    kv = DraftKv(algorithm=NGRAM, geometry=LING_DSPARK, step_rows=0)
    assert kv.bytes_per_token == 0
    assert kv.block_floor_bytes(48) == 0
    assert kv.planned_need_bytes(concurrency=48, tokens_per_request=8192) == 0
    assert kv.allocated_bytes(400_000) == 0
    assert kv.live_need_bytes(used_tokens=1000, running=2, step_allocation=12).upper_bytes == 0


def test_allocated_pool_has_the_targets_slots_and_a_padding_page() -> None:
    """SGLang gives the drafter as many slots as the target has, times the context-parallel ranks."""
    kv = DraftKv(algorithm=DSPARK, geometry=LING_DSPARK, step_rows=9, tensor_parallel=4, page=64)
    assert kv.allocated_bytes(400_000) == 400_064 * 20_480
    assert kv.allocated_bytes(400_000, decode_context_parallel=2) == 2 * 400_064 * 20_480


def test_live_need_of_full_attention() -> None:
    """What requests hold, less what is reserved ahead, bounds what they need; the step's rows come on top."""
    kv = DraftKv(algorithm=DSPARK, geometry=ONE, step_rows=9, page=64)
    bounds = kv.live_need_bytes(used_tokens=10_000, running=4, step_allocation=9)
    assert bounds.upper_bytes == 4 * (10_000 + 36)
    assert bounds.lower_bytes == 4 * (10_000 - 4 * (18 + 63) + 36)


def test_live_need_of_a_window() -> None:
    """A window bounds each request: together at most running times the window, at least one request's."""
    kv = DraftKv(algorithm=DSPARK, geometry=attention(1, 1, 1, window=101), step_rows=9)
    bounds = kv.live_need_bytes(used_tokens=10_000, running=4, step_allocation=9)
    assert bounds.upper_bytes == 4 * (400 + 36)
    assert bounds.lower_bytes == 4 * (100 + 36)


def test_live_need_of_an_idle_engine_is_nothing() -> None:
    """Slots that linger without a running request are not needed by one."""
    kv = DraftKv(algorithm=DSPARK, geometry=ONE, step_rows=9)
    bounds = kv.live_need_bytes(used_tokens=500, running=0, step_allocation=9)
    assert (bounds.lower_bytes, bounds.upper_bytes) == (0, 0)


@given(
    lengths=st.lists(st.integers(1, 5000), max_size=8),
    window=st.none() | st.integers(1, 3000),
    rows=st.integers(1, 16),
    page=st.sampled_from([1, 16, 64]),
    allocation=st.integers(1, 16),
    data=st.data(),
)
def test_true_need_lies_within_the_live_bounds(
    lengths: list[int], window: int | None, rows: int, page: int, allocation: int, data: st.DataObject
) -> None:
    """Whatever the requests really hold and have reserved, the sum over them is between the two bounds."""
    kv = DraftKv(algorithm=DSPARK, geometry=attention(1, 1, 1, window=window), step_rows=rows, page=page)
    reserved = sum(data.draw(st.integers(0, 2 * allocation + page - 1)) for _ in lengths)
    bounds = kv.live_need_bytes(used_tokens=sum(lengths) + reserved, running=len(lengths), step_allocation=allocation)
    need = sum(kv.planned_need_bytes(concurrency=1, tokens_per_request=length) for length in lengths)
    assert bounds.lower_bytes <= need <= bounds.upper_bytes


@given(
    st.integers(0, 100_000),
    st.integers(0, 100),
    st.none() | st.integers(1, 5000),
    st.integers(1, 16),
    st.integers(1, 9),
)
def test_need_laws(tokens: int, concurrency: int, window: int | None, rows: int, layers: int) -> None:
    """The block floor is the least the drafter needs; a window never adds, a longer request never saves."""
    full = DraftKv(algorithm=DSPARK, geometry=attention(layers, 2, 4), step_rows=rows)
    slim = DraftKv(algorithm=DSPARK, geometry=attention(layers, 2, 4, window=window), step_rows=rows)
    need = slim.planned_need_bytes(concurrency=concurrency, tokens_per_request=tokens)
    assert slim.block_floor_bytes(concurrency) <= need
    assert need <= full.planned_need_bytes(concurrency=concurrency, tokens_per_request=tokens)
    assert need <= slim.planned_need_bytes(concurrency=concurrency, tokens_per_request=tokens + 1)


def test_cost_in_target_tokens_of_ling() -> None:
    """At TP4 the drafter's KV takes 71.7 % of the target's tokens; its weights take the bytes they held."""
    cost = cost_in_target_tokens(
        available_bytes=20 * GIB,
        drafter_weights_bytes=GIB // 2,
        target_token_bytes=8064,
        charged_token_bytes=20_480,
        page=64,
    )
    assert cost.target_tokens == 20 * GIB // 28_544 // 64 * 64
    assert cost.kv_tokens / (cost.target_tokens + cost.kv_tokens) == pytest.approx(0.7175, abs=2e-4)
    assert cost.weights_tokens == pytest.approx(GIB / 2 / 8064, abs=64)
    assert cost.target_tokens + cost.cost_tokens == cost.target_tokens_without_drafter


@given(st.integers(0, 2**40), st.integers(0, 2**36), st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 128))
def test_cost_is_never_negative_and_adds_up(available: int, weights: int, target: int, charge: int, page: int) -> None:
    """Both parts take tokens or none, and what remains plus the cost is what there would be."""
    cost = cost_in_target_tokens(
        available_bytes=available,
        drafter_weights_bytes=weights,
        target_token_bytes=target,
        charged_token_bytes=charge,
        page=page,
    )
    assert cost.kv_tokens >= 0
    assert cost.weights_tokens >= 0
    assert cost.target_tokens + cost.cost_tokens == cost.target_tokens_without_drafter


DSA = ModelGeometry(layers=(LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128),) * 61)
QWEN = attention(36, 8, 128)
CHARGES: list[tuple[str, DraftAlgorithm | None, ModelGeometry, ModelGeometry | None, int | None, int | None]] = [
    ("DSpark by its own geometry", DSPARK, LING, LING_DSPARK, 20_480, 20_480),
    ("MTP as one more layer of the target", MTP, LING, ModelGeometry(layers=(LATENT,)), 1_152, 1_152),
    ("EAGLE-3 as a layer of a target with other heads", EAGLE3, LING, attention(1, 8, 128), 1_152, 1_152),
    ("a dense target with one EAGLE-3 layer", EAGLE3, QWEN, attention(1, 4, 128), 1_024, 1_024),
    ("sparse MTP with index keys", MTP, DSA, ModelGeometry(layers=(LATENT,)), 1_284, 1_284),
    ("n-gram", NGRAM, LING, None, 0, 0),
    ("a drafter that is not known", DSPARK, LING, None, None, None),
    ("an unknown algorithm", None, LING, LING_DSPARK, None, None),
    ("a latent block drafter", DSPARK, LING, ModelGeometry(layers=(LATENT,)), None, None),
    ("a sliding-window target", EAGLE3, attention(2, 8, 128, window=128), ONE, None, None),
    ("a target that shares KV", EAGLE3, ModelGeometry(layers=(*QWEN.layers, SharedKvLayer())), ONE, None, None),
]


@pytest.mark.parametrize(
    ("algorithm", "target", "drafter", "older", "newer"),
    [case[1:] for case in CHARGES],
    ids=[case[0] for case in CHARGES],
)
def test_what_the_engine_charges(
    algorithm: DraftAlgorithm | None,
    target: ModelGeometry,
    drafter: ModelGeometry | None,
    older: int | None,
    newer: int | None,
) -> None:
    """At TP4 with bfloat16 KV, by version; where the engine's rule is another one nothing is predicted."""
    for version, expected in (("0.5.18", older), ("0.5.23", newer), ("0.5.23.post1", newer)):
        charge = charged_bytes_per_token(
            algorithm,
            version=version,
            target=target,
            drafter=drafter,
            tensor_parallel=4,
            attention_tensor_parallel=4,
            target_element_bytes=2,
            drafter_element_bytes=2,
        )
        assert charge == expected


def charge(algorithm: DraftAlgorithm, version: str, **changes: object) -> int | None:
    """The charge for Ling's pair at TP4, with changes."""
    arguments: dict[str, object] = {
        "target": LING,
        "drafter": LING_DSPARK,
        "tensor_parallel": 4,
        "attention_tensor_parallel": 4,
        "target_element_bytes": 2,
        "drafter_element_bytes": 2,
    }
    return charged_bytes_per_token(algorithm, version=version, **(arguments | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["0.5.13", "0.5.19", "0.5.24", "0.6.0", "main", ""])
def test_versions_that_were_not_read_are_not_predicted(version: str) -> None:
    """The formulas differ between releases, so others are left open."""
    assert charge(DSPARK, version) is None


def test_attention_dp_is_charged_by_the_whole_tp_size_in_the_older_version() -> None:
    """0.5.18 divides the drafter's heads by tp, 0.5.23 by the ranks that share them: four times as much here."""
    assert charge(DSPARK, "0.5.18", attention_tensor_parallel=1) == 20_480
    assert charge(DSPARK, "0.5.23", attention_tensor_parallel=1) == 81_920


def test_a_bundled_mtp_head_is_charged_only_by_the_newer_version() -> None:
    """Without a draft path 0.5.18 charges nothing; 0.5.23 takes the layer count of the target's config."""
    assert charge(MTP, "0.5.18", own_path=False, nextn_layers=1) == 0
    assert charge(MTP, "0.5.23", own_path=False, nextn_layers=1) == 1_152


def test_eagle_charge_rounds_as_the_engine_does() -> None:
    """A layer count that does not divide the cell is rounded down, in floating point."""
    assert charge(EAGLE, "0.5.18", drafter=attention(5, 8, 128)) == 5_760
    assert charge(EAGLE, "0.5.23", nextn_layers=2, target=ModelGeometry(layers=(LATENT,) * 7)) == 2_304
    odd = ModelGeometry(layers=(*attention(1, 1, 1).layers, *attention(2, 1, 3).layers))
    assert charge(EAGLE, "0.5.23", nextn_layers=1, target=odd) == int(28 / 3)
    assert charge(EAGLE, "0.5.18", nextn_layers=1, target=odd) == int(28 * (1 + 1 / 3)) - 28


def test_the_drafters_own_kv_dtype_does_not_reach_the_eagle_charge() -> None:
    """An fp8 drafter pool is charged at the target's dtype; a block drafter's charge follows its own."""
    assert charge(EAGLE3, "0.5.23", drafter=ONE, drafter_element_bytes=1) == 1_152
    assert charge(DSPARK, "0.5.23", drafter_element_bytes=1) == 10_240
