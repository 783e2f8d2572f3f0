"""What the log of one start tells, on one time axis: the ranks' work, the moments of the main process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from specbudget.domain.log_clock import HOUR, HOUR_SLACK, Moment, SteadyClock, between
from specbudget.domain.rank_start import RankStart, settle_roles
from specbudget.domain.stages import StartBasis
from specbudget.domain.start_events import Mark, StartEvent
from specbudget.domain.start_phases import StartPhases

ENGINE_SLACK = 60.0
"""Seconds by which the engine's own clock may begin before or end after the lines that it is compared with."""


@dataclass(slots=True)
class Told:
    """Everything that the events of a start tell.

    `moments` are the events' own, `first_of` the first of each mark. `lead` is how many seconds before the first
    line the process began, as `basis` knows it; None where the log begins in the middle of the start.
    """

    ranks: dict[str, RankStart] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    first_of: dict[Mark, Moment] = field(default_factory=dict)
    newest: tuple[Moment, StartEvent] | None = None
    phases: StartPhases | None = None
    launch: dict[str, float] = field(default_factory=dict)
    clock_steps: int = 0
    basis: StartBasis | None = None
    lead: float | None = None

    def offset(self, moment: Moment | None) -> float | None:
        """Seconds from the start of the process to a moment, never negative; None where they are not comparable."""
        first = self.moments[0]
        if moment is None or self.lead is None or moment.era != first.era:
            return None
        # a stated duration may reach back before the first line
        return max(0.0, self.lead + moment.at - first.at)


def read_told(events: Sequence[StartEvent], *, lead: float | None) -> Told:
    """Reads the events of one start, in the order of the log. `lead` is known from the process id, or None."""
    told, clock = Told(), SteadyClock()
    _fill(told, events, [clock.moment(event) for event in events])
    told.clock_steps = clock.steps
    _take_out_an_hour(events, told)
    told.basis, told.lead = _basis(events, told, lead)
    settle_roles(list(told.ranks.values()))
    return told


def _fill(told: Told, events: Sequence[StartEvent], moments: list[Moment]) -> None:
    told.moments, told.newest = moments, None
    told.ranks.clear()
    told.first_of.clear()
    for event, moment in zip(events, moments, strict=True):
        told.first_of.setdefault(event.mark, moment)
        if told.newest is None or (moment.era, moment.at) >= (told.newest[0].era, told.newest[0].at):
            told.newest = (moment, event)
        if event.mark is Mark.LAUNCH:
            told.launch.update(event.figures)
        elif event.mark is Mark.TIMINGS:
            told.phases = phases_of(event.figures)
        else:
            told.ranks.setdefault(event.rank, RankStart(event.rank)).take(event, moment)


def _take_out_an_hour(events: Sequence[StartEvent], told: Told) -> None:
    """Where the engine's own time from launch to ready for requests is an hour less than the log's, the log jumped.

    It did so in its longest silence, so that what comes after it is an hour earlier.
    """
    engine = told.phases.engine if told.phases is not None else None
    whole = between(told.first_of.get(Mark.LAUNCH), told.first_of.get(Mark.TIMINGS))
    if engine is None or whole is None or abs(whole - engine - HOUR) > ENGINE_SLACK:
        return
    moments = told.moments
    gaps = [(between(before, after) or 0.0, place) for place, (before, after) in enumerate(pairwise(moments), 1)]
    gap, first = max(gaps)
    if gap < HOUR - HOUR_SLACK:
        return
    steady = [*moments[:first], *(moment.minus(HOUR) for moment in moments[first:])]
    told.clock_steps += 1
    _fill(told, events, steady)


def phases_of(figures: Mapping[str, float]) -> StartPhases:
    """Phases by the engine's own names; graph phases carry the prefix `graph/`. 0.0 is not measured."""
    told = {name: seconds for name, seconds in figures.items() if seconds > 0}
    graphs = {name.removeprefix("graph/"): seconds for name, seconds in told.items() if name.startswith("graph/")}
    return StartPhases(
        load=told.get("load_weight"),
        kv_alloc=told.get("kv_cache_allocation"),
        graph_capture=told.get("cuda_graph"),
        graphs=MappingProxyType(graphs),
        scheduler=told.get("scheduler_e2e"),
        engine=told.get("tokenizer_e2e"),
        hot_reload=told.get("hot_reload"),
    )


def _basis(events: Sequence[StartEvent], told: Told, lead: float | None) -> tuple[StartBasis | None, float | None]:
    if lead is not None:
        return StartBasis.PID_NAMESPACE, max(0.0, lead)
    first = events[0]
    match first.mark:
        case Mark.LAUNCH:
            return StartBasis.LAUNCH, 0.0
        case Mark.PREFETCH_BEGIN | Mark.LOAD_BEGIN:
            return StartBasis.FIRST_LOG_LINE, 0.0
        case Mark.LOAD_END if first.seconds is not None:
            return StartBasis.FIRST_LOG_LINE, first.seconds
        case _:
            pass
    # the log begins in the middle of the start: the engine's own clock tells how long before
    engine = told.phases.engine if told.phases is not None else None
    gone = between(told.moments[0], told.first_of.get(Mark.TIMINGS))
    if engine is None or gone is None:
        return None, None
    return StartBasis.LAUNCH, max(0.0, engine - gone)
