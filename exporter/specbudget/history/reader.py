"""Reads the history as it is at one moment, also while a sidecar writes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from specbudget.catalog.series import SERVICE_LABEL
from specbudget.domain.acceptance import Floats
from specbudget.domain.axis import Axis, Row
from specbudget.domain.reduction import Reduction, on_axis
from specbudget.errors import StateError
from specbudget.history.codec import BlockError, unpack
from specbudget.history.database import FILE_NAME, check_layout, opened_for_reading
from specbudget.history.writer import TIERS

KIND = "history"


class HistorySamples:
    """The samples of a stretch of one state folder's history. Raises StateError when it cannot be read."""

    keeps_alerts = False
    kind = KIND

    def __init__(self, folder: Path, start: float, end: float) -> None:
        self._path = folder / FILE_NAME
        self.place = str(self._path)
        self._start = start
        self.damaged_blocks = 0
        self._series: dict[int, tuple[str, Mapping[str, str]]] = {}
        self._times: dict[int, list[Floats]] = {}
        self._values: dict[int, list[Floats]] = {}
        self._interval: float | None = None
        if not self._path.exists():
            where = "no such folder" if not folder.is_dir() else f"no {FILE_NAME} in it"
            raise StateError(f"{folder}: {where}: give the folder that `specbudget serve --state` writes to")
        try:
            with opened_for_reading(self._path) as db:
                self._read(db, start, end)
        except (sqlite3.Error, OSError, ValueError) as error:
            raise StateError(f"{self._path}: the history cannot be read: {error}") from error

    def _read(self, db: sqlite3.Connection, start: float, end: float) -> None:
        check_layout(db, self._path)
        for number, name, labels in db.execute("SELECT id, name, labels FROM series"):
            self._series[number] = (name, dict(json.loads(labels)))
        # a little before the start: the first point looks back
        first, last = round((start - 2 * TIERS[-1].interval) * 1000), round(end * 1000)
        blocks = db.execute(
            "SELECT interval, data FROM blocks WHERE last >= ? AND first <= ? ORDER BY first, interval", (first, last)
        )
        every: list[Floats] = []
        for interval, data in blocks:
            try:
                times_ms, columns = unpack(data)
            except BlockError:
                self.damaged_blocks += 1
                continue
            inside = (times_ms >= first) & (times_ms <= last)
            times = times_ms[inside] / 1000
            within = times[times >= start]
            if len(within):
                self._interval = max(float(interval), self._interval or 0.0)
                every.append(within)
            for number, values in columns.items():
                self._times.setdefault(number, []).append(times)
                self._values.setdefault(number, []).append(values[inside])
        self._all: Floats = np.sort(np.concatenate(every)) if every else np.zeros(0)

    def services(self) -> tuple[str, ...]:
        """The services of which there are samples in the stretch."""
        found = {
            self._series[number][1].get(SERVICE_LABEL, "")
            for number, parts in self._times.items()
            # what lies before the stretch is there for its first points only
            if number in self._series and any((times >= self._start).any() for times in parts)
        }
        return tuple(sorted(found - {""}))

    def interval(self, service: str) -> float | None:
        """Seconds between samples, of the coarsest part of the stretch; None without samples."""
        return self._interval

    def extent(self, service: str) -> tuple[float, float] | None:
        """The first and the last sample in the stretch."""
        return (float(self._all[0]), float(self._all[-1])) if len(self._all) else None

    def rows(
        self, name: str, matchers: Mapping[str, str], axis: Axis, reduction: Reduction, lookback: float
    ) -> list[Row]:
        """The series of a name whose labels are as given, on the axis."""
        found = []
        for number, (own, labels) in self._series.items():
            if own != name or number not in self._times:
                continue
            if any(labels.get(label) != value for label, value in matchers.items()):
                continue
            times, values = np.concatenate(self._times[number]), np.concatenate(self._values[number])
            order = np.argsort(times, kind="stable")
            on = on_axis(times[order], values[order], axis, reduction, lookback)
            if not np.isnan(on).all():
                found.append(Row(labels=labels, values=on))
        return found
