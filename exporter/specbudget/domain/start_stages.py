"""The stages of a start by artifact: each as long as its slowest rank, from its first rank's begin on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specbudget.domain.log_clock import Moment, between, earliest, latest
from specbudget.domain.rank_start import RankStart, Work
from specbudget.domain.stages import Stage, StageArtifact
from specbudget.domain.start_events import Mark
from specbudget.domain.start_phases import StartPhases
from specbudget.domain.start_told import Told

MODELS = (StageArtifact.TARGET, StageArtifact.DRAFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """A stage: seconds from the start of the process to its begin, and how long it took; None where not known."""

    stage: Stage
    artifact: StageArtifact
    offset: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStage:
    """The stage that a start is in, since so many seconds after the start of the process."""

    stage: Stage
    artifact: StageArtifact
    offset: float | None


def stages_of(told: Told, phases: StartPhases | None, *, warmed: Moment | None) -> list[StageTime]:
    """Every stage up to warm-up that something tells of, in order; `warmed` is when the warm-up was answered."""
    ranks = list(told.ranks.values())
    found = [
        _works(told, Stage.PREFETCH, StageArtifact.BOTH, [rank.prefetch for rank in ranks]),
        *(_works(told, Stage.LOAD, m, [[w for w in r.loads if w.role is m] for r in ranks]) for m in MODELS),
        _spans(told, Stage.POST_LOAD, StageArtifact.BOTH, [_post_load(rank) for rank in ranks]),
        _spans(told, Stage.KV_ALLOC, StageArtifact.TARGET, [_target_pools(rank) for rank in ranks]),
        _spans(told, Stage.KV_ALLOC, StageArtifact.DRAFTER, [_drafter_pools(rank) for rank in ranks]),
        *(
            _works(told, Stage.GRAPH_CAPTURE, m, [[w for w in r.captures if w.role is m] for r in ranks])
            for m in MODELS
        ),
        _spans(told, Stage.WARMUP, StageArtifact.BOTH, [(told.first_of.get(Mark.HTTP_UP), warmed)]),
    ]
    known = [stage for stage in found if stage is not None]
    return known if phases is None else [*known, *stages_of_phases(phases, known)]


def stages_of_phases(phases: StartPhases, found: Sequence[StageTime]) -> list[StageTime]:
    """The stages that only the engine's own phases tell of, beside those `found`."""
    known = {stage.stage for stage in found if stage.seconds is not None}
    owners = MODELS if phases.graphs else (StageArtifact.BOTH,)
    told = [
        (Stage.LOAD, StageArtifact.BOTH, phases.load),
        (Stage.KV_ALLOC, StageArtifact.BOTH, phases.kv_alloc),
        *((Stage.GRAPH_CAPTURE, owner, phases.captured(owner)) for owner in owners),
    ]
    return [
        StageTime(stage=stage, artifact=artifact, seconds=seconds)
        for stage, artifact, seconds in told
        if seconds is not None and stage not in known
    ]


def _works(told: Told, stage: Stage, artifact: StageArtifact, works: Iterable[list[Work]]) -> StageTime | None:
    """`works` by rank: the pieces of one rank follow each other and add up."""
    of_ranks = [own for own in works if own]
    if not of_ranks:
        return None
    begin = earliest(work.started for own in of_ranks for work in own)
    totals = [total for own in of_ranks if (total := _total(own)) is not None]
    return StageTime(stage=stage, artifact=artifact, offset=told.offset(begin), seconds=max(totals, default=None))


def _total(works: list[Work]) -> float | None:
    seconds = [work.seconds for work in works]
    return None if None in seconds else sum(s for s in seconds if s is not None)


_Span = tuple[Moment | None, Moment | None]


def _spans(told: Told, stage: Stage, artifact: StageArtifact, spans: Iterable[_Span | None]) -> StageTime | None:
    """`spans` by rank, None where a rank has none."""
    known = [span for span in spans if span is not None and span[0] is not None]
    if not known:
        return None
    times = [seconds for span in known if (seconds := between(*span)) is not None]
    begin = earliest(begin for begin, _ in known)
    return StageTime(stage=stage, artifact=artifact, offset=told.offset(begin), seconds=max(times, default=None))


def _post_load(rank: RankStart) -> _Span | None:
    """From the end of a rank's last load to its first pool."""
    return (rank.loads[-1].end, rank.pools[0].begin) if rank.loads and rank.pools else None


def _target_pools(rank: RankStart) -> _Span | None:
    pools = rank.settled_pools
    return (pools[0].begin, pools[0].end) if pools else None


def _drafter_pools(rank: RankStart) -> _Span | None:
    """From the end of the target's pools to the end of the last drafter's."""
    pools = rank.settled_pools
    return (pools[0].end or pools[1].begin, pools[-1].end) if len(pools) > 1 else None


def open_stage(told: Told) -> OpenStage | None:
    """Where a start that is not ready is: what began and did not end, else what follows the newest line."""
    if told.newest is None or told.newest[1].mark is Mark.LAUNCH:
        return None
    moment, event = told.newest
    if event.mark not in (Mark.CAPACITY, Mark.TIMINGS, Mark.HTTP_UP, Mark.ANSWERED):
        works = [(Stage.LOAD, w) for rank in told.ranks.values() for w in rank.loads if w.is_open]
        works += [(Stage.GRAPH_CAPTURE, w) for rank in told.ranks.values() for w in rank.captures if w.is_open]
        first = earliest(work.begin for _, work in works)
        for stage, work in works:
            if work.begin == first:
                return OpenStage(stage=stage, artifact=work.role or StageArtifact.BOTH, offset=told.offset(first))
    match event.mark:
        case Mark.PREFETCH_BEGIN | Mark.PREFETCH_END:
            stage = Stage.PREFETCH
        case Mark.LOAD_BEGIN | Mark.LOAD_END | Mark.DEFERRED_LOAD | Mark.DRAFT_RUNNER:
            stage = Stage.POST_LOAD
            moment = latest(rank.loads[-1].end for rank in told.ranks.values() if rank.loads) or moment
        case Mark.KV_POOL | Mark.STATE_POOL | Mark.POOLS_END:
            stage = Stage.KV_ALLOC
        case Mark.HTTP_UP | Mark.ANSWERED:
            stage, moment = Stage.WARMUP, told.first_of.get(Mark.HTTP_UP, moment)
        case _:
            stage = Stage.READY
    return OpenStage(stage=stage, artifact=StageArtifact.BOTH, offset=told.offset(moment))


def overlap_ratio(ranks: Iterable[RankStart]) -> float | None:
    """The overlap of the two loads, of the rank where it is largest; 0 where one process loads both in turn.

    All from the times of the log, which are cut to whole seconds alike: loads one after the other give exactly 0.
    """
    ratios = []
    for rank in ranks:
        extents = [_extent([w for w in rank.loads if w.role is model]) for model in MODELS]
        if extents[0] is not None and extents[1] is not None and extents[0][2] == extents[1][2]:
            ratios.append(hidden_ratio(extents[0][:2], extents[1][:2]))
    return max(ratios, default=None)


def hidden_ratio(target: tuple[float, float], drafter: tuple[float, float]) -> float:
    """(T_target + T_drafter − span) ÷ the shorter, from 0 to 1, of two (begin, end); 0 where one takes no time."""
    times = (target[1] - target[0], drafter[1] - drafter[0])
    span = max(target[1], drafter[1]) - min(target[0], drafter[0])
    if min(times) <= 0:
        return 0.0
    return min(1.0, max(0.0, (sum(times) - span) / min(times)))


def _extent(works: list[Work]) -> tuple[float, float, int] | None:
    """(begin, end, era) of a model's loads on one rank."""
    begin, end = earliest(work.started for work in works), latest(work.end for work in works)
    return None if begin is None or end is None or begin.era != end.era else (begin.at, end.at, begin.era)
