"""What an engine printed when it last started: device memory for a prediction to stand on, and how long it took."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from specbudget.domain.pool_sizing import ProfiledMemory, memory_from_start
from specbudget.domain.stages import Stage
from specbudget.domain.start_events import POOL_TOKENS, Mark, StartEvent
from specbudget.domain.start_log import starts_in
from specbudget.domain.start_up import read_start_up
from specbudget.sources.sglang.start_log import read_start_lines

MOST_READ = 64 << 20
"""A start is near the end of a log, or at its beginning: so much is read of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFigures:
    """One start of a log.

    `memory` is what its loads left of a device, `tokens` the pool that the engine then made. `cold_start` are the
    seconds until its first generation, `after_load` those of them behind the last load. None where not said.
    """

    memory: ProfiledMemory
    tokens: int | None
    cold_start: float | None
    after_load: float | None
    source: str


def read_start_figures(log: Path) -> StartFigures | None:
    """The latest start in a log whose loads are complete; None where it has none. Raises OSError."""
    with log.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - MOST_READ))
        found = _latest(file.read(MOST_READ), str(log))
        if found is None and size > MOST_READ:
            file.seek(0)
            found = _latest(file.read(MOST_READ), str(log))
    return found


def _latest(data: bytes, source: str) -> StartFigures | None:
    starts = starts_in(read_start_lines(data).events)
    return next((found for log in reversed(starts) if (found := _figures(log.events, source)) is not None), None)


def _figures(events: list[StartEvent], source: str) -> StartFigures | None:
    memory = memory_from_start(events)
    if memory is None:
        return None
    told = [e.figures.get(POOL_TOKENS) for e in events if e.mark is Mark.CAPACITY]
    start = read_start_up(events)
    loads = [s for s in start.stages if s.stage is Stage.LOAD]
    loaded = [s.offset + s.seconds for s in loads if s.offset is not None and s.seconds is not None]
    whole = start.cold_start_seconds
    return StartFigures(
        memory=memory,
        tokens=min((round(value) for value in told if value is not None), default=None),
        cold_start=whole,
        after_load=max(0.0, whole - max(loaded)) if whole is not None and loaded else None,
        source=source,
    )
