"""Pairs whose figures are published, recorded or worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.pool_sizing.deployments import (
    DELTA,
    DENSE,
    GIB,
    LATENT,
    LATENTS,
    LING_DRAFTER,
    LING_PAIR,
    attention,
    changed,
    predicted,
)
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import LatentLayer, ModelGeometry, RecurrentLayer
from specbudget.domain.pool_sizing import (
    Certainty,
    ProfiledMemory,
    memory_from_bytes,
    memory_from_log,
    predict_pool,
)

SGLANG = Path(__file__).parents[2] / "fixtures" / "sglang"


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


def test_latent_layers_of_a_hybrid_are_whole_on_every_rank() -> None:
    """Five latent layers of 448 elements take 4,480 bytes on each of two ranks; fifteen linear ones take none."""
    latent = LatentLayer(kv_lora_rank=384, qk_rope_head_dim=64)
    target = ModelGeometry(layers=((RecurrentLayer(state=DELTA),) * 3 + (latent,)) * 5)
    found = predicted(predict_pool(changed(LING_PAIR, target=target, tensor_parallel=2)))
    assert found.target_token_bytes == 4_480
    assert found.state is not None
    assert found.state.bytes_per_slot == 15 * (3 * 3 * 2_048 * 2 + 16 * 128 * 128 * 4)
