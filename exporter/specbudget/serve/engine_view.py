"""The engine as its endpoints tell it now: what is fresh, merged by data-parallel rank."""

from __future__ import annotations

from dataclasses import dataclass, field

from specbudget.budget.model import Budget
from specbudget.catalog.sets import Role, Source
from specbudget.domain.drafter import DraftAlgorithm, parse_algorithm, verify_window
from specbudget.domain.observation import EngineFacts, EngineReading, RankReading
from specbudget.domain.speculation import SpeculationReading, SpeculationState, SpeculationWatch
from specbudget.pair.launch_facts import launch_facts
from specbudget.serve.health import SourceHealth

BROKEN_STATES = (SpeculationState.OFF, SpeculationState.FROZEN, SpeculationState.INVALID)

DEFAULT_REPORT_PASSES = 40
"""SGLang's --decode-log-interval unless /server_info says otherwise."""


@dataclass(slots=True)
class EngineView:
    """Latest readings with their health; everything asked of it looks at freshness first."""

    budget: Budget
    health: dict[Source, SourceHealth]
    metrics: EngineReading | None = None
    loads: EngineReading | None = None
    facts: EngineFacts | None = None
    _states: dict[str, SpeculationState] = field(default_factory=dict)
    _watches: dict[str, SpeculationWatch] = field(default_factory=dict)
    _launch: tuple[Budget, bool] | None = None

    def fresh_facts(self, now: float) -> EngineFacts:
        """/server_info while it is fresh, else facts that say nothing."""
        stale = self.health[Source.SERVER_INFO].is_stale(now)
        return EngineFacts() if self.facts is None or stale else self.facts

    def ranks(self, now: float) -> dict[str, RankReading]:
        """Each rank that a fresh reading shows; metrics first, filled up from loads."""
        fresh: list[EngineReading] = []
        for reading, source in ((self.metrics, Source.METRICS), (self.loads, Source.LOADS)):
            if reading is not None and not self.health[source].is_stale(now):
                fresh.append(reading)
        merged: dict[str, RankReading] = {}
        for reading in fresh:
            for rank, values in reading.ranks.items():
                # /metrics is the rank's own word; a rank that only an older reading shows is gone
                if rank in merged:
                    merged[rank] = merged[rank].filled_from(values)
                elif reading is fresh[0] or not fresh[0].ranks:
                    merged[rank] = values
        return merged

    def algorithm(self, now: float) -> DraftAlgorithm | None:
        """The running engine's word, else the budget's."""
        running = self.fresh_facts(now).algorithm
        return parse_algorithm(running) if running is not None else self.budgeted_algorithm()

    def budgeted_algorithm(self) -> DraftAlgorithm | None:
        """The budget's word."""
        return parse_algorithm(self.budget.drafter.algorithm)

    def role(self, now: float) -> str | None:
        """From /server_info; labels only where it is silent: the tokenizer's counters say unified on a decode pod."""
        told = self.fresh_facts(now).role
        if told is None and self.metrics is not None and not self.health[Source.METRICS].is_stale(now):
            told = self.metrics.role
        return told if told in set(Role) else None

    def window(self, reading: RankReading, now: float) -> int | None:
        """The verify window in force on a rank: the largest possible length."""
        facts = self.fresh_facts(now)
        steps = reading.num_steps if reading.num_steps is not None else facts.num_steps
        drafts = reading.num_draft_tokens if reading.num_draft_tokens is not None else facts.num_draft_tokens
        window = verify_window(
            self.algorithm(now),
            num_steps=None if steps is None else int(steps),
            num_draft_tokens=None if drafts is None else int(drafts),
        )
        return window if window is not None and window >= 1 and drafts != 0 else None

    def is_adaptive(self, now: float) -> bool:
        """True while the verify window moves at run time; before the engine says so, as it was to be launched."""
        told = self.fresh_facts(now).adaptive
        return self._asked_to_adapt() if told is None else told

    def _asked_to_adapt(self) -> bool:
        """Whether the launch arguments of the budget ask for it; read once for each budget."""
        if self._launch is None or self._launch[0] is not self.budget:
            self._launch = self.budget, bool(launch_facts(self.budget).adaptive)
        return self._launch[1]

    def widest_window(self, now: float) -> int | None:
        """The verify window in force, the widest of the ranks; None while it is unknown."""
        windows = [self.window(reading, now) for reading in self.ranks(now).values()]
        return max((window for window in windows if window is not None), default=None)

    def bound(self, reading: RankReading, now: float) -> int | None:
        """The largest length that a report can tell; None while a moving window leaves it open."""
        return None if self.is_adaptive(now) else self.window(reading, now)

    def report_passes(self, now: float) -> int:
        """Decode passes per batch report."""
        return self.fresh_facts(now).decode_report_passes or DEFAULT_REPORT_PASSES

    def state(self, rank: str, now: float) -> SpeculationState:
        """What speculation does on a rank, while /metrics is fresh to tell it."""
        if self.health[Source.METRICS].is_stale(now):
            return SpeculationState.NO_DATA
        return self._states.get(rank, SpeculationState.NO_DATA)

    def is_broken(self, now: float) -> bool:
        """True while speculation is off, frozen or says what cannot be on some rank."""
        return any(self.state(rank, now) in BROKEN_STATES for rank in self.ranks(now))

    def watch(self, now: float) -> None:
        """Follows each rank's speculation after a reading of /metrics."""
        if self.metrics is None:
            return
        shown = self.ranks(now)
        for rank in list(self._watches):
            if rank not in shown:
                del self._watches[rank], self._states[rank]
        for rank, reading in shown.items():
            watch = self._watches.setdefault(rank, SpeculationWatch(self.report_passes(now)))
            self._states[rank] = watch.see(
                SpeculationReading(
                    at=now,
                    running=reading.running,
                    tokens=_tokens(reading, self.metrics),
                    decode_passes=_decode_passes(reading),
                    length=reading.length,
                    window=self.bound(reading, now),
                    cap=reading.cap_length,
                    enabled=self.fresh_facts(now).speculates,
                    prefill_only=self.role(now) == Role.PREFILL,
                )
            )


def _tokens(reading: RankReading, whole: EngineReading) -> float | None:
    """All work of a rank, prefill included; where ranks do not tell, of the whole engine at request finish."""
    of_rank = [n for n in (reading.decode_tokens, reading.prefill_tokens) if n is not None]
    if of_rank:
        return sum(of_rank)
    of_engine = [n for n in (whole.generation_tokens, whole.prompt_tokens) if n is not None]
    return sum(of_engine) if of_engine else None


def _decode_passes(reading: RankReading) -> float | None:
    """Decode passes; 0 where only the prefill is counted so far, since engines make a child when it first counts."""
    return 0.0 if reading.decode_passes is None and reading.prefill_tokens is not None else reading.decode_passes
