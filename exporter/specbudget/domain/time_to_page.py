"""How long it takes until somebody is paged, from the arithmetic of windows, waiting times and cadences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specbudget.domain.burn import BurnWindows


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How often Prometheus scrapes and evaluates, and how long Alertmanager waits for siblings, in seconds."""

    scrape: float
    evaluation: float
    notification: float

    def longest_wait(self, for_seconds: float) -> float:
        """The most that passes between a condition that begins to hold and the message.

        One scrape until it can be seen, one evaluation until it is recorded and one until the alert reads that, then
        the alert's `for`, which ends with an evaluation, then Alertmanager.
        """
        return self.scrape + 2 * self.evaluation + self.for_time(for_seconds) + self.notification

    def for_time(self, for_seconds: float) -> float:
        """How long an alert really is pending: evaluations are apart."""
        return math.ceil(for_seconds / self.evaluation) * self.evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The least events and verify steps in the short window of a row."""

    events: int
    steps: int

    def lets_page(self, row: BurnWindows, *, events_per_second: float, steps_per_second: float) -> bool:
        """Whether even traffic is enough for the row to page."""
        seconds = row.short_seconds
        return seconds * events_per_second >= self.events and seconds * steps_per_second >= self.steps

    def least_per_minute(self, row: BurnWindows) -> tuple[float, float]:
        """Events and verify steps per minute from which the row can page."""
        return 60 * self.events / row.short_seconds, 60 * self.steps / row.short_seconds


def seconds_to_page(
    row: BurnWindows, bad_share: float, *, objective: float, for_seconds: float, cadence: Cadence
) -> float | None:
    """The most that passes until a page, from when `bad_share` of the events are bad and none were before.

    At an even rate of events that the guard lets page; None where it never comes to that. A request is an event when
    it ends: what it takes comes on top. A service that is younger than the long window pages sooner.
    """
    fires = row.seconds_to_fire(bad_share, objective)
    return None if fires is None else fires + cadence.longest_wait(for_seconds)


def seconds_to_fall(*, before: float, after: float, floor: float, window: float) -> float | None:
    """How long until the length over a window is at most `floor`, from when it went from `before` to `after`.

    At an even rate of verify steps; None where it never comes to that.
    """
    if before <= floor:
        return 0.0
    if after > floor:
        return None
    return window * (before - floor) / (before - after)
