"""The pool of a target with recurrent state: slots, rings, and what a verify step keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.pool_sizing.deployments import (
    GDN_PAIR,
    GIB,
    LING_PAIR,
    changed,
    predicted,
)
from specbudget.domain.pool_sizing import (
    ExtraBuffer,
    Span,
    StatePlan,
    exactly,
    predict_pool,
)


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
