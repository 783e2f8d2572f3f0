"""Moments as people write them on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from specbudget.budget.units import parse_duration
from specbudget.errors import SpecbudgetError

_EPOCH = re.compile(r"\d{1,12}(\.\d{1,6})?")
_NOW = re.compile(r"now(?:-(.+))?")
LATEST = 253_402_300_799.0
"""The last second of the year 9999."""


class MomentError(SpecbudgetError):
    """A moment, or a pair of them, cannot be used."""


def parse_moment(option: str, text: str, now: float) -> float:
    """Seconds since the epoch of RFC 3339, epoch seconds, `now`, or `now-6h`. Raises MomentError."""
    if _EPOCH.fullmatch(text):
        return float(text)
    relative = _NOW.fullmatch(text)
    if relative is not None:
        if relative[1] is None:
            return now
        try:
            return now - parse_duration(relative[1])
        except ValueError:
            raise MomentError(f"{option} {text}: {relative[1]} is no duration: write now-6h, now-30m, now-2d") from None
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        told = None
    if told is None or told.tzinfo is None:
        raise MomentError(
            f"{option} {text}: write RFC 3339 with a zone, like 2026-03-10T03:00:00Z, epoch seconds, now or now-6h"
        )
    return told.astimezone(UTC).timestamp()


def parse_stretch(start: str, end: str, now: float) -> tuple[float, float]:
    """Both ends of a review, in order and not in the future. Raises MomentError."""
    first, last = parse_moment("--start", start, now), min(parse_moment("--end", end, now), now)
    if first >= last:
        raise MomentError(f"--start {start} --end {end}: the start must lie before the end, and before now")
    return first, last
