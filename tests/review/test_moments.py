"""Moments on the command line."""

from __future__ import annotations

import pytest

from specbudget.review.moments import MomentError, parse_moment, parse_stretch

NOW = 1_796_100_000.0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-12-01T03:00:00Z", 1_796_094_000.0),
        ("2026-12-01T04:00:00+01:00", 1_796_094_000.0),
        ("2026-12-01 03:00:00.5Z", 1_796_094_000.5),
        ("1796094000", 1_796_094_000.0),
        ("1796094000.25", 1_796_094_000.25),
        ("now", NOW),
        ("now-6h", NOW - 6 * 3600),
        ("now-1d12h", NOW - 36 * 3600),
    ],
)
def test_every_form_is_read(text: str, at: float) -> None:
    """RFC 3339, epoch seconds, now, and now less a duration."""
    assert parse_moment("--start", text, NOW) == at


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-12-01T03:00:00", "now-", "now+1h", "now-6", "1e9", "-5", "NaN"]
)
def test_what_is_no_moment_is_one_line_with_the_fix(text: str) -> None:
    """The option, what was written, and what to write. A time without a zone could be any of 24."""
    with pytest.raises(MomentError, match=r"--start .*write") as raised:
        parse_moment("--start", text, NOW)
    assert "\n" not in str(raised.value)


def test_an_end_before_its_start_is_refused_and_the_future_is_cut_off() -> None:
    """A stretch lies in the past and has a length."""
    with pytest.raises(MomentError, match="before the end"):
        parse_stretch("now-1h", "now-2h", NOW)
    with pytest.raises(MomentError, match="before now"):
        parse_stretch("2099-01-01T00:00:00Z", "2099-01-02T00:00:00Z", NOW)
    assert parse_stretch("now-1h", "2099-01-01T00:00:00Z", NOW) == (NOW - 3600, NOW)
