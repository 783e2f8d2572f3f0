"""Device memory that an engine printed when it last started: what a prediction can stand on instead of labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from specbudget.domain.rank_start import settle_roles
from specbudget.domain.stages import Stage, StageArtifact
from specbudget.domain.start_events import POOL_TOKENS, Mark, StartEvent
from specbudget.domain.start_log import StartLog
from specbudget.domain.start_told import read_told
from specbudget.domain.start_up import read_start_up
from specbudget.sources.sglang.start_log import read_start_lines

MOST_READ = 64 << 20
"""A start is near the end of a log, or at its beginning: so much is read of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFigures:
    """Bytes on one device, as printed: hundredths of a GiB.

    `before_load` is the least free memory of any rank at its first load, `free_after_load` the least at its last
    load's end; the weights are the largest of any rank. `tokens` is the pool that the engine then made. `cold_start`
    are the seconds until its first generation, `after_load` those of them behind the last load. None where not said.
    """

    before_load: float
    free_after_load: float
    target_weights: float
    drafter_weights: float | None
    tokens: int | None
    cold_start: float | None
    after_load: float | None
    source: str


def read_start_figures(log: Path) -> StartFigures | None:
    """The latest start in a log; None where it has none that is complete. Raises OSError."""
    with log.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - MOST_READ))
        found = _latest(file.read(MOST_READ))
        if found is None and size > MOST_READ:
            file.seek(0)
            found = _latest(file.read(MOST_READ))
    return None if found is None else _figures(found, str(log))


def _latest(data: bytes) -> list[StartEvent] | None:
    """The events of the last start whose loads are complete."""
    starts: list[StartLog] = [StartLog()]
    for event in read_start_lines(data).events:
        if starts[-1].ends_before(event):
            starts.append(StartLog())
        starts[-1].add(event)
    loaded = [log.events for log in starts if any(e.mark is Mark.LOAD_END for e in log.events)]
    return loaded[-1] if loaded else None


def _figures(events: list[StartEvent], source: str) -> StartFigures | None:
    told = read_told(events, lead=None)
    settle_roles(list(told.ranks.values()))
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for event in events:
        if event.free_bytes is None:
            continue
        if event.mark is Mark.LOAD_BEGIN:
            before.setdefault(event.rank, event.free_bytes)
        elif event.mark is Mark.LOAD_END:
            after[event.rank] = event.free_bytes
    weights: dict[StageArtifact, list[float]] = {StageArtifact.TARGET: [], StageArtifact.DRAFTER: []}
    for rank in told.ranks.values():
        for role, sizes in weights.items():
            own = [load.size_bytes for load in rank.loads if load.role is role and load.size_bytes is not None]
            if own:
                sizes.append(sum(own))
    if not before or before.keys() != after.keys() or not weights[StageArtifact.TARGET]:
        return None
    capacity = [e.figures.get(POOL_TOKENS) for e in events if e.mark is Mark.CAPACITY]
    tokens = min((round(value) for value in capacity if value is not None), default=None)
    start = read_start_up(events)
    loads = [s for s in start.stages if s.stage is Stage.LOAD]
    loaded = [s.offset + s.seconds for s in loads if s.offset is not None and s.seconds is not None]
    whole = start.cold_start_seconds
    return StartFigures(
        before_load=min(before.values()),
        free_after_load=min(after.values()),
        target_weights=max(weights[StageArtifact.TARGET]),
        drafter_weights=max(weights[StageArtifact.DRAFTER], default=None),
        tokens=tokens,
        cold_start=whole,
        after_load=max(0.0, whole - max(loaded)) if whole is not None and loaded else None,
        source=source,
    )
