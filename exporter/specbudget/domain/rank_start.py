"""One rank's part of a start-up: its loads, pools and captures as pairs, in the order in which it did them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specbudget.domain.log_clock import EVIDENCE_SLACK, Moment, between
from specbudget.domain.stages import StageArtifact
from specbudget.domain.start_events import Mark, StartEvent


@dataclass(slots=True)
class Work:
    """One piece of work with a begin and an end line, of which either may be missing."""

    label: str = ""
    role: StageArtifact | None = None
    begin: Moment | None = None
    end: Moment | None = None
    stated: float | None = None
    model: str | None = None
    size_bytes: float | None = None
    passed: bool = False
    """Its end line is missing and a later line of the rank shows that it is over."""

    @property
    def seconds(self) -> float | None:
        """The duration that the end line states, else end − begin; None where neither is known."""
        return self.stated if self.stated is not None else between(self.begin, self.end)

    @property
    def started(self) -> Moment | None:
        """Its begin line, else its end less its duration."""
        if self.begin is not None or self.end is None or self.stated is None:
            return self.begin
        return self.end.minus(self.stated)

    @property
    def is_open(self) -> bool:
        """True while it began and nothing shows that it is over."""
        return self.begin is not None and self.end is None and not self.passed


@dataclass(slots=True)
class Pools:
    """The pools of one runner."""

    begin: Moment | None = None
    end: Moment | None = None
    kv_bytes: dict[str, float | None] = field(default_factory=dict)
    state_bytes: float | None = None
    verify_bytes: float | None = None


@dataclass(slots=True)
class RankStart:
    """What one rank did. `loads` and `pools` are in order; which is whose is settled over all ranks.

    `free_before` and `free_loaded` are free memory before the first load and after the last one.
    """

    rank: str
    prefetch: list[Work] = field(default_factory=list)
    loads: list[Work] = field(default_factory=list)
    pools: list[Pools] = field(default_factory=list)
    captures: list[Work] = field(default_factory=list)
    resized: dict[StageArtifact, float] = field(default_factory=dict)
    free_bytes: float | None = None
    free_before: float | None = None
    free_loaded: float | None = None
    deferred: bool = False

    @property
    def settled_pools(self) -> list[Pools]:
        """The pools, the target's first; none once a missing line leaves open whose they are."""
        return [] if self.captures and len(self.pools) < len(self.loads) else self.pools

    def take(self, event: StartEvent, moment: Moment) -> None:
        """Adds a line."""
        match event.mark:
            case Mark.PREFETCH_BEGIN | Mark.LOAD_BEGIN | Mark.CAPTURE_BEGIN:
                self._begin(event, moment)
            case Mark.PREFETCH_END | Mark.LOAD_END | Mark.CAPTURE_END:
                self._end(event, moment)
            case Mark.DEFERRED_LOAD:
                self.deferred = True
            case Mark.KV_POOL:
                pools = self._filling(event.label, moment)
                pools.kv_bytes[event.label] = event.size_bytes
            case Mark.STATE_POOL:
                pools = self._filling("", moment, state=True)
                pools.state_bytes = _plus(pools.state_bytes, event.size_bytes)
                pools.verify_bytes = _plus(pools.verify_bytes, event.verify_bytes)
            case Mark.POOLS_END:
                if not self.pools or self.pools[-1].end is not None:
                    self.pools.append(Pools())
                self.pools[-1].end = moment
            case Mark.KV_RESIZED if event.role is not None and event.size_bytes is not None:
                # further drafter pools each say their own size
                drafted = self.resized.get(event.role, 0.0) if event.role is StageArtifact.DRAFTER else 0.0
                self.resized[event.role] = drafted + event.size_bytes
            case _:
                pass
        if event.mark in _PAST_LOADING:
            for load in self.loads:
                load.passed = True
        if event.free_bytes is not None:
            self.free_bytes = event.free_bytes
            if event.mark is Mark.LOAD_BEGIN and len(self.loads) == 1:
                self.free_before = event.free_bytes
            elif event.mark is Mark.LOAD_END:
                self.free_loaded = event.free_bytes

    def _of(self, mark: Mark) -> list[Work]:
        if mark in (Mark.LOAD_BEGIN, Mark.LOAD_END):
            return self.loads
        return self.captures if mark in (Mark.CAPTURE_BEGIN, Mark.CAPTURE_END) else self.prefetch

    def _begin(self, event: StartEvent, moment: Moment) -> None:
        works = self._of(event.mark)
        for work in works:
            work.passed = True
        works.append(Work(label=event.label, role=event.role, begin=moment))

    def _end(self, event: StartEvent, moment: Moment) -> None:
        works = self._of(event.mark)
        work = next((w for w in reversed(works) if w.is_open and w.label == event.label), None)
        if work is not None and event.seconds is not None:
            whole = between(work.begin, moment)
            if whole is not None and whole - event.seconds > EVIDENCE_SLACK:
                # far longer than the line says: its begin and the other's end are both missing
                work.passed, work = True, None
        if work is None:
            work = Work(label=event.label, role=event.role)
            works.append(work)
        work.end, work.stated, work.model, work.size_bytes = moment, event.seconds, event.model, event.size_bytes
        work.role = work.role or event.role

    def _filling(self, label: str, moment: Moment, *, state: bool = False) -> Pools:
        """The pools of the runner that allocates now; a second pool of the same kind is the next runner's."""
        now = self.pools[-1] if self.pools else None
        if now is None or now.end is not None or (not state and label in now.kv_bytes):
            now = Pools(begin=moment)
            self.pools.append(now)
        return now


def _plus(known: float | None, more: float | None) -> float | None:
    return known if more is None else more + (known or 0.0)


_PAST_LOADING = frozenset({Mark.KV_POOL, Mark.STATE_POOL, Mark.POOLS_END, Mark.CAPTURE_BEGIN, Mark.CAPTURE_END})


def settle_roles(ranks: Sequence[RankStart]) -> None:
    """Says of each load whether it is the target's or a drafter's.

    The first load of a rank is the target's, later ones are drafters'. Where lines are missing the model's name
    decides: as other ranks have it, else as the line's own hint says.
    """
    most = max((len(rank.loads) for rank in ranks), default=0)
    known: dict[str, StageArtifact] = {}
    for rank in ranks:
        if len(rank.loads) == most:
            for place, load in enumerate(rank.loads):
                if load.model is not None:
                    known.setdefault(load.model, _by_place(place))
    for rank in ranks:
        complete = len(rank.loads) == most and most > 1
        for place, load in enumerate(rank.loads):
            named = None if load.model is None else known.get(load.model)
            if complete:
                load.role = _by_place(place)
            elif named is not None and most > 1:
                load.role = named
            else:
                load.role = load.role or _by_place(place)


def _by_place(place: int) -> StageArtifact:
    return StageArtifact.TARGET if place == 0 else StageArtifact.DRAFTER
