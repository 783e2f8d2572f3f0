"""What happened at moments and in intervals: starts, marks, gaps, alerts, states."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np

from specbudget.catalog import series
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.sets import Artifact
from specbudget.domain.acceptance import Bools, Floats
from specbudget.domain.axis import Axis, Row
from specbudget.review.model import EngineStart, FiredAlert, Gap, Mark, MarkKind
from specbudget.review.reading import SeriesReader, only, replica_of

_OWN_LABELS = frozenset({"alertname", "alertstate", "severity", "line", "service", "job", SERVICE_LABEL})


def intervals(held: Bools, axis: Axis) -> Iterator[tuple[float, float]]:
    """The stretches in which something holds, as (first point, last point)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], held, [False])).astype(np.int8)))
    for first, after in edges.reshape(-1, 2).tolist():
        yield axis.start + first * axis.step, axis.start + (after - 1) * axis.step


def fired_alerts(reader: SeriesReader) -> tuple[FiredAlert, ...] | None:
    """When which alert fired; None where the source keeps none."""
    rows = reader.alerts()
    if rows is None:
        return None
    found = [
        FiredAlert(
            name=row.labels.get("alertname", ""),
            severity=row.labels.get("severity", ""),
            line=row.labels.get("line", ""),
            start=start,
            end=end,
            labels=MappingProxyType({k: v for k, v in sorted(row.labels.items()) if k not in _OWN_LABELS}),
        )
        for row in rows
        for start, end in intervals(~np.isnan(row.values), reader.axis)
    ]
    return tuple(sorted(found, key=lambda alert: (alert.start, alert.name)))


def gaps(reader: SeriesReader) -> tuple[Gap, ...]:
    """Where no sidecar was read, and where one was read but did not see its engine."""
    axis, found = reader.axis, []
    if not reader.presence:
        return (Gap(start=axis.start, end=axis.end, reason="nothing was recorded"),)
    anywhere = np.logical_or.reduce(list(reader.presence.values()))
    found += [Gap(start=a, end=b, reason="nothing was recorded") for a, b in intervals(~anywhere, axis)]
    for replica, there in reader.presence.items():
        if len(reader.presence) > 1:
            missing = anywhere & ~there
            found += [
                Gap(start=a, end=b, reason="this replica was not recorded", replica=replica)
                for a, b in intervals(missing, axis)
            ]
        up = only(row for row in reader.rows(series.SOURCE_UP, source="metrics") if replica_of(row) == replica)
        if up is not None:
            found += [
                Gap(start=a, end=b, reason="the sidecar could not read its engine", replica=replica)
                for a, b in intervals(up == 0, axis)
            ]
    return tuple(sorted(found, key=lambda gap: (gap.start, gap.replica)))


def marks(reader: SeriesReader, engine_starts: tuple[EngineStart, ...]) -> tuple[Mark, ...]:
    """What happened at moments. An engine start that lies before the stretch is none."""
    axis = reader.axis
    found = [
        Mark(
            at=start.started_at,
            kind=MarkKind.ENGINE_START,
            text="the engine started",
            replica=_shown(reader, start.replica),
        )
        for start in engine_starts
        if start.basis is not None and axis.start - 60 <= start.started_at <= axis.end
    ]
    for row in reader.rows(series.CONFIG_RELOAD_TIME):
        found += [
            Mark(at=at, kind=MarkKind.CONFIG, text="a budget was loaded", replica=_shown(reader, replica_of(row)))
            for at in sorted({float(v) for v in row.values[~np.isnan(row.values)]})
            if axis.start - 60 <= at <= axis.end
        ]
    for row in reader.rows(series.ACCEPTANCE_TARGET):
        found += [
            Mark(
                at=at, kind=MarkKind.TARGET_LENGTH, text=f"target length of {row.labels['profile']}: {old:g} → {new:g}"
            )
            for at, old, new in _changes(row.values, axis)
        ]
    for row in reader.rows(series.KV_POOL_CAPACITY_TOKENS, artifact=Artifact.TARGET):
        found += [
            Mark(
                at=at,
                kind=MarkKind.CAPACITY,
                text=f"the target's pool: {old:,.0f} → {new:,.0f} tokens",
                replica=_shown(reader, replica_of(row)),
            )
            for at, old, new in _changes(row.values, axis)
        ]
    found += _pair_marks(reader) + _state_marks(reader)
    return tuple(sorted(set(found), key=lambda mark: (mark.at, mark.kind, mark.text)))


def _changes(values: Floats, axis: Axis) -> Iterator[tuple[float, float, float]]:
    """(when, before, after) of each change of a value, gaps left out."""
    known = np.flatnonzero(~np.isnan(values))
    for place in np.flatnonzero(np.diff(values[known]) != 0).tolist():
        at = known[place + 1]
        yield axis.start + float(at) * axis.step, float(values[known[place]]), float(values[at])


def held_facts(rows: list[Row], count: int, label: str) -> list[str | None]:
    """For facts whose value stands in a label: the value at each point, None where none stands.

    Where two stand at once (the look back still sees the old one) the one that goes on longer is the newer.
    """
    found: list[str | None] = [None] * count
    newest: list[float] = [-1.0] * count
    for row in rows:
        known = np.flatnonzero(~np.isnan(row.values) & (row.values > 0))
        if len(known):
            for place in known.tolist():
                if float(known[-1]) > newest[place]:
                    found[place], newest[place] = row.labels.get(label), float(known[-1])
    return found


def _pair_marks(reader: SeriesReader) -> list[Mark]:
    found = []
    for artifact in Artifact:
        for replica in reader.presence:
            rows = [row for row in reader.rows(series.ARTIFACT_INFO, artifact=artifact) if replica_of(row) == replica]
            held = held_facts(rows, reader.axis.count, "fingerprint")
            last = None
            for place, fingerprint in enumerate(held):
                if fingerprint is not None and last is not None and fingerprint != last:
                    found.append(
                        Mark(
                            at=reader.axis.start + place * reader.axis.step,
                            kind=MarkKind.PAIR,
                            text=f"another {artifact} on disk: {last[:8]} → {fingerprint[:8]}",
                            replica=_shown(reader, replica),
                        )
                    )
                last = fingerprint or last
    return found


def _state_marks(reader: SeriesReader) -> list[Mark]:
    """Changes of the state of speculation. A rank is named where there are several."""
    found = []
    rows = reader.rows(series.SPECULATION_STATE)
    places = sorted({(replica_of(row), row.labels.get("rank", "0")) for row in rows})
    for replica, rank in places:
        own = [row for row in rows if replica_of(row) == replica and row.labels.get("rank", "0") == rank]
        held, last = held_facts(own, reader.axis.count, "state"), None
        several = len({r for p, r in places if p == replica}) > 1
        for place, state in enumerate(held):
            if state is not None and last is not None and state != last:
                whose = f" on rank {rank}" if several else ""
                found.append(
                    Mark(
                        at=reader.axis.start + place * reader.axis.step,
                        kind=MarkKind.SPECULATION,
                        text=f"speculation{whose}: {last} → {state}",
                        replica=_shown(reader, replica),
                    )
                )
            last = state or last
    return found


def _shown(reader: SeriesReader, replica: str) -> str:
    """A replica is named only where there are several to tell apart."""
    return replica if len(reader.presence) > 1 else ""
