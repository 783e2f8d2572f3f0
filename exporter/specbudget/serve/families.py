"""Turns declared series and values into the metric families of prometheus-client."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from specbudget.catalog.series import SERIES, SERVICE_LABEL, Kind, SeriesDef
from specbudget.serve.ledger import Buckets, Labels, Ledger

Value = TypeVar("Value")

MAX_CHILDREN = 1000
"""Children of one series that are printed at most; every label is a closed or capped set, so this is a stop."""


class Families:
    """Collects the samples of one rendering, in the order of the catalog; every series has its HELP and TYPE."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._gauges: dict[str, list[tuple[Labels, float]]] = {}

    def gauge(self, series: SeriesDef, labels: Labels, value: float | None) -> None:
        """One gauge sample; None and what is not finite are left out."""
        if value is not None and math.isfinite(value):
            self._gauges.setdefault(series.name, []).append((labels, value))

    def state(self, series: SeriesDef, labels: Labels, states: Iterable[str], now_in: str) -> None:
        """A state set: one sample per state, exactly one of them 1."""
        for state in states:
            self.gauge(series, (*labels, state), 1.0 if state == now_in else 0.0)

    def render_with(self, ledger: Ledger) -> Iterator[Metric]:
        """All families: gauges as collected, counters and histograms from the ledger."""
        for series in SERIES:
            names = [SERVICE_LABEL, *series.labels]
            match series.kind:
                case Kind.GAUGE:
                    gauge = GaugeMetricFamily(series.full_name, series.help, labels=names)
                    for labels, value in self._gauges.get(series.name, ())[:MAX_CHILDREN]:
                        gauge.add_metric([self._service, *labels], value)
                    yield gauge
                case Kind.COUNTER:
                    counter = CounterMetricFamily(series.full_name.removesuffix("_total"), series.help, labels=names)
                    for labels, value in _ordered(ledger.counters.get(series.name, {}))[:MAX_CHILDREN]:
                        counter.add_metric([self._service, *labels], value)
                    yield counter
                case Kind.HISTOGRAM:
                    histogram = HistogramMetricFamily(series.full_name, series.help, labels=names)
                    for labels, buckets in _ordered(ledger.histograms.get(series.name, {}))[:MAX_CHILDREN]:
                        histogram.add_metric([self._service, *labels], _cumulated(series, buckets), buckets.sum)
                    yield histogram


def _ordered(children: dict[Labels, Value]) -> list[tuple[Labels, Value]]:
    return sorted(children.items())


def _cumulated(series: SeriesDef, buckets: Buckets) -> list[tuple[str, float]]:
    """(le, events at or under it), up to +Inf."""
    bounds = [f"{bound:g}" if bound != int(bound) else f"{bound:.1f}" for bound in series.buckets]
    total, rows = 0, []
    for bound, count in zip([*bounds, "+Inf"], buckets.counts, strict=True):
        total += count
        rows.append((bound, float(total)))
    return rows
