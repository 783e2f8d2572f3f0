"""Counters and histograms that live as long as the process, and longer where they are kept.

Every child of a closed set begins at 0, so that its first increment is an increase to whoever reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from specbudget.catalog.series import SERIES, Kind, SeriesDef
from specbudget.domain.acceptance import Floats
from specbudget.domain.counters import is_count

Labels = tuple[str, ...]


@dataclass(slots=True)
class Buckets:
    """One histogram's child: events per bucket (not cumulated, the last is +Inf) and the sum of values."""

    counts: list[int]
    sum: float = 0.0


@dataclass(slots=True)
class Ledger:
    """All counters and histograms by series name and label values."""

    counters: dict[str, dict[Labels, float]] = field(default_factory=dict)
    histograms: dict[str, dict[Labels, Buckets]] = field(default_factory=dict)
    changes: int = 0

    def begin(self, series: SeriesDef, *values: Iterable[str]) -> None:
        """Makes every combination of label values exist, at 0."""
        for labels in product(*values):
            if series.kind is Kind.HISTOGRAM:
                self._buckets(series, labels)
            else:
                self.counters.setdefault(series.name, {}).setdefault(labels, 0)
        self.changes += 1

    def add(self, series: SeriesDef, labels: Labels, amount: float) -> None:
        """Adds to a counter; an amount of 0 changes nothing, nor does one that is no count."""
        if amount and is_count(amount):
            children = self.counters.setdefault(series.name, {})
            children[labels] = children.get(labels, 0) + amount
            self.changes += 1

    def observe(self, series: SeriesDef, labels: Labels, values: Floats) -> None:
        """Adds n values (n) to a histogram."""
        if not len(values):
            return
        buckets = self._buckets(series, labels)
        if len(values) == 1:
            buckets.counts[bisect_left(series.buckets, values[0])] += 1
        else:
            places = np.searchsorted(np.asarray(series.buckets), values, side="left")
            for place, count in enumerate(np.bincount(places, minlength=len(buckets.counts)).tolist()):
                buckets.counts[place] += count
        buckets.sum += float(values.sum())
        self.changes += 1

    def _buckets(self, series: SeriesDef, labels: Labels) -> Buckets:
        children = self.histograms.setdefault(series.name, {})
        return children.setdefault(labels, Buckets([0] * (len(series.buckets) + 1)))

    def dump(self) -> dict[str, Any]:
        """Plain lists and numbers, for keeping."""
        return {
            "counters": {name: [[list(k), v] for k, v in children.items()] for name, children in self.counters.items()},
            "histograms": {
                name: [[list(k), b.counts, b.sum] for k, b in children.items()]
                for name, children in self.histograms.items()
            },
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Takes up what `dump` gave; series and buckets that are no longer declared are left out.

        Raises ValueError or TypeError, and takes up nothing, where a value is no count.
        """
        known = {series.name: series for series in SERIES}
        values = [v for children in kept["counters"].values() for _, v in children]
        values += [
            v for children in kept["histograms"].values() for _, counts, total in children for v in (*counts, total)
        ]
        if not all(is_count(value) for value in values):
            raise ValueError("a counter that is no count")
        for name, children in kept["counters"].items():
            if name in known:
                self.counters.setdefault(name, {}).update({tuple(k): v for k, v in children})
        for name, children in kept["histograms"].items():
            series = known.get(name)
            for labels, counts, total in children:
                if series is not None and len(counts) == len(series.buckets) + 1:
                    self.histograms.setdefault(name, {})[tuple(labels)] = Buckets(list(counts), total)
        self.changes += 1
