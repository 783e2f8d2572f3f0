"""What the sidecar of a replica says of its requests over the week: counters, gauges and likely causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specbudget.catalog.series import SeriesDef
from specbudget.domain.pair_change import Change, ModelChange
from specbudget.domain.requests import RequestBatch
from specbudget.domain.suspects import Evidence, Suspect
from specbudget.serve.suspect_book import SuspectBook
from week.calendar import DAY, DAYS, HOUR, MINUTE, PROFILES, SAMPLES, STEP, Floats, Restart, Week
from week.traffic import TARGETS, WINDOW, Requests

TIMES: Floats = np.arange(SAMPLES) * STEP
"""When pages are scraped."""

Labels = tuple[str, ...]
Bools = NDArray[np.bool_]

HIGH_WATER = 0.9
LOOKED_AT, LOOKED_AT_AFTER_START = 5 * MINUTE, MINUTE
"""How often the likely causes are judged; a real sidecar does it every second, which a week cannot afford."""


@dataclass
class Said:
    """Samples by series and the values of its own labels; NaN where the page has none."""

    values: dict[tuple[SeriesDef, str, Labels], Floats] = field(default_factory=dict)

    def add(self, series: SeriesDef, labels: Labels, values: Floats | float, *, suffix: str = "") -> None:
        """One series. `labels` are the values of its labels in the order of the declaration, `le` last."""
        assert len(labels) == len(series.labels) + (suffix == "_bucket"), series.name
        self.values[series, suffix, labels] = np.broadcast_to(np.asarray(values, dtype=np.float64), SAMPLES).copy()


@dataclass(frozen=True, kw_only=True)
class Lives:
    """When the sidecar of a replica answers, its engine works, and from when its counters count."""

    restarts: tuple[Restart, ...]

    @classmethod
    def of(cls, week: Week, replica: int) -> Lives:
        """Those of a replica."""
        return cls(restarts=tuple(sorted((r for r in week.restarts if r.replica == replica), key=lambda r: r.at)))

    def answers(self) -> Bools:
        """Scrapes that get a page."""
        return ~_any((r.at <= TIMES) & (r.back > TIMES) for r in self.restarts)

    def works(self) -> Bools:
        """Scrapes at which the engine is ready."""
        return ~_any((r.at <= TIMES) & (r.ready > TIMES) for r in self.restarts if r.engine)

    def starting(self) -> Bools:
        """Scrapes of a sidecar whose engine starts."""
        return _any((r.back <= TIMES) & (r.ready > TIMES) for r in self.restarts if r.engine)

    def since_zero(self, total: Floats, before: Floats) -> Floats:
        """A counter as the page says it: `total` up to each scrape, `before` up to each restart that begins anew."""
        shown = total.copy()
        for restart, base in zip(self.from_zero, before, strict=True):
            shown[restart.at <= TIMES] = total[restart.at <= TIMES] - base
        return shown

    @property
    def from_zero(self) -> tuple[Restart, ...]:
        """Restarts of another identity."""
        return tuple(r for r in self.restarts if not r.resumes)


def _any(parts: Iterator[Bools]) -> Bools:
    found = np.zeros(SAMPLES, np.bool_)
    for part in parts:
        found |= part
    return found


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Turns events of the week into counters."""

    lives: Lives
    answers: Bools

    def counter(self, when: Floats, weights: Floats | None = None) -> Floats:
        """A counter that grows by each event's weight when it is counted."""
        weights = np.ones(len(when)) if weights is None else weights.astype(np.float64)
        slots = np.minimum(np.ceil(when / STEP).astype(np.int64), SAMPLES)
        total = np.bincount(slots, weights=weights, minlength=SAMPLES + 1)[:SAMPLES].cumsum()
        before = np.array([weights[when < restart.at].sum() for restart in self.lives.from_zero])
        shown = self.lives.since_zero(total, before)
        return np.where(self.answers, shown, np.nan)


def likely_causes(week: Week, replica: int, requests: Requests, lives: Lives) -> dict[Suspect, Floats]:
    """0 or 1 by cause, judged by the sidecar's own book of evidence."""
    found = {cause: np.zeros(SAMPLES) for cause in Suspect}
    book, begun = SuspectBook(PROFILES), 0.0
    restarts = list(lives.restarts)
    looked = 0.0
    while looked < DAYS * DAY:
        if restarts and restarts[0].at <= looked:
            restart = restarts.pop(0)
            book = SuspectBook(PROFILES)
            if restart.engine:
                begun = restart.ready
                book.begin_life(begun)
        pace = LOOKED_AT_AFTER_START if looked - begun < HOUR / 2 else LOOKED_AT
        now = min(looked + pace, restarts[0].at) if restarts else looked + pace
        chosen = requests.between(looked, now)
        batch = part_of(requests.batch, chosen)
        # its slots are minutes, and it looks at the last one
        if len(batch):
            book.count(batch, ~batch.aborted & batch.has_steps(), now)
        for cause in book.suspects(_evidence(week, replica, now), now):
            found[cause][(looked < TIMES) & (now >= TIMES)] = 1.0
        looked = now
    return found


def _evidence(week: Week, replica: int, now: float) -> Evidence:
    here = np.array([now])
    swapped = any(p.fingerprint and p.covers(replica, here)[0] for p in week.phases)
    change = ModelChange(change=Change.CHANGED, parts=("weights",)) if swapped else ModelChange(change=Change.SAME)
    return Evidence(target_length=TARGETS["default"], window=WINDOW, high_water=HIGH_WATER, drafter_change=change)


def part_of(batch: RequestBatch, chosen: slice) -> RequestBatch:
    """Some rows of a batch."""
    columns: Mapping[str, NDArray[np.generic]] = {name: getattr(batch, name)[chosen] for name in batch.__slots__}
    return RequestBatch(**columns)  # type: ignore[arg-type]
