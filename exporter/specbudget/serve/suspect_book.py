"""Collects the evidence for likely causes of a low or strange acceptance length, a few sums per batch of records."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

import numpy as np

from specbudget.domain.acceptance import Bools, Floats, acceptance_length
from specbudget.domain.requests import RequestBatch
from specbudget.domain.rolling import SlotRing
from specbudget.domain.suspects import MIN_STEPS, Evidence, Suspect, suspects
from specbudget.domain.traffic_mix import LENGTH_BIN, Tally, expected_length
from specbudget.domain.trend import TrendPoint

RECENT_SECONDS = 300.0
"""The window that is judged."""

GROUP_SECONDS = 1800.0
"""The window in which requests with and without cached tokens, with long and short prompts are compared."""

BASELINE_REQUESTS = 200
"""The first requests of an engine's life, against which later traffic is held."""

LONG_PROMPT_TOKENS = 32_768
REPORTS_KEPT = 64
LENGTH_BINS = 310
"""Bins of 0.1 from a length of 1.0 on."""

_GROUPS = ("all", "cached", "uncached", "long", "short")
_FIELDS = 3

log = logging.getLogger(__name__)


class SuspectBook:
    """Sums of steps, accepted drafts and requests by group and by profile, over slots of a minute.

    Where no request log is read (`by_request` False) batch reports give the sums, without groups and profiles.
    """

    def __init__(self, profiles: tuple[str, ...]) -> None:
        self._profiles = profiles
        columns = _FIELDS * (len(_GROUPS) + len(profiles))
        self._sums = SlotRing(60.0, 361, columns)
        self._lengths = SlotRing(60.0, 31, LENGTH_BINS)
        self._retracted = SlotRing(60.0, 31, 1)
        self._told: frozenset[Suspect] = frozenset()
        self.reports: deque[float] = deque(maxlen=REPORTS_KEPT)
        self.saw_start = False
        self.by_request = True
        self._begin_life()

    def begin_life(self) -> None:
        """The engine started anew, and the start was seen: its life is judged from its first request."""
        self.saw_start = True
        self._begin_life()

    def _begin_life(self) -> None:
        columns = _FIELDS * (len(_GROUPS) + len(self._profiles))
        self._life: Floats = np.zeros(columns)
        self._baseline: Floats = np.zeros(columns)
        self._baseline_lengths: Floats = np.zeros(LENGTH_BINS)
        self._best: float | None = None
        self.reports.clear()

    def count(self, batch: RequestBatch, possible: Bools, now: float) -> None:
        """Counts the requests of a batch whose length is possible."""
        rows = _rows(batch, possible, len(self._profiles))
        times = batch.finished_at[possible]
        self._sums.add(times, rows, now)
        lengths = batch.lengths()[possible]
        bins = np.zeros((len(lengths), LENGTH_BINS))
        places = np.minimum((lengths - 1.0) / LENGTH_BIN + 1e-6, LENGTH_BINS - 1).astype(np.int64)
        bins[np.arange(len(lengths)), places] = 1.0
        self._lengths.add(times, bins, now)
        total: Floats = rows.sum(axis=0)
        self._life += total
        if self._baseline[2] < BASELINE_REQUESTS:
            self._baseline += total
            self._baseline_lengths += bins.sum(axis=0)
        self._note_best(now)

    def count_report(self, length: float, steps: float, *, at: float, now: float) -> None:
        """Counts a batch report of `steps` verify steps."""
        self.reports.append(length)
        if self.by_request:
            return
        row = np.zeros(len(self._life))
        row[:_FIELDS] = steps, steps * (length - 1.0), 1.0
        self._sums.add(np.array([at]), row[None, :], now)
        self._life += row
        self._note_best(now)

    def count_retractions(self, count: float, now: float) -> None:
        """Counts requests that lost their KV."""
        if count > 0:
            self._retracted.add(np.array([now]), np.array([[count]]), now)

    def _note_best(self, now: float) -> None:
        minute = _tally(self._sums.total(60.0, now), 0)
        if minute.length is not None and minute.steps >= MIN_STEPS:
            self._best = minute.length if self._best is None else max(self._best, minute.length)

    def expected(self, references: Mapping[str, float], now: float) -> float | None:
        """The length to expect of the recent mix: each profile's reference, else its length in the baseline."""
        recent, early = self._by_profile(self._sums.total(RECENT_SECONDS, now)), self._by_profile(self._baseline)
        own = {n: t.length for n, t in early.items() if t.length is not None and t.steps >= MIN_STEPS}
        lengths = {name: length for name, length in own.items() if length is not None} | dict(references)
        return expected_length({name: tally.steps for name, tally in recent.items()}, lengths)

    def evidence(self, known: Evidence, now: float) -> Evidence:
        """`known` with what this book has counted."""
        recent, groups = self._sums.total(RECENT_SECONDS, now), self._sums.total(GROUP_SECONDS, now)
        has_baseline = self._baseline[2] >= BASELINE_REQUESTS
        return Evidence(
            **{name: getattr(known, name) for name in Evidence.__slots__}
            | {
                "recent": _tally(recent, 0),
                "since_start": _tally(self._life, 0) if self.saw_start else None,
                "best_since_start": self._best,
                "trend_points": self._trend(now),
                "profiles": self._by_profile(recent),
                "earlier_profiles": self._by_profile(self._baseline) if has_baseline else {},
                "lengths": self._lengths.total(RECENT_SECONDS, now).tolist(),
                "retractions": float(self._retracted.total(RECENT_SECONDS, now)[0]),
                "earlier_lengths": self._baseline_lengths.tolist() if has_baseline else (),
                **{
                    name: _tally(groups, place)
                    for place, name in ((1, "cached"), (2, "uncached"), (3, "long_prompts"), (4, "short_prompts"))
                },
                "reports": len(self.reports),
                "lowest_report": min(self.reports, default=None),
                "highest_report": max(self.reports, default=None),
            }
        )

    def suspects(self, known: Evidence, now: float) -> dict[Suspect, str]:
        """The causes that the evidence speaks for, each with its sentence; a new one is logged once."""
        found = suspects(self.evidence(known, now))
        for cause in found.keys() - self._told:
            log.warning("likely cause: cause=%s evidence=%s", cause, found[cause])
        self._told = frozenset(found)
        return found

    def _by_profile(self, sums: Floats) -> dict[str, Tally]:
        return {name: _tally(sums, len(_GROUPS) + place) for place, name in enumerate(self._profiles)}

    def _trend(self, now: float) -> list[TrendPoint]:
        index, sums = self._sums.dump()
        points = []
        for slot, row in zip(index, sums, strict=True):
            length = acceptance_length(row[1], row[0])
            if length is not None:
                points.append(TrendPoint(hours=(slot * 60.0 + 30.0 - now) / 3600.0, length=length, steps=row[0]))
        return points


def _rows(batch: RequestBatch, possible: Bools, profiles: int) -> Floats:
    """One row per possible request: (steps, accepted, 1) in the columns of each group that it belongs to."""
    steps, accepted = batch.steps[possible], np.maximum(batch.accepted[possible], 0)
    values: Floats = np.stack([steps, accepted, np.ones(len(steps))], axis=1).astype(np.float64)
    cached, prompt = batch.cached_tokens[possible], batch.prompt_tokens[possible]
    member = [
        np.ones(len(steps), dtype=np.bool_),
        cached > 0,
        cached == 0,
        prompt >= LONG_PROMPT_TOKENS,
        (prompt >= 0) & (prompt < LONG_PROMPT_TOKENS),
        *(batch.profile[possible] == place for place in range(profiles)),
    ]
    rows: Floats = np.concatenate([values * of_group[:, None] for of_group in member], axis=1)
    return rows


def _tally(sums: Floats, place: int) -> Tally:
    steps, accepted, requests = sums[_FIELDS * place : _FIELDS * (place + 1)].tolist()
    return Tally(steps=steps, accepted=accepted, requests=requests)
