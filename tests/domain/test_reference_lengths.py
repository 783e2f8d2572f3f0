"""What share of requests reached which length."""

import math

import pytest

from specbudget.domain.reference_lengths import ReferenceLengths

LENGTHS = tuple(float(length) for length in range(1, 101))


@pytest.mark.parametrize(
    ("share", "reached"), [(0.95, 6.0), (0.9, 11.0), (0.5, 51.0), (0.999, 1.0), (0.01, 100.0), (0.001, 100.0)]
)
def test_single_requests_give_one_length(share: float, reached: float) -> None:
    """The largest length that at least that share of them has."""
    measured = ReferenceLengths(length=50.5, lengths=LENGTHS)
    assert measured.reached_by(share) == (reached, reached)
    assert measured.share_reaching(reached) is not None
    assert (measured.share_reaching(reached) or 0) >= min(share, 1.0)


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [(0.95, 2.0, 2.0), (0.92, 2.0, 3.0), (0.9, 3.0, 3.0), (0.99, 1.0, 2.0), (0.5, 3.0, math.inf)],
)
def test_quantiles_give_an_interval(share: float, low: float, high: float) -> None:
    """A point that was measured is exact; between two points and beyond them only the neighbours bound it."""
    measured = ReferenceLengths(length=4.0, quantiles=((0.05, 2.0), (0.1, 3.0)))
    assert measured.reached_by(share) == (low, high)
    assert measured.share_reaching(2.0) is None
    assert measured.requests is None


def test_a_mean_tells_nothing_of_a_share() -> None:
    """No quantile follows from a ratio of sums."""
    assert ReferenceLengths(length=4.0, verify_steps=100).reached_by(0.95) is None
