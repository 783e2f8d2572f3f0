"""Everything the sidecar knows at one moment: budget in force, readings, checkpoints, counters, health."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from specbudget.budget.reading import LoadedBudget
from specbudget.budget.slo_policy import slo_policy
from specbudget.catalog.series import KV_RETRACTIONS, RECORDS, SOURCE_ERRORS, STARTUPS
from specbudget.catalog.sets import (
    CHECKPOINT_SOURCES,
    REASONS_BY_SOURCE,
    TAIL_SOURCES,
    Artifact,
    RecordOutcome,
    Scope,
    Source,
    StartOutcome,
    Suspect,
)
from specbudget.domain.counters import CounterReader
from specbudget.domain.device_memory import DeviceMemory
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.line_state import Spending
from specbudget.domain.observation import RankReading
from specbudget.domain.start_memory import by_data_rank
from specbudget.domain.suspects import Evidence
from specbudget.pair.facts import simulated_length
from specbudget.pair.kv import Pair, attention_groups, drafter_model_facts, model_facts
from specbudget.pair.served_weights import as_served
from specbudget.serve.acceptance_book import AcceptanceBook
from specbudget.serve.engine_view import EngineView
from specbudget.serve.gauge_batches import GaugeBatches
from specbudget.serve.health import SourceHealth
from specbudget.serve.kv_figures import KvFigures, kv_figures
from specbudget.serve.ledger import Ledger
from specbudget.serve.lines import (
    acceptance_spendings,
    artifact_spendings,
    codesign_spendings,
    kv_spendings,
    staging_spendings,
)
from specbudget.serve.pair_watch import PairVerdict, PairWatch
from specbudget.serve.pool_watch import PoolWatch
from specbudget.serve.staging import cold_start_seconds, device_memory
from specbudget.serve.start_watch import StartWatch
from specbudget.serve.trends import TrendRing
from specbudget.sources.checkpoint import Checkpoint, DeviceWeights, TensorPart, weights_per_device
from specbudget.sources.checkpoint import Role as WeightRole

INTERVALS = {
    Source.SERVER_INFO: 60.0,
    Source.REQUEST_LOG: 1.0,
    Source.SERVER_LOG: 1.0,
    Source.TARGET_CHECKPOINT: 60.0,
    Source.DRAFTER_CHECKPOINT: 60.0,
}
"""Seconds between readings; /metrics and /v1/loads follow engine.poll_interval."""

ARTIFACT_OF = {Source.TARGET_CHECKPOINT: Artifact.TARGET, Source.DRAFTER_CHECKPOINT: Artifact.DRAFTER}


def configured_sources(loaded: LoadedBudget) -> tuple[Source, ...]:
    """What there is to read for a budget."""
    budget = loaded.budget
    given = {
        Source.METRICS: True,
        Source.LOADS: True,
        Source.SERVER_INFO: True,
        Source.REQUEST_LOG: budget.engine.request_log is not None,
        Source.SERVER_LOG: budget.engine.server_log is not None,
        Source.TARGET_CHECKPOINT: budget.target.path is not None,
        Source.DRAFTER_CHECKPOINT: budget.drafter.path is not None,
    }
    return tuple(source for source, there in given.items() if there)


@dataclass(slots=True)
class Lags:
    """How far the tails are behind, by source."""

    backlog_bytes: dict[Source, int] = field(default_factory=dict)
    lag_seconds: dict[Source, float] = field(default_factory=dict)


@dataclass(slots=True)
class Desk:
    """One state, changed by the loops of one event loop and read by the renderer between them."""

    loaded: LoadedBudget
    loaded_at: float
    ledger: Ledger = field(default_factory=Ledger)
    checkpoints: dict[Artifact, Checkpoint] = field(default_factory=dict)
    lags: Lags = field(default_factory=Lags)
    engine_counters: CounterReader[tuple[str, str]] = field(default_factory=CounterReader)
    trends: TrendRing = field(default_factory=TrendRing)
    reload_ok: bool = True
    web_config_ok: bool = True
    state_saved: bool | None = None
    health: dict[Source, SourceHealth] = field(init=False)
    view: EngineView = field(init=False)
    book: AcceptanceBook = field(init=False)
    gauge_batches: GaugeBatches = field(init=False)
    pairs: PairWatch = field(init=False)
    pools: PoolWatch = field(init=False)
    starts: StartWatch = field(init=False)

    def __post_init__(self) -> None:
        self.book = AcceptanceBook(self.ledger, slo_policy(self.loaded.budget))
        self.starts = StartWatch()
        self._begin()

    def use(self, loaded: LoadedBudget, now: float) -> None:
        """Takes another budget into force; counters go on, what was read of the old engine is forgotten."""
        if loaded.budget.engine.url != self.loaded.budget.engine.url:
            self.engine_counters = CounterReader()
        old, new = self.loaded.budget.engine, loaded.budget.engine
        if (old.url, old.server_log) != (new.url, new.server_log):
            self.starts = StartWatch()
        self.loaded, self.loaded_at, self.reload_ok = loaded, now, True
        self.checkpoints.clear()
        self.lags = Lags()
        self.book.use(slo_policy(loaded.budget))
        self._begin()

    def _begin(self) -> None:
        budget = self.loaded.budget
        sources = configured_sources(self.loaded)
        self.health = {s: SourceHealth(s, INTERVALS.get(s, budget.engine.poll_interval)) for s in sources}
        self.view = EngineView(budget, self.health)
        self.gauge_batches = GaugeBatches()
        self.pairs = PairWatch(budget, self.loaded.path)
        self.pairs.read_lock()
        self.pools = PoolWatch()
        staging = budget.budget.staging
        self.starts.budget_seconds = None if staging is None else staging.cold_start
        self.starts.records = self.book.suspects.by_request = Source.REQUEST_LOG in sources
        self.ledger.begin(STARTUPS, StartOutcome)
        for source in sources:
            self.ledger.begin(SOURCE_ERRORS, [source], REASONS_BY_SOURCE[source])
            if source in TAIL_SOURCES:
                self.ledger.begin(RECORDS, [source], RecordOutcome)
        ranks = [str(rank) for rank in range(budget.parallelism.data)]
        self.ledger.begin(KV_RETRACTIONS, ranks)
        self.know_ranks(ranks)

    def know_ranks(self, ranks: Iterable[str]) -> None:
        """Begins what is counted by data-parallel rank at 0."""
        self.book.know_ranks(ranks, counts_drafts=self.request_source is Source.REQUEST_LOG)

    @property
    def request_source(self) -> Source:
        """The source that counts requests and steps: the log if there is one, else the engine's counters."""
        return Source.REQUEST_LOG if Source.REQUEST_LOG in self.health else Source.METRICS

    @property
    def batch_source(self) -> Source:
        """The source of batch reports: the server log if there is one, else the gauge."""
        return Source.SERVER_LOG if Source.SERVER_LOG in self.health else Source.METRICS

    @property
    def scope(self) -> Scope:
        """Whose rolling length stands for now."""
        return Scope.REQUEST if self.request_source is Source.REQUEST_LOG else Scope.BATCH

    def pair(self, now: float) -> Pair:
        """The pair as it runs."""
        facts, algorithm = self.view.fresh_facts(now), self.view.algorithm(now)
        target, drafter = self.checkpoints.get(Artifact.TARGET), self.checkpoints.get(Artifact.DRAFTER)
        weights = self.drafter_weights(now)
        return Pair(
            target=model_facts(target),
            drafter=drafter_model_facts(target, drafter, algorithm, None if weights is None else weights.charged_bytes),
            algorithm=algorithm,
            facts=facts,
            budget=self.loaded.budget,
        )

    def kv(self, now: float) -> KvFigures:
        """The KV line's figures now."""
        ranks = self.view.ranks(now)
        window = next((w for r in ranks.values() if (w := self.view.window(r, now)) is not None), None)
        return kv_figures(self.pair(now), ranks, window)

    def verdict(self, now: float) -> PairVerdict | None:
        """The pair's fit and what changed; None where there is no second model."""
        return self.pairs.verdict(self.view.fresh_facts(now))

    def count_starts(self) -> None:
        """Takes over how starts ended since the last call."""
        for outcome, count in self.starts.outcomes(time.monotonic()).items():
            self.ledger.add(STARTUPS, (outcome,), count)

    def drafter_weights(self, now: float) -> DeviceWeights | None:
        """The drafter's weights per device; None where they cannot be computed."""
        facts, algorithm = self.view.fresh_facts(now), self.view.algorithm(now)
        holder = self.checkpoints.get(Artifact.DRAFTER)
        if self.loaded.budget.drafter.path is None and facts.drafter_path in (None, facts.target_path):
            target = self.checkpoints.get(Artifact.TARGET)
            holder = target if target is not None and _holds_drafter(target, algorithm) else None
        if holder is None:
            return None
        return self.weights(holder, WeightRole.DRAFTER, now)

    def weights(self, checkpoint: Checkpoint, role: WeightRole, now: float) -> DeviceWeights | None:
        """A model's weights per device as the engine spreads them; None where they cannot be computed."""
        facts, budget = self.view.fresh_facts(now), self.loaded.budget
        stored = weights_per_device(
            checkpoint,
            self.view.algorithm(now),
            facts.tensor_parallel or budget.parallelism.tensor,
            role,
            attention_data_parallel=attention_groups(facts, budget),
        )
        return as_served(stored, model_facts(checkpoint), facts, of_drafter=role is WeightRole.DRAFTER)

    def memory(self, figures: KvFigures, now: float) -> dict[str, DeviceMemory]:
        """What the fullest device of each rank held once the engine had started."""
        view, weights = self.starts.latest(time.monotonic()), self.drafter_weights(now)
        logged = {} if view is None else by_data_rank(view.start.memory)
        resident = None if weights is None else weights.resident_bytes
        return device_memory(self.pair(now), self.view.ranks(now), logged, figures, resident)

    def note_trends(self, now: float) -> None:
        """Keeps how far every budget is spent, for the last hour's curves."""
        self.trends.note_spendings(now, self.spendings(self.kv(now), now), self.break_even(now))

    def suspects(self, figures: KvFigures, now: float) -> dict[Suspect, str]:
        """Likely causes of a low or strange acceptance length, each with its sentence."""
        return self.book.suspects.suspects(self._known(figures, now), now)

    def _known(self, figures: KvFigures, now: float) -> Evidence:
        """The evidence that other books and readings hold."""
        budget, ranks, verdict = self.loaded.budget, self.view.ranks(now), self.verdict(now)
        first = next(iter(ranks.values()), RankReading())
        usage = [
            p.used_tokens / p.capacity_tokens
            for p in figures.target_pools.values()
            if p.used_tokens and p.capacity_tokens
        ]
        target, kv = self.book.policy.targets[0], budget.budget.kv
        known = Evidence(
            target_length=None if math.isnan(target) else target,
            window=self.view.widest_window(now),
            used_ratio=max(usage, default=None),
            high_water=None if kv is None else kv.high_water,
            cap_length=first.cap_length,
            block_length=first.block_length,
            simulated_length=simulated_length(budget.engine.env),
        )
        return (
            known
            if verdict is None
            else replace(known, target_change=verdict.change.target, drafter_change=verdict.change.drafter)
        )

    def expected_length(self, now: float) -> float | None:
        """The acceptance length to expect of the present mix of profiles; the lock's measured lengths come first."""
        return self.book.suspects.expected(self.pairs.measured_lengths(), now)

    def break_even(self, now: float) -> float | None:
        """Break-even at the present batch; with several points only while the batch is known."""
        line = self.loaded.budget.budget.acceptance
        curve = line.break_even_curve() if line is not None else None
        if curve is None:
            return None
        running = [r.running for r in self.view.ranks(now).values() if r.running is not None]
        if not running:
            return curve.points[0][1] if len(curve.points) == 1 else None
        return curve.at(max(running))

    def spendings(self, figures: KvFigures, now: float) -> list[Spending]:
        """Every budget of every line."""
        budget = self.loaded.budget
        disk: dict[str, int | None] = {a.value: checkpoint.disk_bytes for a, checkpoint in self.checkpoints.items()}
        return [
            *artifact_spendings(budget, disk),
            *kv_spendings(budget, figures),
            *acceptance_spendings(budget, self.book, scope=self.scope, break_even=self.break_even(now), now=now),
            *staging_spendings(budget, cold_start_seconds(self.starts.latest(time.monotonic()))),
            *codesign_spendings(self.verdict(now)),
        ]

    def checkpoint_sources(self) -> tuple[Source, ...]:
        """The checkpoints that are configured."""
        return tuple(source for source in CHECKPOINT_SOURCES if source in self.health)


def _holds_drafter(target: Checkpoint, algorithm: DraftAlgorithm | None) -> bool:
    """True where the target's files hold the prediction layers that draft for it; the engine says EAGLE for them."""
    stored = any(group.part is TensorPart.MTP for group in target.tensor_groups or ())
    return stored and algorithm in (DraftAlgorithm.MTP, DraftAlgorithm.EAGLE)
