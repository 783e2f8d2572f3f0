"""A quantity known within bounds, and whether its bounds settle a limit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How well a prediction's inputs are known, the best first."""

    EXACT = "exact"
    """From bytes."""
    FROM_LOG = "from_log"
    """From an engine's start-up log, which prints hundredths of a GiB."""
    ESTIMATE = "estimate"
    """From what the hardware and the configs promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A value between `low` and `high`, most likely `point`. Raises ValueError unless low <= point <= high."""

    low: float
    point: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.point <= self.high:
            message = f"bounds {self.low}, {self.point}, {self.high} are not in order"
            raise ValueError(message)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open."""
        return self.low == self.high

    def wider(self, by: float) -> Span:
        """The span with `by` more on either side."""
        return Span(low=self.low - by, point=self.point, high=self.high + by)


def exactly(value: float) -> Span:
    """A value known to the last digit."""
    return Span(low=value, point=value, high=value)


def within_share(value: float, share: float) -> Span:
    """A value known to a share of itself, 0-1."""
    return Span(low=value * (1 - share), point=value, high=value * (1 + share))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSpan:
    """A number of tokens between `low` and `high`; `low` is 0 where the engine may refuse to start."""

    low: int
    point: int
    high: int


class LimitVerdict(StrEnum):
    """What the bounds of a quantity say of a limit."""

    MET = "met"
    BROKEN = "broken"
    UNDECIDED = "undecided"


def at_least(value: Span | TokenSpan, limit: float) -> LimitVerdict:
    """Whether the value is surely at or above the limit, surely below it, or neither."""
    if value.low >= limit:
        return LimitVerdict.MET
    return LimitVerdict.BROKEN if value.high < limit else LimitVerdict.UNDECIDED


def at_most(value: Span | TokenSpan, limit: float) -> LimitVerdict:
    """Whether the value is surely at or below the limit, surely above it, or neither."""
    if value.high <= limit:
        return LimitVerdict.MET
    return LimitVerdict.BROKEN if value.low > limit else LimitVerdict.UNDECIDED
