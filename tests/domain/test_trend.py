"""A length that falls steadily, as against a step and noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.trend import TrendPoint, slope_per_hour, trend

LEAK = [3.4, 3.36, 3.25, 3.1, 2.9, 2.7, 2.45, 2.2, 1.9]
"""An acceptance length every quarter of an hour, falling although nothing fails."""


def points(lengths: list[float], every_hours: float = 0.25, steps: float = 1000) -> list[TrendPoint]:
    """Slots of equal size."""
    return [TrendPoint(hours=i * every_hours, length=length, steps=steps) for i, length in enumerate(lengths)]


def test_the_least_squares_slope_of_a_leak() -> None:
    """-0.765 an hour over two hours, -0.504 over the first one."""
    assert slope_per_hour(points(LEAK)) == pytest.approx(-0.765, abs=5e-4)
    assert slope_per_hour(points(LEAK[:5])) == pytest.approx(-0.504, abs=5e-4)


@pytest.mark.parametrize(
    ("lengths", "every_hours", "decay"),
    [
        (LEAK, 0.25, True),
        (LEAK[:5], 0.25, True),
        ([4.6 - 0.138 * i for i in range(11)], 1 / 60, True),
        ([3.4] * 9, 0.25, False),
        ([3.4, 3.41, 3.38, 3.4, 3.39, 1.9, 1.9, 1.91, 1.9], 0.25, False),
        ([3.4, 2.9, 3.5, 3.0, 3.3, 2.9, 3.4, 3.0, 3.1], 0.25, False),
        ([3.4, 3.39, 3.38, 3.37, 3.36, 3.35], 0.25, False),
        (list(reversed(LEAK)), 0.25, False),
        (LEAK[:4], 0.25, False),
        (LEAK, 0.005, False),
    ],
    ids=[
        "two hours of a leak",
        "its first hour, before any threshold",
        "30 % in ten minutes",
        "level",
        "a step from one level to another",
        "noise",
        "2 % are nothing",
        "rising",
        "too few points",
        "too short a time",
    ],
)
def test_decay_is_a_fall_that_goes_on(lengths: list[float], every_hours: float, decay: bool) -> None:
    """Only a steady and notable fall over enough time is decay."""
    found = trend(points(lengths, every_hours))
    assert (found is not None and found.is_decay) is decay


@pytest.mark.parametrize(
    ("lengths", "decay"),
    [
        (np.linspace(4.0, 3.5, 300), True),
        (np.concatenate([np.full(60, 4.0), np.linspace(4.0, 3.4, 300)]), True),
        (np.full(360, 4.0), False),
        (np.repeat([4.0, 3.4], 180), False),
        (np.repeat([4.0, 3.4], [173, 187]), False),
        (np.concatenate([np.full(170, 4.0), np.linspace(4.0, 3.4, 20), np.full(170, 3.4)]), False),
    ],
    ids=["five hours of a fall", "an hour level before", "level", "a step", "a step within a pool", "twenty minutes"],
)
def test_the_chance_of_single_minutes_hides_no_decay_and_makes_none(lengths: list[float], decay: bool) -> None:
    """Each minute of a quiet replica is off by 0.15 by chance; over hours the fall shows, and a step stays a step."""
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(0.0, 0.15, len(lengths))
        found = trend(points((np.asarray(lengths) + noise).tolist(), 1 / 60))
        assert found is not None
        assert found.is_decay is decay


def test_pools_weigh_by_steps() -> None:
    """A minute of few steps moves its pool little: the pool's length is a ratio of sums."""
    minutes = points([3.0] * 49, 1 / 60)
    quiet = [TrendPoint(hours=p.hours + 1e-6, length=8.0, steps=1) for p in minutes]
    found = trend([*minutes, *quiet])
    assert found is not None
    assert found.first == pytest.approx(3.005, abs=1e-3)


def test_slots_with_few_steps_are_left_out() -> None:
    """Slots of a quiet night cannot make a trend."""
    quiet = points(LEAK, steps=40)
    assert trend(quiet, min_steps=500) is None
    assert trend([*points(LEAK), *quiet], min_steps=500) == trend(points(LEAK), min_steps=500)


def test_one_moment_has_no_slope() -> None:
    """Points at one time give no line."""
    assert (
        slope_per_hour([TrendPoint(hours=1.0, length=2.0, steps=1), TrendPoint(hours=1.0, length=3.0, steps=1)]) is None
    )


@given(st.lists(st.floats(min_value=1, max_value=17), min_size=5, max_size=40))
def test_any_lengths_have_a_trend_with_sane_numbers(lengths: list[float]) -> None:
    """The correlation stays in its range whatever the points."""
    found = trend(points(lengths))
    assert found is not None
    assert -1.0001 <= found.correlation <= 1.0001
    assert found.largest_step >= 0
