"""Samples of a stretch become one: the last or the highest, and thinning out first changes neither."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.axis import Axis, axis_over
from specbudget.domain.counters import increase, increases
from specbudget.domain.reduction import Reduction, on_axis, thinned

VALUES = st.lists(st.one_of(st.just(float("nan")), st.floats(0, 100)), min_size=1, max_size=120)


@pytest.mark.parametrize("reduction", Reduction)
@given(values=VALUES)
def test_a_point_has_the_reduction_of_its_stretch(reduction: Reduction, values: list[float]) -> None:
    """Of the samples in (point − look back, point], NaN where there are none."""
    times = 1000.0 + 7.0 * np.arange(len(values))
    axis = axis_over(1000.0, 1000.0 + 7.0 * len(values), 20.0)
    found = on_axis(times, np.array(values), axis, reduction, 50.0)
    for point, value in zip(axis.times, found, strict=True):
        inside = [v for t, v in zip(times, values, strict=True) if point - 50 < t <= point and not np.isnan(v)]
        if not inside:
            assert np.isnan(value)
        else:
            assert value == (inside[-1] if reduction is Reduction.LAST else max(inside))


@given(values=VALUES)
def test_thinning_out_first_changes_no_review(values: list[float]) -> None:
    """At steps of whole multiples a count's last value and a load's peak are what they were."""
    times = 15.0 * np.arange(1, len(values) + 1)
    columns = np.stack([np.array(values), np.array(values)], axis=1)
    thin_times, thin = thinned(times, columns, np.array([False, True]), 60.0)
    axis = Axis(start=300.0, step=300.0, count=len(values) // 20 + 2)
    for place, reduction in enumerate((Reduction.LAST, Reduction.HIGHEST)):
        whole = on_axis(times, np.array(values), axis, reduction, 300.0)
        np.testing.assert_array_equal(on_axis(thin_times, thin[:, place], axis, reduction, 300.0), whole)


@given(st.lists(st.integers(0, 50).map(float), min_size=2, max_size=40))
def test_increases_are_those_of_single_readings(values: list[float]) -> None:
    """One rule for a reset, whether readings come one by one or as an array."""
    found = increases(np.array(values))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [increase(a, b) for a, b in pairwise(values)]


def test_an_increase_over_a_hole_is_counted_once() -> None:
    """It stands at the first reading after the hole; a counter that came to be grew from 0."""
    nan = float("nan")
    assert np.nansum(increases(np.array([5.0, nan, nan, 9.0, 2.0]))) == 6.0
    assert np.nansum(increases(np.array([nan, 5.0, 9.0]), began=True)) == 9.0
