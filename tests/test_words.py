"""Numbers as people read them."""

from __future__ import annotations

import pytest

from specbudget.words import percent, span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (28 * 86400, "28 days"),
        (86400, "1 day"),
        (6 * 3600, "6 h"),
        (8064, "2 h 14 min 24 s"),
        (300, "5 min"),
        (90, "1 min 30 s"),
        (30, "30 s"),
        (0, "0 s"),
    ],
)
def test_a_length_of_time_is_said_whole(seconds: float, said: str) -> None:
    """Largest unit first, exact to the second, and never without a word."""
    assert span(seconds) == said


@pytest.mark.parametrize(("share", "said"), [(0.05, "5 %"), (0.672, "67.2 %"), (0.9995, "99.95 %"), (1.0, "100 %")])
def test_a_share_is_said_without_digits_of_the_machine(share: float, said: str) -> None:
    """1 - 0.95 is five percent."""
    assert percent(share) == said
    assert percent(1 - 0.95) == "5 %"
