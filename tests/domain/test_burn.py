"""Burn windows and factors, computed from objective and SLO window."""

from __future__ import annotations

import pytest

from specbudget.domain.burn import DAY as DAY_ROW
from specbudget.domain.burn import FAST, PAGE_ROWS, SLOW, TICKET_ROWS, burn

DAY = 86400.0


def test_the_usual_objective_has_the_usual_windows() -> None:
    """28 days at 95 %: 2 % of the budget within an hour is a burn of 13.44, 5 % within six hours one of 5.6."""
    fast, slow = (row.windows(objective=0.95, slo_seconds=28 * DAY) for row in PAGE_ROWS)
    assert fast.factor == pytest.approx(13.44)
    assert (fast.long_seconds, fast.short_seconds) == (3600, 300)
    assert slow.factor == pytest.approx(5.6)
    assert (slow.long_seconds, slow.short_seconds) == (21600, 1800)


@pytest.mark.parametrize("objective", [0.5, 0.75, 0.9, 0.93, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("row", PAGE_ROWS, ids=lambda row: row.id)
def test_every_factor_can_be_reached(objective: float, row: object) -> None:
    """No alert asks for more than 80 % of what can burn at all, and its long window then spends the same share."""
    assert row in (FAST, SLOW)
    found = row.windows(objective=objective, slo_seconds=28 * DAY)  # type: ignore[attr-defined]
    assert 1.0 <= found.factor <= 0.8 / (1 - objective) + 1e-9
    assert found.factor * found.long_seconds == pytest.approx(found.share * 28 * DAY)
    assert found.short_seconds * 12 == pytest.approx(found.long_seconds)


def test_a_low_objective_shrinks_no_window_below_its_share() -> None:
    """At 90 % a burn of 13.44 cannot happen: the factor is 8 and the window the one in which 2 % burn at 8."""
    found = FAST.windows(objective=0.9, slo_seconds=28 * DAY)
    assert found.factor == pytest.approx(8.0)
    assert found.long_seconds == pytest.approx(0.02 * 28 * DAY / 8)


def test_a_short_slo_window_asks_for_burning_at_all() -> None:
    """With a window of a day 2 % within an hour would be a burn of 0.48: below 1 nothing is being overspent."""
    assert FAST.windows(objective=0.95, slo_seconds=DAY).factor == 1.0


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [(0, 0, 0.0), (100, 0, 0.0), (95, 5, 1.0), (0, 7, 20.0), (1, 1, 10.0)],
    ids=["no event", "all good", "as budgeted", "all bad", "half of them"],
)
def test_burn(good: float, bad: float, expected: float) -> None:
    """The share of bad events in units of what the objective allows; no event spends nothing."""
    assert burn(good, bad, 0.95) == pytest.approx(expected)


def test_tickets_have_windows_of_days() -> None:
    """A tenth of the budget in a day is a burn of 2.8; in three days it is not even 1, which is what is asked then."""
    day, days = (row.windows(objective=0.95, slo_seconds=28 * DAY) for row in TICKET_ROWS)
    assert day.id == DAY_ROW.id
    assert (day.factor, day.long_seconds, day.short_seconds) == (pytest.approx(2.8), DAY, DAY / 12)
    assert (days.factor, days.long_seconds, days.short_seconds) == (1.0, 3 * DAY, DAY / 4)


def test_the_time_to_a_page_is_told_honestly() -> None:
    """With every event bad the fast row takes forty minutes; with half of them bad it never fires."""
    fast = FAST.windows(objective=0.95, slo_seconds=28 * DAY)
    assert fast.seconds_to_fire(1.0, 0.95) == pytest.approx(0.672 * 3600)
    assert fast.seconds_to_fire(0.672, 0.95) is None
    assert fast.seconds_to_fire(0.5, 0.95) is None
