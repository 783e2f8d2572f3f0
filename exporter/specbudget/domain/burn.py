"""Burn rates of the acceptance SLO: windows and factors, computed, never typed."""

from __future__ import annotations

from dataclasses import dataclass

REACHABLE = 0.8
"""Share of the largest possible burn, 1 ÷ (1 − objective), that an alert's factor may ask for."""

LEAST_OBJECTIVE = 0.5
"""Below this objective no burn rate tells a collapse from a normal day; other forms of the SLO do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnWindows:
    """One row of a burn-rate alert: it holds while both windows burn at `factor` or faster."""

    id: str
    share: float
    long_seconds: float
    short_seconds: float
    factor: float

    def seconds_to_fire(self, bad_share: float, objective: float) -> float | None:
        """How long events of which `bad_share` are bad must go on, after none were, until both windows burn.

        At an even rate of events; None where it never comes to that. What waits besides, the alert's `for` and the
        time between evaluations, comes on top.
        """
        allowed = self.factor * (1.0 - objective)
        return self.long_seconds * allowed / bad_share if bad_share > allowed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRow:
    """A declared row: spending `share` of the error budget within `long_seconds`."""

    id: str
    share: float
    long_seconds: float

    def windows(self, *, objective: float, slo_seconds: float) -> BurnWindows:
        """Windows and factor for an SLO of `objective` over `slo_seconds`.

        factor = max(1, share × window ÷ long); where that asks for more than can burn, the long window grows
        to share × window ÷ (0.8 × largest burn). The short window is a twelfth of the long one.
        """
        reachable = REACHABLE / (1.0 - objective)
        factor, long = max(1.0, self.share * slo_seconds / self.long_seconds), self.long_seconds
        if factor > reachable:
            factor, long = reachable, self.share * slo_seconds / reachable
        return BurnWindows(id=self.id, share=self.share, long_seconds=long, short_seconds=long / 12.0, factor=factor)


FAST = BurnRow(id="burn_fast", share=0.02, long_seconds=3600.0)
SLOW = BurnRow(id="burn_slow", share=0.05, long_seconds=6 * 3600.0)
DAY = BurnRow(id="burn_day", share=0.10, long_seconds=86400.0)
THREE_DAYS = BurnRow(id="burn_three_days", share=0.10, long_seconds=3 * 86400.0)
PAGE_ROWS = (FAST, SLOW)
TICKET_ROWS = (DAY, THREE_DAYS)


def burn(good: float, bad: float, objective: float) -> float:
    """How many times faster than allowed the error budget is spent; without an event nothing was spent."""
    events = good + bad
    return bad / events / (1.0 - objective) if events > 0 else 0.0
