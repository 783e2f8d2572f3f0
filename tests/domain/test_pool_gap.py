"""Why a KV pool is smaller than its memory would allow."""

from __future__ import annotations

import pytest

from specbudget.domain.pool_gap import duplicate_vocabulary, unused_memory

GIB = 2**30
COPIES = 2 * 160_000 * 4096 * 2
"""Embedding and head of a vocabulary of 160,000 at width 4096 in bfloat16."""


def test_copies_of_embedding_and_head_explain_the_smaller_pool() -> None:
    """9,830,400,000 bytes at 16,384 a token are 600,000 tokens; 2,621,440,000 bytes of copies leave 440,000."""
    found = duplicate_vocabulary(
        pool_tokens=440_000, available_bytes=9_830_400_000, freed_bytes=COPIES, token_bytes=16_384
    )
    assert found is not None
    assert (found.freed_bytes, found.ideal_tokens, found.lost_tokens) == (2_621_440_000, 600_000, 160_000)
    assert found.lost_share == pytest.approx(0.267, abs=5e-4)
    assert "440000 of 600000 (26.7% missing)" in found.sentence()


def test_half_of_both_on_each_of_two_ranks() -> None:
    """With tensor parallelism each rank holds its share of the copies."""
    found = duplicate_vocabulary(
        pool_tokens=520_000, available_bytes=9_830_400_000, freed_bytes=COPIES // 2, token_bytes=16_384
    )
    assert found is not None
    assert found.lost_tokens == 80_000


@pytest.mark.parametrize(
    ("pool_tokens", "freed_bytes"),
    [(600_000, COPIES), (300_000, COPIES), (440_000, 0), (599_990, 163_840)],
    ids=["the pool is whole", "the pool is smaller still", "nothing was freed", "copies too small to tell"],
)
def test_what_the_copies_do_not_explain(pool_tokens: int, freed_bytes: int) -> None:
    """The cause is named only when its arithmetic meets the pool."""
    found = duplicate_vocabulary(
        pool_tokens=pool_tokens, available_bytes=9_830_400_000, freed_bytes=freed_bytes, token_bytes=16_384
    )
    assert found is None


def test_figures_that_mean_nothing_explain_nothing() -> None:
    """Without bytes per token, or with copies larger than all there is, there is no arithmetic."""
    for available, token in ((9_830_400_000, 0), (COPIES // 2, 16_384)):
        found = duplicate_vocabulary(
            pool_tokens=440_000, available_bytes=available, freed_bytes=COPIES, token_bytes=token
        )
        assert found is None


def test_free_memory_that_would_hold_more_than_half_as_much_again() -> None:
    """21 GiB at 32,768 bytes are 688,128 tokens beside 610,000: 47.0 % of the 1,298,128 that fit."""
    found = unused_memory(pool_tokens=610_000, free_bytes=21 * GIB, token_bytes=32_768)
    assert found is not None
    assert found.unallocated_tokens == 688_128
    assert found.used_share == pytest.approx(0.470, abs=5e-4)
    assert "47.0% of the 1298128" in found.sentence()


@pytest.mark.parametrize(
    ("pool_tokens", "free_gib"),
    [(610_000, 4), (610_000, 3), (6_100_000, 8), (0, 21)],
    ids=["the reserve itself", "less than the reserve", "a small share of a large pool", "no pool known"],
)
def test_memory_that_is_rightly_free(pool_tokens: int, free_gib: int) -> None:
    """A reserve is no waste, and a tenth of a large pool neither."""
    assert unused_memory(pool_tokens=pool_tokens, free_bytes=free_gib * GIB, token_bytes=32_768) is None
