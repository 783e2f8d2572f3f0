"""Rolling windows: what is in, what is out, and what survives a restart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.domain.rolling import LengthRing, SlotRing

NOW = 1_800_000_000.0


def add(ring: SlotRing, at: float, *values: float, now: float = NOW) -> None:
    """One row."""
    ring.add(np.array([at]), np.array([values]), now)


def test_a_window_holds_the_slots_that_begin_in_it() -> None:
    """With slots of 5 s the last minute is twelve slots, the present one included."""
    ring = SlotRing(5.0, 721, 1)
    for age in range(0, 120, 5):
        add(ring, NOW - age, 1.0)
    assert ring.total(60.0, NOW).tolist() == [12.0]


def test_old_values_are_dropped_and_future_ones_count_now() -> None:
    """A record of last week tells nothing of now; a clock ahead of ours is no reason to lose a record."""
    ring = SlotRing(5.0, 721, 1)
    add(ring, NOW - 7 * 86400, 5.0)
    add(ring, NOW + 3600, 7.0)
    assert ring.total(3600.0, NOW).tolist() == [7.0]


def test_a_slot_is_used_again_after_a_full_turn() -> None:
    """The ring never adds a new hour onto an old one."""
    ring = SlotRing(5.0, 12, 1)
    add(ring, NOW, 1.0)
    add(ring, NOW + 60, 2.0, now=NOW + 60)
    assert ring.total(60.0, NOW + 60).tolist() == [2.0]


def test_what_was_dumped_can_be_loaded() -> None:
    """A restart goes on with the same sums."""
    ring, again = SlotRing(60.0, 10, 2), SlotRing(60.0, 10, 2)
    add(ring, NOW, 1.0, 2.0)
    add(ring, NOW - 120, 3.0, 4.0)
    again.load(*ring.dump())
    assert again.total(600.0, NOW).tolist() == [4.0, 6.0]


@given(st.lists(st.tuples(st.floats(0, 900), st.integers(0, 50)), max_size=60), st.integers(1, 12))
@settings(deadline=None)
def test_a_window_equals_the_sum_over_its_slots(rows: list[tuple[float, int]], minutes: int) -> None:
    """Against a plain list, whatever the order of arrival."""
    ring = SlotRing(60.0, 20, 1)
    for age, value in rows:
        add(ring, NOW - age, float(value))
    newest = NOW // 60
    expected = sum(v for age, v in rows if newest - minutes < (NOW - age) // 60 <= newest)
    assert ring.total(minutes * 60.0, NOW).tolist() == [float(expected)]


def test_the_length_that_nearly_all_reach() -> None:
    """Of 100 events 95 % reach the sixth lowest: five may miss it."""
    ring = LengthRing()
    lengths = np.array([1.5] * 5 + [2.6] + [4.0] * 94)
    ring.add(np.full(100, NOW), lengths, NOW)
    assert ring.reached_by(0.95, NOW) == 2.6


def test_a_length_at_the_target_is_not_rounded_under_it() -> None:
    """2.6 × 100 is 259.99… in binary; the bin is still 2.60."""
    ring = LengthRing()
    ring.add(np.full(20, NOW), np.full(20, 2.6), NOW)
    assert ring.reached_by(0.95, NOW) == 2.6


@pytest.mark.parametrize(("events", "known"), [(19, False), (20, True)], ids=["one too few", "just enough"])
def test_a_quantile_needs_enough_events(events: int, known: bool) -> None:
    """The lowest twentieth cannot be told from fewer than twenty."""
    ring = LengthRing()
    ring.add(np.full(events, NOW), np.full(events, 3.0), NOW)
    assert (ring.reached_by(0.95, NOW) is not None) is known


def test_lengths_leave_after_an_hour_and_survive_a_restart() -> None:
    """What was dumped is loaded, and what is over an hour old no longer counts."""
    ring, again = LengthRing(), LengthRing()
    ring.add(np.full(40, NOW), np.full(40, 3.0), NOW)
    again.load(ring.dump())
    assert again.reached_by(0.95, NOW + 3000) == 3.0
    assert again.reached_by(0.95, NOW + 3700) is None


def test_a_trace_is_the_window_at_each_slot() -> None:
    """Every row is what the rolling total was then; the last one is the total now, and a full turn leaves nothing."""
    ring = SlotRing(5.0, 24, 1)
    for age in (100, 30, 10, 0):
        add(ring, NOW - age, float(age + 1))
    trace = ring.trace(20.0, NOW)[:, 0]
    assert trace.shape == (24,)
    assert trace[-1] == ring.total(20.0, NOW)[0]
    assert [trace[-1 - age // 5] for age in (0, 5, 10, 15, 20, 25, 30, 35)] == [12, 11, 11, 31, 31, 31, 31, 0]
    assert ring.trace(20.0, NOW + 3600).sum() == 0
