"""The starts of the engine that the series tell of, as timelines of stages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from specbudget.catalog import series
from specbudget.catalog.lines import STAGING, Unit
from specbudget.catalog.sets import Artifact, StageArtifact, StartBasis, StartKind, StartOutcome
from specbudget.domain.acceptance import Floats
from specbudget.domain.axis import Row
from specbudget.domain.stages import Stage
from specbudget.review.model import EngineStart, StartStage
from specbudget.review.reading import SeriesReader, only, replica_of

SAME_START_SECONDS = 5.0
"""A start whose time moves by less is the same one, known better."""
_ORDER = {stage.value: place for place, stage in enumerate(Stage)}


def starts(reader: SeriesReader) -> tuple[EngineStart, ...]:
    """The engine starts that the series tell of, each as it was last seen."""
    found: list[EngineStart] = []
    for replica in reader.presence:
        begun = _started_at(reader, replica)
        known = np.flatnonzero(~np.isnan(begun))
        if len(known):
            borders = [0, *(np.flatnonzero(np.diff(begun[known]) > SAME_START_SECONDS) + 1).tolist(), len(known)]
            for first, after in pairwise(borders):
                found.append(_start(reader, replica, known[first:after], float(begun[known[after - 1]])))
        elif reader.rows(series.STARTUP_STAGE_OFFSET):
            seen = np.flatnonzero(reader.presence[replica])
            if len(seen):
                found.append(_start(reader, replica, seen, reader.axis.start + seen[0] * reader.axis.step))
    return tuple(sorted(found, key=lambda start: (start.started_at, start.replica)))


def _started_at(reader: SeriesReader, replica: str) -> Floats:
    """When the running engine was started, at each point; the earliest basis that says so."""
    found: Floats = np.full(reader.axis.count, np.nan)
    for basis in StartBasis:
        for row in reader.rows(series.ENGINE_START_TIME, basis=basis):
            if replica_of(row) == replica:
                found = np.where(np.isnan(found), row.values, found)
    return found


def _start(reader: SeriesReader, replica: str, seen: np.ndarray, started_at: float) -> EngineStart:
    def own(wanted: series.SeriesDef) -> list[tuple[Mapping[str, str], float]]:
        rows = [row for row in reader.rows(wanted) if replica_of(row) == replica]
        return [(row.labels, last) for row in rows if (last := _last(row, seen)) is not None]

    durations = {(labels["artifact"], labels["stage"]): value for labels, value in own(series.STARTUP_STAGE_DURATION)}
    # without the last stage the gauge says how long the start has taken so far
    ended = any(labels["stage"] == Stage.FIRST_GENERATION for labels, _ in own(series.STARTUP_STAGE_OFFSET))
    whole = own(series.COLD_START) if ended else []
    pools = reader.rows(series.KV_POOL_CAPACITY_TOKENS, artifact=Artifact.TARGET)
    tokens = [last for row in pools if replica_of(row) == replica and (last := _last(row, seen)) is not None]
    staged = max(own(series.STAGING_INFO), key=lambda told: told[1], default=None)
    stages = [
        StartStage(
            artifact=StageArtifact(labels["artifact"]),
            stage=labels["stage"],
            offset=offset,
            seconds=durations.get((labels["artifact"], labels["stage"])),
        )
        for labels, offset in own(series.STARTUP_STAGE_OFFSET)
    ]
    budget = only(reader.rows(series.BUDGET_LIMIT[Unit.SECONDS], line=STAGING.id))
    seconds = whole[0][1] if whole else None
    limit = None if budget is None or np.isnan(budget[seen]).all() else float(budget[seen][~np.isnan(budget[seen])][-1])
    bases = own(series.ENGINE_START_TIME)
    overlap = own(series.STAGING_OVERLAP)
    return EngineStart(
        replica=replica,
        started_at=started_at,
        basis=StartBasis(bases[-1][0]["basis"]) if bases else None,
        stages=tuple(sorted(stages, key=lambda s: (s.offset, _ORDER.get(s.stage, len(_ORDER))))),
        seconds=seconds,
        kind=StartKind(whole[0][0]["kind"]) if whole else None,
        budget_seconds=limit,
        outcome=_outcome(seconds, limit, reader, replica, seen),
        mode=staged[0].get("mode") if staged else None,
        order=staged[0].get("order") if staged else None,
        warmup=staged[0].get("warmup") if staged else None,
        overlap_ratio=overlap[0][1] if overlap else None,
        target_tokens=min(tokens, default=None),
    )


def _outcome(
    seconds: float | None, limit: float | None, reader: SeriesReader, replica: str, seen: np.ndarray
) -> str | None:
    if seconds is not None:
        return StartOutcome.OVER_BUDGET if limit is not None and seconds > limit else StartOutcome.OK
    for row in reader.rows(series.STARTUPS, outcome=StartOutcome.STUCK):
        if replica_of(row) == replica and (_last(row, seen) or 0) > 0:
            return StartOutcome.STUCK
    return None


def _last(row: Row, seen: np.ndarray) -> float | None:
    """The last value among the points, if it stood at the newest of them that the series could be at."""
    values = row.values[seen]
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else None
