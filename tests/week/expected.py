"""What may fire when, and what must: from the arithmetic of each alert and from the requests themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specbudget.catalog.alerts.burn import BURN_DAY, BURN_THREE_DAYS, FAST_BURN, SLOW_BURN
from specbudget.catalog.alerts.model import AlertDef
from specbudget.catalog.recording import BACKLOG_SECONDS, SELDOM_SECONDS
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import Suspect
from specbudget.domain.burn import BurnWindows
from specbudget.domain.requests import Verdict
from week.calendar import DAY, DAYS, MINUTE, STEP, Floats
from week.pages import Fleet
from week.replica import TIMES, Bools

INTERVAL = 60.0
"""Seconds between evaluations of most rules, the server's usual."""

NEAR = 0.03
"""Share by which what a server reckons from scrapes may differ from the requests themselves: a window's ends lie
between two scrapes, and a rule over days is evaluated only every two minutes."""

SLACK = STEP + 3 * SELDOM_SECONDS
"""Seconds from the moment at which a burn is true to its alert: a scrape, and one evaluation of the slowest groups each
for the increase, its sum and the alert."""


def wait(alert: AlertDef) -> float:
    """Seconds that pass between an alert's condition and the alert besides its `for`."""
    return STEP + 2 * (SELDOM_SECONDS if alert.reads_hours else INTERVAL) + INTERVAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An alert fires at some moment from `start` to `end`, if it `must`, and at none outside its spans."""

    alert: AlertDef
    start: float
    end: float
    by: float | None = None
    why: str = ""

    @property
    def must(self) -> bool:
        """Whether it has to fire, at the latest at `by`."""
        return self.by is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    """Whether a row burns by the requests themselves, at every minute: surely, or perhaps."""

    alert: AlertDef
    surely: Bools
    perhaps: Bools


MINUTES: Floats = np.arange(0.0, DAYS * DAY, INTERVAL)


def burns(fleet: Fleet, lags: Sequence[Floats], s: RuleSettings) -> tuple[Burn, ...]:
    """The four rows of the SLO, counted from the requests and never from a counter."""
    boots = [causes[Suspect.FROM_BOOT] > 0 for causes in fleet.suspected]
    paging = [
        _burn(
            fleet,
            s,
            alert,
            row,
            row.short_seconds,
            [_held(b, lag, row.short_seconds) for b, lag in zip(boots, lags, strict=True)],
        )
        for alert, row in zip((FAST_BURN, SLOW_BURN), s.pages, strict=True)
    ]
    tickets = [
        _burn(fleet, s, alert, row, row.long_seconds, [_at_minutes(boot) for boot in boots])
        for alert, row in zip((BURN_DAY, BURN_THREE_DAYS), s.tickets, strict=True)
    ]
    return tuple(
        one
        for faster, slower in (paging, tickets)
        for one in (
            faster,
            Burn(alert=slower.alert, surely=slower.surely & ~faster.perhaps, perhaps=slower.perhaps & ~faster.surely),
        )
    )


def _at_minutes(values: Bools) -> Bools:
    return values[np.searchsorted(TIMES, MINUTES)]


def _held(boot: Bools, lag: Floats, seconds: float) -> Bools:
    """Replicas left out of pages: within the window they were bad since their start, or far behind."""
    told = boot | (lag > BACKLOG_SECONDS)
    slots = int(seconds / STEP)
    return _at_minutes(np.convolve(told, np.ones(slots + 1))[: len(told)] > 0)


def _burn(
    fleet: Fleet, s: RuleSettings, alert: AlertDef, row: BurnWindows, guarded: float, left_out: Sequence[Bools]
) -> Burn:
    bound = row.factor * (1.0 - s.objective)
    ratios = {}
    for seconds in (row.long_seconds, row.short_seconds, guarded):
        events, bad, steps = (
            sum(np.where(out, 0.0, _in_window(fleet, place, what, seconds)) for place, out in enumerate(left_out))
            for what in ("events", "bad", "steps")
        )
        ratios[seconds] = np.asarray(bad) / np.maximum(events, 1), np.asarray(events), np.asarray(steps)
    (long, *_), (short, *_), (_, events, steps) = (ratios[x] for x in (row.long_seconds, row.short_seconds, guarded))

    def both(share: float) -> Bools:
        found: Bools = (long > bound * share) & (short > bound * share)
        return found & (events >= s.guard_events * share) & (steps >= s.guard_steps * share)

    return Burn(alert=alert, surely=both(1 + NEAR), perhaps=both(1 - NEAR))


def _in_window(fleet: Fleet, replica: int, what: str, seconds: float) -> Floats:
    """Sums over the window that ends at each minute."""
    requests = fleet.requests[replica]
    weights = {
        "events": (requests.verdict == Verdict.GOOD) | (requests.verdict == Verdict.BAD),
        "bad": requests.verdict == Verdict.BAD,
        "steps": np.where(requests.verdict == Verdict.INVALID, 0, requests.batch.steps),
    }[what].astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(weights)])
    last, first = (np.searchsorted(requests.counted_at, when) for when in (MINUTES, MINUTES - seconds))
    return total[last] - total[first]


def runs(holds: Bools) -> list[tuple[float, float]]:
    """Spans of minutes in which something holds: first and last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8)))
    return [(float(MINUTES[a]), float(MINUTES[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def burn_spans(found: Iterable[Burn]) -> tuple[Span, ...]:
    """A burn that surely lasts long enough must fire, and none may while it does not even perhaps burn."""
    spans = []
    for burn in found:
        waits = burn.alert.for_seconds + SLACK
        spans += [
            Span(alert=burn.alert, start=start, end=end + SLACK, why="perhaps burns")
            for start, end in runs(burn.perhaps)
        ]
        spans += [
            Span(alert=burn.alert, start=start, end=end + SLACK, by=start + waits, why="surely burns")
            for start, end in runs(burn.surely)
            if end - start > waits
        ]
    return tuple(spans)


Firing = Mapping[str, Sequence[tuple[float, float]]]
"""By name of an alert: the spans in which it fired, in seconds of the week."""


def complaints(spans: Sequence[Span], firing: Firing) -> list[str]:
    """What fired and may not, and what had to fire and did not; empty when all is well."""
    said = []
    for name, fired in firing.items():
        allowed = [span for span in spans if span.alert.name == name]
        for first, last in fired:
            covered = first
            for span in sorted(allowed, key=lambda span: span.start):
                if span.start <= covered <= span.end:
                    covered = max(covered, min(last, span.end) + (INTERVAL if span.end >= last else 0.0))
            if covered < last:
                said.append(
                    f"{name} fired {clock(first)} to {clock(last)}, and from {clock(covered)} nothing allows it"
                )
    for span in spans:
        if span.by is None:
            continue
        fired = firing.get(span.alert.name, ())
        if not any(first <= span.by and last >= span.start for first, last in fired):
            said.append(f"{span.alert.name} did not fire by {clock(span.by)} ({span.why} since {clock(span.start)})")
    return said


def clock(seconds: float) -> str:
    """A moment of the week for people."""
    day, rest = divmod(seconds, DAY)
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "next Mon")
    return f"{names[int(day)]} {int(rest // 3600):02d}:{int(rest % 3600 // MINUTE):02d}"
