"""Break-even by running requests, and its four forms."""

from __future__ import annotations

import pytest

from specbudget.domain.break_even import BreakEven, constant, from_step_times, from_trial

MEASURED = BreakEven(((1, 2.1), (32, 2.5), (64, 3.4)))


@pytest.mark.parametrize(
    ("running", "length"),
    [(0, 2.1), (1, 2.1), (16.5, 2.3), (32, 2.5), (48, 2.95), (64, 3.4), (65, 3.4), (1e6, 3.4)],
)
def test_between_points_it_is_a_line_and_outside_the_nearest_point(running: float, length: float) -> None:
    """It grows with the batch; where nothing was measured nothing is made up."""
    assert MEASURED.at(running) == pytest.approx(length)


@pytest.mark.parametrize("running", [0, 1, 1000])
def test_one_number_holds_for_every_batch(running: float) -> None:
    """A constant has no batch."""
    assert constant(2.6).at(running) == 2.6


def test_from_step_times() -> None:
    """(draft + verify + overhead) ÷ plain: 4 + 26 + 2 over 20 ms is 1.6."""
    assert from_step_times(plain_ms=20, draft_ms=4, verify_ms=26, overhead_ms=2).at(1) == pytest.approx(1.6)


def test_from_a_trial() -> None:
    """A pair that was 1.5 times as fast at length 3 breaks even at 2."""
    assert from_trial(length=3.0, speedup=1.5).at(1) == pytest.approx(2.0)
