"""A finding's numbers and sentences in words, safe to print."""

from __future__ import annotations

import math

from specbudget.domain.finding import Finding, Value
from specbudget.words import count, seconds, size

_SMALL = 1 << 20
"""Bytes below this are told one by one: per-token costs are small and exact."""


def amount(value: Value, unit: str) -> str:
    """A number in its unit, a word as it is."""
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    if not math.isfinite(value):
        return "no bound"
    match unit:
        case "bytes":
            return f"{value:,.0f} B" if abs(value) < _SMALL else size(value)
        case "seconds":
            return seconds(value)
        case "ratio":
            return f"{value:.1%}"
        case _:
            return count(value)


def interval(finding: Finding) -> str:
    """`a to b` of a predicted number; empty where it is one value."""
    if finding.low is None or finding.high is None or finding.low == finding.high:
        return ""
    return f"{amount(finding.low, finding.unit)} to {amount(finding.high, finding.unit)}"


def used_ratio(finding: Finding) -> float | None:
    """Spent ÷ limit, for a floor limit ÷ spent; None unless both are numbers."""
    value, limit = finding.value, finding.limit
    if isinstance(value, str | None) or isinstance(limit, str | None):
        return None
    over, under = (limit, value) if finding.floor else (value, limit)
    return over / under if under > 0 else None


def printable(text: str) -> str:
    """Text in which nothing is left that a terminal or an XML reader would obey."""
    return "".join(char if char.isprintable() else "?" for char in text)
