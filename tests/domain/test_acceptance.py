"""Acceptance arithmetic against counts worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.acceptance import (
    acceptance_length,
    acceptance_rate,
    histogram_accepted,
    histogram_steps,
    is_possible,
    rate_at_length,
    steps_reaching,
)


def test_length_counts_the_bonus_token() -> None:
    """A step that accepts nothing still emits one token; without a step there is no length."""
    assert acceptance_length(0, 10) == 1.0
    assert acceptance_length(16, 10) == 2.6
    assert acceptance_length(0, 0) is None


def test_rate_is_of_proposed_drafts_alone() -> None:
    """Accepted over proposed, the bonus on neither side; nothing proposed is no rate."""
    assert acceptance_rate(12, 30) == 0.4
    assert acceptance_rate(0, 0) is None


@pytest.mark.parametrize(
    ("length", "window", "rate"),
    [(2.2, 4, 0.4), (1.0, 4, 0.0), (4.0, 4, 1.0), (1.9, 2, 0.9), (1.9, 4, 0.3), (1.9, 8, 0.9 / 7)],
    ids=["middle", "useless drafter", "all accepted", "one step", "three steps", "seven steps"],
)
def test_rate_at_a_length_is_the_share_of_a_full_window(length: float, window: int, rate: float) -> None:
    """(L − 1) / (D − 1), which makes windows of different size comparable."""
    assert rate_at_length(length, window) == pytest.approx(rate, abs=1e-12)


def test_a_window_of_one_has_no_rate() -> None:
    """Nothing can be proposed in it."""
    assert rate_at_length(1.0, 1) is None


@pytest.mark.parametrize(
    ("length", "window", "possible"),
    [
        (5.0, 4, False),
        (0.75, 4, False),
        (4.0, 4, True),
        (1.0, 4, True),
        (99.0, None, True),
        (math.nan, 4, False),
        (math.inf, None, False),
    ],
    ids=["above", "below", "upper edge", "lower edge", "window unknown", "not a number", "infinite"],
)
def test_a_length_is_possible_inside_one_to_window(length: float, window: int | None, possible: bool) -> None:
    """Outside it the sample is invalid; it is never moved to the edge."""
    assert is_possible(length, window) is possible


def test_histogram_totals_of_a_captured_request() -> None:
    """75 steps that accepted 183 drafts: length 3.44, where the engine's own ratio said 3.4."""
    histogram = np.array([[17, 15, 16, 8, 5, 1, 4, 9]])
    assert histogram_steps(histogram).tolist() == [75]
    assert histogram_accepted(histogram).tolist() == [183]
    assert acceptance_length(183, 75) == 3.44


def test_positions_count_steps_that_reach_them() -> None:
    """Position i is accepted in every step that accepted i drafts or more."""
    assert steps_reaching(np.array([[2, 1, 3], [0, 4, 1]])).tolist() == [11, 9, 4]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=17))
def test_length_is_one_plus_the_sum_of_survivals(row: list[int]) -> None:
    """1 + Σ S_i equals Σ(i+1)·h[i] / Σh[i], whatever the histogram."""
    histogram = np.array([row])
    steps = int(histogram_steps(histogram)[0])
    if steps:
        survivals = steps_reaching(histogram)[1:].sum() / steps
        mean = sum((i + 1) * h for i, h in enumerate(row)) / steps
        assert acceptance_length(int(histogram_accepted(histogram)[0]), steps) == pytest.approx(mean, rel=1e-12)
        assert 1 + survivals == pytest.approx(mean, rel=1e-12)
