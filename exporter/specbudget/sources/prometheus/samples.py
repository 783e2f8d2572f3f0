"""Reads series of a storage onto an axis, in chunks that bound what is held at once.

Only functions that Prometheus and VictoriaMetrics define alike are asked for: `last_over_time` and `max_over_time` of
one selector. Counters come as they are, since a sum over replicas would hide a reset; increases are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from specbudget.catalog.kept import ALERTS
from specbudget.catalog.labels import DEFAULT_LABELS, REPLICA_LABELS, SERVICE_LABEL
from specbudget.catalog.promql import equals, matching
from specbudget.catalog.series import BUILD_INFO, SERIES
from specbudget.domain.acceptance import Floats
from specbudget.domain.axis import Axis, Row
from specbudget.domain.reduction import Reduction
from specbudget.sources.prometheus.client import MatrixAnswer, NamesAnswer, PrometheusClient, TooMuchAsked

KIND = "prometheus"
MOST_POINTS = 11_000
"""Points of one answer: Prometheus refuses more for one series."""
MOST_VALUES = 250_000
"""Values of one answer, so that decoding it stays below 100 MB."""
FIRST_POINTS = 500
"""Points of the first question for a name, whose number of series is not known yet."""
FEWEST_POINTS = 20
"""A storage that refuses so little does not answer at all."""
USUAL_INTERVALS = (5, 10, 15, 20, 30, 60, 120, 300, 600, 3600)
COUNTED_OVER = 300.0
"""Seconds over which samples are counted to learn how far apart they are."""

_FUNCTIONS = {Reduction.LAST: "last_over_time", Reduction.HIGHEST: "max_over_time"}
_LABELS = {series.full_name: frozenset((SERVICE_LABEL, *series.labels)) for series in SERIES}
_PLACES = frozenset((*DEFAULT_LABELS, *REPLICA_LABELS))


class PrometheusSamples:
    """The samples of `start`…`end` in one storage. `progress` is told of each question that was answered."""

    keeps_alerts = True
    kind = KIND

    def __init__(
        self, client: PrometheusClient, start: float, end: float, progress: Callable[[], None] = lambda: None
    ) -> None:
        self._client, self._start, self._end, self._progress = client, start, end, progress
        self._points = FIRST_POINTS
        self.place = client.url
        self._seen: dict[str, tuple[float | None, tuple[float, float] | None]] = {}

    def services(self) -> tuple[str, ...]:
        """The services of which there are samples in the stretch."""
        query = {"match[]": BUILD_INFO.full_name, "start": f"{self._start:.3f}", "end": f"{self._end:.3f}"}
        found = self._client.ask(f"label/{SERVICE_LABEL}/values", query, NamesAnswer).data or []
        return tuple(sorted(name for name in found if name))

    def interval(self, service: str) -> float | None:
        """Seconds between samples, of a replica that was read all along; None without samples."""
        return self._look(service)[0]

    def extent(self, service: str) -> tuple[float, float] | None:
        """About when the first and the last sample were taken."""
        return self._look(service)[1]

    def _look(self, service: str) -> tuple[float | None, tuple[float, float] | None]:
        if service not in self._seen:
            self._seen[service] = self._looked(service)
        return self._seen[service]

    def _looked(self, service: str) -> tuple[float | None, tuple[float, float] | None]:
        over = min(COUNTED_OVER, max(15.0, (self._end - self._start) / 3))
        step = max(over / 4, math.ceil((self._end - self._start) / 1000))
        axis = Axis(start=self._start, step=step, count=math.ceil((self._end - self._start) / step) + 1)
        selector = matching(BUILD_INFO.full_name, (equals(SERVICE_LABEL, service),))
        rows = self._range(f"count_over_time({selector}[{round(over * 1000)}ms])", axis, _PLACES)
        counts = np.concatenate([row.values[~np.isnan(row.values)] for row in rows]) if rows else np.zeros(0)
        if not len(counts):
            return None, None
        between = over / max(1.0, float(np.median(counts)))
        usual = min(USUAL_INTERVALS, key=lambda seconds: abs(math.log(seconds / between)))
        known = np.flatnonzero(~np.isnan(np.stack([row.values for row in rows])).all(axis=0))
        times = axis.times[known]
        return float(usual), (float(max(self._start, times[0] - step)), float(min(self._end, times[-1])))

    def rows(
        self, name: str, matchers: Mapping[str, str], axis: Axis, reduction: Reduction, lookback: float
    ) -> list[Row]:
        """The series of a name whose labels are as given, on the axis.

        Labels that neither the series declares nor a replica is told by are left out, and what then is the same
        series (two scrapers of one sidecar) is taken once.
        """
        selector = matching(name, (equals(label, value) for label, value in sorted(matchers.items())))
        query = f"{_FUNCTIONS[reduction]}({selector}[{round(lookback * 1000)}ms])"
        kept = None if name == ALERTS else _LABELS.get(name, frozenset()) | _PLACES
        found: dict[tuple[tuple[str, str], ...], Floats] = {}
        for begin, chunk in self._chunks(axis, query, kept):
            for row in chunk:
                key = tuple(sorted(row.labels.items()))
                values = found.setdefault(key, np.full(axis.count, np.nan))
                part = values[begin : begin + len(row.values)]
                np.copyto(part, row.values, where=np.isnan(part))
        self._progress()
        return [Row(labels=dict(key), values=values) for key, values in sorted(found.items())]

    def _chunks(self, axis: Axis, query: str, kept: frozenset[str] | None) -> list[tuple[int, list[Row]]]:
        chunks, begin, points = [], 0, min(axis.count, FIRST_POINTS)
        while begin < axis.count:
            part = replace(axis, start=axis.start + begin * axis.step, count=min(points, axis.count - begin))
            try:
                rows = self._range(query, part, kept)
            except TooMuchAsked:
                if points <= FEWEST_POINTS:
                    raise
                points = max(FEWEST_POINTS, points // 4)
                continue
            chunks.append((begin, rows))
            begin += part.count
            points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_VALUES // max(1, len(rows))))
        return chunks

    def _range(self, query: str, axis: Axis, kept: frozenset[str] | None) -> list[Row]:
        asked = {
            "query": query,
            "start": f"{axis.start:.3f}",
            "end": f"{axis.end:.3f}",
            "step": f"{axis.step:.3f}",
            "nocache": "1",  # VictoriaMetrics then leaves the points where they are
        }
        rows = []
        for series in self._client.ask("query_range", asked, MatrixAnswer).data.result:
            values: Floats = np.full(axis.count, np.nan)
            if series.values:
                times, texts = zip(*series.values, strict=True)
                places = np.rint((np.array(times) - axis.start) / axis.step).astype(np.int64)
                inside = (places >= 0) & (places < axis.count)
                values[places[inside]] = np.array([float(text) for text in texts])[inside]
            labels = {
                name: value
                for name, value in series.metric.items()
                if name != "__name__" and (kept is None or name in kept)
            }
            rows.append(Row(labels=labels, values=values))
        return rows
