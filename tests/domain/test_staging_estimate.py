"""Loading time before anybody started anything: one reader's time to all readers' time."""

import pytest

from specbudget.domain.stages import StagingMode
from specbudget.domain.staging_estimate import estimate_staging


@pytest.mark.parametrize(
    ("mode", "low", "high"),
    [
        (None, 60.0, 480.0),
        (StagingMode.SERIAL, 60.0, 480.0),
        (StagingMode.PREFETCH, 60.0, 60.0),
        (StagingMode.OVERLAP, 60.0, 480.0),
    ],
)
def test_readers_without_a_shared_page_cache_are_the_worst_case(
    mode: StagingMode | None, low: float, high: float
) -> None:
    """120 GB at 2 GB/s: 60 s once, 480 s for eight readers of everything; prefetching divides the files."""
    size = 120_000_000_000
    estimate = estimate_staging(least_bytes=size, most_bytes=size, readers=8, bandwidth=2_000_000_000, mode=mode)
    assert (estimate.low, estimate.high, estimate.after_load) == (low, high, None)
    assert any("60.0 s" in step for step in estimate.arithmetic)
    assert any("x 8 / 2,000,000,000 B/s = 480.0 s" in step for step in estimate.arithmetic)


def test_what_comes_after_loading_is_added_to_both_sides() -> None:
    """A measured rest of a start counts once, whatever loading takes; bytes that are not loaded are the low side."""
    estimate = estimate_staging(least_bytes=500, most_bytes=1000, readers=2, bandwidth=100, mode=None, after_load=7.5)
    assert (estimate.low, estimate.high) == (12.5, 27.5)
    assert "7.5 s" in estimate.arithmetic[-1]
