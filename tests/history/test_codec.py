"""Packed blocks: bit for bit what went in, small, and no trust in damaged bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.history.codec import BlockError, pack, unpack

VALUES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**60), 2**60).map(float),
    st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
)


@given(st.integers(1, 40).flatmap(lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_what_was_packed_is_unpacked_bit_for_bit(columns: list[list[float]]) -> None:
    """Counts, infinities, signed zeros and holes come back as they were; a column of holes is left out."""
    times = np.arange(len(columns[0]), dtype=np.int64) * 15_000 + 1_796_095_764_632
    given_columns = {number: np.array(values) for number, values in enumerate(columns)}
    back_times, back = unpack(pack(times, given_columns))
    assert (back_times == times).all()
    for number, values in given_columns.items():
        if np.isnan(values).all():
            assert number not in back
        else:
            known = ~np.isnan(values)
            assert (np.isnan(back[number]) == ~known).all()
            assert (back[number][known].view(np.uint64) == values[known].view(np.uint64)).all()


def test_only_the_wanted_series_are_unpacked() -> None:
    """Reading few series of many costs little."""
    data = pack(np.array([1, 2], dtype=np.int64), {7: np.array([1.0, 2.0]), 8: np.array([3.0, 4.0])})
    assert list(unpack(data, frozenset({8}))[1]) == [8]


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_a_damaged_block_is_an_error_of_its_own(cut: int) -> None:
    """Nothing else is raised for bytes that are not a block."""
    data = pack(np.array([1, 2], dtype=np.int64), {7: np.array([1.5, 2.0])})
    with pytest.raises(BlockError):
        unpack(data[:cut])
    with pytest.raises(BlockError):
        unpack(b"\0" + data[1:])


def test_an_hour_of_constants_and_counts_costs_few_bytes() -> None:
    """Two hundred constants and twenty counters of an hour fit into 20 kB."""
    draw = np.random.default_rng(1)
    times = np.arange(240, dtype=np.int64) * 15_000
    columns = {number: np.full(240, float(number)) for number in range(200)}
    columns |= {200 + number: np.cumsum(draw.integers(0, 2000, 240)).astype(np.float64) for number in range(20)}
    assert len(pack(times, columns)) < 20_000


def test_zeros_of_both_signs_stay_apart() -> None:
    """They compare equal and are not the same bits."""
    values = np.array([0.0, -0.0, 0.0])
    back = unpack(pack(np.array([1, 2, 3], dtype=np.int64), {1: values}))[1][1]
    assert np.signbit(back).tolist() == [False, True, False]
