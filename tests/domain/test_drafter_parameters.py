"""Parameters of a block drafter from its shape, against published counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specbudget.domain.drafter_parameters import BlockDrafterShape, drafter_parameters

LING = BlockDrafterShape(
    layers=5,
    hidden=2560,
    heads=32,
    kv_heads=32,
    head_dim=128,
    intermediate=6144,
    taps=5,
    vocabulary=157184,
    markov_rank=256,
    confidence_head=True,
)
KIMI = replace(LING, hidden=7168, heads=64, kv_heads=16, head_dim=64, intermediate=14336, taps=5, vocabulary=163840)
GLM = replace(LING, hidden=6144, heads=64, kv_heads=64, head_dim=64, intermediate=12288, vocabulary=154880)
PUBLISHED = [
    ("Ling-3.0-flash-dspark", LING, 2, 1_363_707_905),
    ("the same with one matrix less", LING, 1, 961_316_865),
    ("Kimi-K3 DSpark, which owns neither matrix", KIMI, 0, 2_249_289_601),
    ("GLM-5.2 DSpark", GLM, 2, 3_807_067_009),
    ("GLM-5.2 DSpark of three layers", replace(GLM, layers=3), 2, 3_152_730_753),
]


@pytest.mark.parametrize(
    ("shape", "matrices", "count"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED]
)
def test_published_counts_to_the_unit(shape: BlockDrafterShape, matrices: int, count: int) -> None:
    """Five published checkpoints, with the matrices that each of them holds."""
    assert drafter_parameters(shape, vocabulary_matrices=matrices) == count


def test_what_is_loaded_holds_no_vocabulary_matrix() -> None:
    """Of Ling's drafter 558,925,825 parameters are on the device."""
    assert drafter_parameters(LING) == 558_925_825
    assert LING.vocabulary_matrix == 157184 * 2560


def test_the_heads_of_dspark_are_what_dflash_lacks() -> None:
    """Two tables of the vocabulary by the rank, and one row of hidden size and rank with a bias."""
    dspark, dflash = drafter_parameters(LING), drafter_parameters(replace(LING, markov_rank=0, confidence_head=False))
    assert dspark is not None
    assert dflash is not None
    assert dspark - dflash == 2 * 157184 * 256 + 2560 + 256 + 1


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"markov_type": "gated"}, (2560 + 256) * 256 + 256),
        ({"markov_type": "rnn"}, (2 * 256 + 2560) * 3 * 256 + 3 * 256),
        ({"confidence_with_markov": False}, -256),
        ({"attention_bias": True}, 5 * (3 * 32 * 128 + 2560)),
        ({"target_hidden": 4096}, 5 * 2560 * (4096 - 2560)),
    ],
)
def test_variants(change: dict[str, object], more: int) -> None:
    """Each setting changes the count by the module it stands for."""
    base = drafter_parameters(LING)
    assert base is not None
    assert drafter_parameters(replace(LING, **change)) == base + more  # type: ignore[arg-type]


def test_a_head_of_another_type_is_not_guessed() -> None:
    """A word that no engine knows."""
    assert drafter_parameters(replace(LING, markov_type="fancy")) is None
