"""Reads the series of one service onto the axis of a review, each name once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from specbudget.catalog import series
from specbudget.catalog.kept import ALERTS, KEPT_BY_NAME
from specbudget.catalog.labels import DEFAULT_LABELS, REPLICA_LABELS, SERVICE_LABEL
from specbudget.catalog.series import SeriesDef
from specbudget.domain.acceptance import Bools, Floats
from specbudget.domain.axis import Axis, Row, axis_over
from specbudget.domain.counters import increases
from specbudget.domain.reduction import Reduction
from specbudget.review.samples import Samples

MOST_POINTS = 10_900
"""Points of an axis: fewer than the 11,000 that Prometheus gives of one series."""
STEPS = (5, 10, 15, 20, 30, 60, 120, 240, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
DEFAULT_INTERVAL = 15.0
LOOK_BACK_INTERVALS = 2.5
"""A point looks so many intervals back: one scrape may be late or lost before it counts as a gap."""

_PLACES = tuple(label for label in (*DEFAULT_LABELS, *REPLICA_LABELS) if label != SERVICE_LABEL)


def chosen_step(start: float, end: float, interval: float) -> float:
    """The step for a stretch: not finer than the samples, and so many points that every storage gives them."""
    least = max(interval, (end - start) / MOST_POINTS)
    return float(next((step for step in STEPS if step >= least - 1e-9), 86400 * math.ceil(least / 86400)))


class SeriesReader:
    """The series of one service in one stretch."""

    def __init__(self, samples: Samples, service: str, start: float, end: float) -> None:
        self.samples, self.service = samples, service
        interval = samples.interval(service)
        self.has_samples = interval is not None
        self.interval = interval or DEFAULT_INTERVAL
        self.axis: Axis = axis_over(start, end, chosen_step(start, end, self.interval))
        self.lookback = max(self.axis.step, LOOK_BACK_INTERVALS * self.interval)
        self._rows: dict[str, list[Row]] = {}
        self.presence: Mapping[str, Bools] = self._presence()
        """By replica: the points at which its sidecar was read."""

    def _presence(self) -> dict[str, Bools]:
        found: dict[str, Bools] = {}
        for row in self.rows(series.BUILD_INFO):
            known = ~np.isnan(row.values)
            replica = replica_of(row)
            found[replica] = found[replica] | known if replica in found else known
        return dict(sorted(found.items()))

    def rows(self, wanted: SeriesDef, **labels: str) -> list[Row]:
        """The children of a declared series whose labels are as given."""
        name = wanted.full_name
        if name not in self._rows:
            kept = KEPT_BY_NAME[name]
            matchers = {SERVICE_LABEL: self.service, **dict(kept.only)}
            self._rows[name] = self.samples.rows(name, matchers, self.axis, kept.reduction, self.lookback)
        return [
            row for row in self._rows[name] if all(row.labels.get(label) == value for label, value in labels.items())
        ]

    def alerts(self) -> list[Row] | None:
        """The firing alerts of the service; None where the source keeps none."""
        if not self.samples.keeps_alerts:
            return None
        matchers = {"alertstate": "firing", SERVICE_LABEL: self.service}
        return self.samples.rows(ALERTS, matchers, self.axis, Reduction.LAST, self.lookback)

    def grown(self, row: Row) -> Floats:
        """The increase of a counter at each point, over resets.

        A child that appears while its replica was already read grew from 0.
        """
        known = np.flatnonzero(~np.isnan(row.values))
        there = self.presence.get(replica_of(row))
        began = bool(len(known)) and there is not None and bool(there[: known[0]].any())
        return increases(row.values, began=began)

    def grown_sum(self, rows: Iterable[Row]) -> Floats | None:
        """The increase of several counters together; NaN where none of them was read, None without any."""
        return total([self.grown(row) for row in rows])

    def per_second(self, rows: Iterable[Row]) -> Floats | None:
        """Increase a second: over the time since the counter was read before."""
        rates = []
        for row in rows:
            known = np.flatnonzero(~np.isnan(row.values))
            seconds: Floats = np.full(self.axis.count, self.axis.step)
            seconds[known[1:]] = np.diff(known) * self.axis.step
            rates.append(self.grown(row) / seconds)
        return total(rates)


def replica_of(row: Row) -> str:
    """How the storage tells the replica of a row from others; empty where it is the only one it can be."""
    return " ".join(row.labels[label] for label in _PLACES if row.labels.get(label))


def total(parts: Iterable[Floats]) -> Floats | None:
    """The sum at each point over those that are known there; NaN where none is, None without any part."""
    stacked = list(parts)
    if not stacked:
        return None
    whole = np.stack(stacked)
    known = ~np.isnan(whole)
    found: Floats = np.where(known.any(axis=0), np.where(known, whole, 0.0).sum(axis=0), np.nan)
    return found


def extreme(parts: Iterable[Floats], *, lowest: bool = False) -> Floats | None:
    """The highest (or lowest) value at each point; NaN where none is known, None without any part."""
    stacked = list(parts)
    if not stacked:
        return None
    whole = np.stack(stacked)
    pick, empty = (np.fmin, np.inf) if lowest else (np.fmax, -np.inf)
    found: Floats = pick.reduce(whole, axis=0, initial=empty)
    found[np.isinf(found)] = np.nan
    return found


def only(rows: Iterable[Row]) -> Floats | None:
    """The values of a series that all replicas have alike, such as a target of the budget: the first that is known."""
    found: Floats | None = None
    for row in rows:
        found = row.values if found is None else np.where(np.isnan(found), row.values, found)
    return found
