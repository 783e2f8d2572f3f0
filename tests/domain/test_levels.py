"""Levels of a length over time: steps are found, noise is not, and the fall that cost most is the one that is told."""

from __future__ import annotations

import numpy as np
import pytest

from specbudget.domain.levels import levels, worst_fall


def points(lengths: list[float], steps: float = 2000.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Steps and accepted drafts, with the noise of requests that hold a hundred steps each."""
    draw = np.random.default_rng(seed)
    noisy = np.array(lengths) + draw.normal(0.0, 2.0 / np.sqrt(steps / 10), len(lengths))
    weight = np.full(len(lengths), steps)
    return weight, weight * (noisy - 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_one_level(seed: int) -> None:
    """Whatever chance does to a steady length is no fall."""
    found = levels(*points([3.0] * 200, steps=300.0, seed=seed))
    assert worst_fall(found) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_found_where_it_is(seed: int) -> None:
    """To the point, with both lengths."""
    fall = worst_fall(levels(*points([4.6] * 60 + [1.9] * 40, seed=seed)))
    assert fall is not None
    assert fall.during.first == 60
    assert fall.lasting
    assert fall.before.length == pytest.approx(4.6, abs=0.05)
    assert fall.during.length == pytest.approx(1.9, abs=0.05)


def test_a_fall_that_came_back_has_an_end() -> None:
    """An incident in the middle of a month is told with its own begin and end."""
    fall = worst_fall(levels(*points([4.0] * 500 + [2.0] * 20 + [4.0] * 500)))
    assert fall is not None
    assert (fall.during.first, fall.during.last) == (500, 519)
    assert not fall.lasting


def test_the_fall_that_cost_most_is_the_one() -> None:
    """A short dip beside a long loss is not it."""
    fall = worst_fall(levels(*points([4.0] * 100 + [1.5] * 5 + [4.0] * 100 + [2.5] * 200)))
    assert fall is not None
    assert fall.during.first == 205


def test_points_without_steps_are_no_length_of_one() -> None:
    """A night without traffic, and a gap, are no collapse."""
    weight, accepted = points([4.0] * 100)
    weight[40:60], accepted[40:60] = 0.0, 0.0
    weight[70:75], accepted[70:75] = np.nan, np.nan
    assert worst_fall(levels(weight, accepted)) is None


def test_too_few_steps_are_no_level() -> None:
    """Of some dozen steps nothing is said."""
    assert levels(np.array([100.0, 100.0]), np.array([300.0, 0.0])) == []


@pytest.mark.parametrize("after", [1, 2, 3, 6])
def test_a_fall_minutes_ago_is_found(after: int) -> None:
    """Whoever looks right after a drop sees it, though there are only a few points on each side."""
    fall = worst_fall(levels(*points([4.56, 4.6][:2] + [1.9] * after, steps=20_000.0)))
    assert fall is not None
    assert fall.during.first == 2
