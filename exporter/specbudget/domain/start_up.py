"""A start-up as its log tells it: stages by artifact, what is open, how long until the first generation.

Missing lines cost only their numbers: what is not known is None, and no duration is negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from specbudget.domain.log_clock import Moment, earliest, latest
from specbudget.domain.stages import Stage, StageArtifact, StagingMode, StartBasis
from specbudget.domain.start_events import OVERLAPS, PREFETCHES, SKIPS_WARMUP, Mark, StartEvent
from specbudget.domain.start_memory import RankMemory, rank_memory
from specbudget.domain.start_phases import StartPhases
from specbudget.domain.start_stages import (
    MODELS,
    OpenStage,
    StageTime,
    open_stage,
    overlap_ratio,
    stages_of,
    stages_of_phases,
)
from specbudget.domain.start_told import Told, read_told

__all__ = ["OpenStage", "StageTime", "StartUp", "read_start_up", "start_of_phases"]

NO_MEMORY: Mapping[str, RankMemory] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """One start. Offsets are seconds from the start of the process as `basis` knows it.

    `began_at` is the first line on the log's own clock and `lead` how long the process ran before it, as far as
    that is known. `progress` is the offset of the newest line. `cold_start_seconds` ends with the first successful
    generation, the server's own warm-up counting; waiting for traffic is not part of it. `warm_up` is False where
    the engine was told to skip it, True where it was answered. `memory` is by rank prefix. `order` is the order
    in which the models began to load.
    """

    basis: StartBasis | None
    began_at: float | None = None
    lead: float = 0.0
    stages: tuple[StageTime, ...] = ()
    open_stage: OpenStage | None = None
    progress: float | None = None
    ready: bool = False
    failed: bool = False
    ready_seconds: float | None = None
    cold_start_seconds: float | None = None
    memory: Mapping[str, RankMemory] = field(default_factory=lambda: NO_MEMORY)
    overlap_ratio: float | None = None
    mode: StagingMode | None = None
    order: tuple[StageArtifact, ...] = ()
    warm_up: bool | None = None
    phases: StartPhases | None = None
    clock_steps: int = 0

    def stage(self, stage: Stage, artifact: StageArtifact = StageArtifact.BOTH) -> StageTime | None:
        """The stage of an artifact, None where nothing tells of it."""
        return next((s for s in self.stages if s.stage is stage and s.artifact is artifact), None)


def read_start_up(
    events: Sequence[StartEvent],
    *,
    lead: float | None = None,
    generation_after_ready: float | None = None,
    records: bool = False,
    phases: StartPhases | None = None,
) -> StartUp:
    """The start that the events tell of: those of one start, in the order of the log, at least one.

    `lead` is how many seconds before the first line the process began, where its process id tells.
    `generation_after_ready` is how long after ready the first request was answered, the wait for it not counted,
    and `records` that somebody will say so: it matters where the engine skips its own warm-up. `phases` is what
    the engine's metrics say, for what the log does not.
    """
    told = read_told(events, lead=lead)
    phases = told.phases or phases
    ready, answered = told.first_of.get(Mark.FIRED_UP), _own_answer(told)
    skipped = told.launch.get(SKIPS_WARMUP) == 1.0
    ready_seconds = told.offset(ready)
    cold_start = told.offset(answered)
    if answered is None and ready_seconds is not None:
        if not skipped:
            # the engine says ready only once its own warm-up was answered
            cold_start = ready_seconds
        elif generation_after_ready is not None:
            cold_start = ready_seconds + max(0.0, generation_after_ready)
        elif Mark.ANSWERED in told.first_of and not records:
            # it does generate, and how long it waited for the request is not known
            cold_start = ready_seconds
    stages = stages_of(told, phases, warmed=answered if answered is not None or skipped else ready)
    # a log that begins in the middle of the start does not tell how long it took; the engine itself does
    ready_after = phases.engine if ready_seconds is None and ready is not None and phases is not None else ready_seconds
    stages += _reached(((Stage.READY, ready_after), (Stage.FIRST_GENERATION, cold_start)))
    failed = Mark.FAILED in told.first_of
    return StartUp(
        basis=told.basis,
        began_at=events[0].at,
        lead=told.lead or 0.0,
        stages=tuple(stages),
        open_stage=None if ready is not None or failed else open_stage(told),
        progress=told.offset(latest(told.moments)),
        ready=ready is not None,
        failed=failed,
        ready_seconds=ready_seconds,
        cold_start_seconds=cold_start,
        memory=MappingProxyType({r.rank: rank_memory(r) for r in told.ranks.values() if r.loads or r.pools}),
        overlap_ratio=overlap_ratio(told.ranks.values()),
        mode=_mode(told),
        order=_order(told),
        warm_up=False if skipped else True if answered is not None or ready is not None else None,
        phases=phases,
        clock_steps=told.clock_steps,
    )


def start_of_phases(phases: StartPhases, *, came_up: bool = False, generation_after: float | None = None) -> StartUp:
    """What metrics alone tell of a start: no split of the load into artifacts.

    `came_up`: the engine was seen to come up, so that this is its latest start and not one of long ago.
    `generation_after` is how long after that it answered its first request, None where nobody says so: then there
    is no cold start, for the engine's own time ends when it is ready.
    """
    whole = phases.engine
    cold_start = whole + generation_after if came_up and whole is not None and generation_after is not None else None
    marks = ((Stage.READY, whole), (Stage.FIRST_GENERATION, cold_start))
    start = StartUp(basis=None, stages=(*stages_of_phases(phases, ()), *_reached(marks)), phases=phases)
    if not came_up or whole is None:
        return start
    return replace(start, basis=StartBasis.OBSERVED, ready=True, ready_seconds=whole, cold_start_seconds=cold_start)


def _reached(marks: Iterable[tuple[Stage, float | None]]) -> list[StageTime]:
    """The moments that are known, as stages without a duration."""
    return [StageTime(stage=m, artifact=StageArtifact.BOTH, offset=o) for m, o in marks if o is not None]


def _own_answer(told: Told) -> Moment | None:
    """The answer to the server's own warm-up: what it answers later answers somebody else."""
    answered, ready = told.first_of.get(Mark.ANSWERED), told.first_of.get(Mark.FIRED_UP)
    if answered is None or ready is None:
        return answered
    return answered if (answered.era, answered.at) <= (ready.era, ready.at) else None


def _mode(told: Told) -> StagingMode | None:
    ranks = told.ranks.values()
    if told.launch.get(OVERLAPS) == 1.0 or any(rank.deferred for rank in ranks):
        return StagingMode.OVERLAP
    if told.launch.get(PREFETCHES) == 1.0 or any(rank.prefetch for rank in ranks):
        return StagingMode.PREFETCH
    # silence alone is no evidence: newer engines do not log their prefetch
    return StagingMode.SERIAL if told.launch.get(PREFETCHES) == 0.0 else None


def _order(told: Told) -> tuple[StageArtifact, ...]:
    begins = [
        (moment.era, moment.at, place, model)
        for place, model in enumerate(MODELS)
        if (moment := earliest(w.started for r in told.ranks.values() for w in r.loads if w.role is model)) is not None
    ]
    return tuple(model for *_, model in sorted(begins, key=lambda begin: begin[:3]))
