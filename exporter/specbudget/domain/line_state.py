"""The state of a budget line, for people; no alert reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

AT_RISK = 0.9
"""Used ratio above which a line is at risk, unless the budget sets its own mark (kv: high_water)."""


class LineState(StrEnum):
    """ok, at_risk, breach, or unknown: budgeted but not computable."""

    OK = "ok"
    AT_RISK = "at_risk"
    BREACH = "breach"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """One budget of a line: what is spent against what limit, both in the budget's unit.

    `spent` or `limit` None: it cannot be computed now, and `why` says why in a few words. A floor is a budget that
    must not fall below its limit. `ratio` is given where it is more than a quotient. `can_breach` is False where a
    ratio above 1 is shown but is no verdict (too little traffic for the page guard).
    """

    line: str
    budget: str
    spent: float | None
    limit: float | None
    floor: bool = False
    at_risk: float = AT_RISK
    can_breach: bool = True
    ratio: float | None = None
    why: str = ""

    @property
    def used_ratio(self) -> float | None:
        """Spent ÷ limit, for a floor limit ÷ spent; above 1 is always bad. None when not computable.

        Infinite where nothing at all is left of a floor.
        """
        if self.spent is None or self.limit is None:
            return None
        if self.ratio is not None:
            return self.ratio
        over, under = (self.limit, self.spent) if self.floor else (self.spent, self.limit)
        if under > 0:
            return over / under
        return math.inf if over > 0 else None


def line_state(spendings: Iterable[Spending], *, warning: bool = False) -> LineState:
    """breach before at_risk before unknown before ok; a line without a budget is ok, a warning puts it at risk."""
    state = LineState.AT_RISK if warning else LineState.OK
    for spending in spendings:
        ratio = spending.used_ratio
        if ratio is None:
            found = LineState.UNKNOWN
        elif ratio > 1.0 and spending.can_breach:
            return LineState.BREACH
        elif ratio > spending.at_risk:
            found = LineState.AT_RISK
        else:
            found = LineState.OK
        if found is LineState.AT_RISK or state is LineState.OK:
            state = found
    return state
