"""Time to page: what is promised holds in a simulation that knows nothing of the arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.burn import FAST, PAGE_ROWS, SLOW, BurnRow, BurnWindows
from specbudget.domain.time_to_page import Cadence, Guard, seconds_to_fall, seconds_to_page

DAYS_28 = 28 * 86400.0


def windows(row: BurnRow, objective: float = 0.95) -> BurnWindows:
    return row.windows(objective=objective, slo_seconds=DAYS_28)


def simulated(
    row: BurnWindows,
    bad: float,
    *,
    objective: float,
    waits: float,
    cadence: Cadence,
    phases: tuple[float, float, float],
    rate: float,
    guard: Guard,
    until: float,
) -> float | None:
    """Seconds from the first bad event to the message: counters scraped, recorded, compared and waited for.

    All clocks run apart by their `phases`; events are even, `rate` a second, five verify steps each.
    """
    scraped_at, recorded_at, evaluated_at = phases

    def increase(of_bad: bool, window: float, now: float) -> float:
        last = scraped_at + math.floor((now - scraped_at) / cadence.scrape) * cadence.scrape
        if of_bad:
            return bad * rate * max(0.0, last - max(0.0, last - window))
        return rate * window

    def holds(now: float) -> bool:
        for window in (row.long_seconds, row.short_seconds):
            if increase(True, window, now) / increase(False, window, now) <= row.factor * (1 - objective):
                return False
        events = increase(False, row.short_seconds, now)
        return events >= guard.events and 5 * events >= guard.steps

    pending: float | None = None
    now = evaluated_at
    while now <= until:
        recorded = recorded_at + math.floor((now - recorded_at) / cadence.evaluation) * cadence.evaluation
        if not holds(recorded):
            pending = None
        elif pending is None:
            pending = now
        if pending is not None and now - pending >= waits:
            return now + cadence.notification
        now += cadence.evaluation
    return None


@given(
    row=st.sampled_from(PAGE_ROWS),
    objective=st.sampled_from([0.6, 0.9, 0.95, 0.99]),
    bad=st.floats(0.01, 1.0),
    scrape=st.sampled_from([15.0, 30.0, 60.0]),
    evaluation=st.sampled_from([15.0, 30.0, 60.0, 120.0]),
    waits=st.sampled_from([0.0, 50.0, 120.0, 300.0]),
    phases=st.tuples(*[st.floats(0, 1, exclude_max=True)] * 3),
)
def test_a_page_comes_as_promised_and_not_before_it_can(
    row: BurnRow,
    objective: float,
    bad: float,
    scrape: float,
    evaluation: float,
    waits: float,
    phases: tuple[float, float, float],
) -> None:
    """With any phases of the clocks the message is out by the promise, and not before both windows can burn."""
    cadence = Cadence(scrape=scrape, evaluation=evaluation, notification=15.0)
    whole = windows(row, objective)
    promised = seconds_to_page(whole, bad, objective=objective, for_seconds=waits, cadence=cadence)
    came = simulated(
        whole,
        bad,
        objective=objective,
        waits=waits,
        cadence=cadence,
        phases=(phases[0] * scrape, phases[1] * evaluation, phases[2] * evaluation),
        rate=1.0,
        guard=Guard(events=20, steps=500),
        until=8 * 3600.0 + whole.long_seconds,
    )
    if promised is None:
        assert came is None
        return
    fires = whole.seconds_to_fire(bad, objective)
    assert fires is not None
    assert came is not None
    assert fires <= came <= promised + 1e-6


@pytest.mark.parametrize("rate", [0.05, 0.066, 0.067, 0.2, 0.333, 0.334, 1.0])
def test_the_guard_decides_whether_traffic_can_page(rate: float) -> None:
    """Events and steps in the short window: exactly from the least traffic on a page comes at all."""
    row, cadence = windows(FAST), Cadence(scrape=30.0, evaluation=30.0, notification=0.0)
    guard = Guard(events=20, steps=500)
    came = simulated(
        row,
        1.0,
        objective=0.95,
        waits=120.0,
        cadence=cadence,
        phases=(0.0, 0.0, 0.0),
        rate=rate,
        guard=guard,
        until=9e3,
    )
    assert guard.lets_page(row, events_per_second=rate, steps_per_second=5 * rate) is (came is not None)
    events, steps = guard.least_per_minute(row)
    assert (came is not None) is (60 * rate >= events and 300 * rate >= steps)


def test_which_shares_never_page() -> None:
    """At an objective of 0.95 the fast row needs more than 67.2 % of bad events, the slow one more than 28 %."""
    cadence = Cadence(scrape=30.0, evaluation=30.0, notification=15.0)

    def seconds(row: BurnRow, bad: float) -> float | None:
        return seconds_to_page(windows(row), bad, objective=0.95, for_seconds=120.0, cadence=cadence)

    assert seconds(FAST, 0.672) is None
    assert seconds(FAST, 0.673) is not None
    assert seconds(SLOW, 0.28) is None
    assert seconds(FAST, 1.0) == pytest.approx(3600 * 0.672 + 30 + 60 + 120 + 15)


def test_a_wait_ends_with_an_evaluation() -> None:
    """An alert's `for` of 50 seconds is a minute where rules are evaluated once a minute."""
    minute = Cadence(scrape=60.0, evaluation=60.0, notification=0.0)
    assert minute.for_time(50.0) == 60.0
    assert minute.for_time(0.0) == 0.0
    assert minute.longest_wait(50.0) == 60 + 120 + 60


@given(st.floats(1.4, 9.0), st.floats(1.0, 1.3))
def test_a_length_falls_through_the_window(before: float, after: float) -> None:
    """Second by second: the window's length is at its floor when it was said to be, and always within the window."""
    window, floor = 300.0, 1.3
    told = seconds_to_fall(before=before, after=after, floor=floor, window=window)
    assert told is not None
    assert told <= window + 1e-9
    assert (before * (window - told) + after * told) / window == pytest.approx(floor)


def test_a_length_that_stays_above_the_floor_never_falls_to_it() -> None:
    """And one that is at it already has fallen."""
    assert seconds_to_fall(before=4.0, after=1.31, floor=1.3, window=300.0) is None
    assert seconds_to_fall(before=1.2, after=1.1, floor=1.3, window=300.0) == 0.0
