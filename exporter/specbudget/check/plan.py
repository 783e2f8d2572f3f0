"""Everything the gate knows of a plan: budget, two checkpoints, launch arguments, engine, lock, reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from specbudget.budget.lock import LoadedLock
from specbudget.budget.model import Budget
from specbudget.check.reference import Reference
from specbudget.check.sizing import PoolSize, SizingFacts, pool_size
from specbudget.check.start_figures import StartFigures
from specbudget.domain.codesign import EngineSetup, PairFacts, TokenComparison
from specbudget.domain.codesign.adaptive_steps import most_steps
from specbudget.domain.drafter import DraftAlgorithm, DraftKv, verify_window
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.domain.start_phases import StartPhases
from specbudget.pair.facts import engine_setup, pair_facts
from specbudget.pair.kv import Pair, drafter_model_facts, model_facts
from specbudget.pair.launch_facts import launch_facts, with_defaults
from specbudget.pair.side import Side
from specbudget.sources.checkpoint import DeviceWeights, LoadedWeights, Role, loaded_weights, weights_per_device

DEFAULT_CONCURRENCY = 48
"""SGLang sets max_running_requests to 48 when it is not given and speculation is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """What a running engine said; empty parts where an endpoint did not answer."""

    facts: EngineFacts = field(default_factory=EngineFacts)
    ranks: Mapping[str, RankReading] = field(default_factory=dict)
    phases: StartPhases | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One plan before rollout. What is derived is computed once, when it is first asked for.

    `target` and `drafter` are None where the budget names no path. `engine` is None where no engine answered.
    `lock_problem` says why a lock that is to be replaced cannot be read, `reference_problem` why a reference that the
    budget names cannot be used. `start` is the memory that the
    engine's log told of its last start, `tokens` how the two tokenizers compare.
    """

    budget: Budget
    budget_file: Path
    target: Side | None = None
    drafter: Side | None = None
    engine: EngineAnswer | None = None
    lock: LoadedLock | None = None
    lock_problem: str | None = None
    reference: Reference | None = None
    reference_problem: str | None = None
    start: StartFigures | None = None
    tokens: TokenComparison | None = None

    @cached_property
    def running(self) -> EngineFacts:
        """The running engine's own word; empty without one."""
        return EngineFacts() if self.engine is None else self.engine.facts

    @cached_property
    def launch(self) -> EngineFacts:
        """What the launch arguments in the budget say."""
        return launch_facts(self.budget)

    @cached_property
    def facts(self) -> EngineFacts:
        """The engine as it runs or will run: its own word, else its arguments, else what it takes by default."""
        told = self.running.filled_from(self.launch)
        holder = self.drafter or self.target
        facts = None if holder is None else holder.checkpoint.facts
        if self.budget.engine.kind != "sglang":
            return told
        return with_defaults(
            told,
            algorithm=self.algorithm,
            architecture=None if self.target is None else self.target.checkpoint.architecture,
            block_size=None if facts is None else facts.block_size,
        )

    @cached_property
    def setup(self) -> EngineSetup:
        """The engine as the co-design rules read it."""
        return engine_setup(self.budget, self.running, None if self.engine is None else self.running.flags)

    @cached_property
    def pair(self) -> PairFacts | None:
        """The pair as the co-design rules read it; None where there is no second model."""
        budgeted = self.budget.drafter.algorithm
        return pair_facts(self.target, self.drafter, engine=self.setup, budgeted=budgeted, tokens=self.tokens)

    @cached_property
    def algorithm(self) -> DraftAlgorithm | None:
        """The algorithm in force, whoever said so."""
        return None if self.pair is None else self.pair.algorithm

    @property
    def has_drafter(self) -> bool:
        """Whether there is a second model, be it within the target's checkpoint."""
        return self.pair is not None and self.algorithm is not DraftAlgorithm.NGRAM

    @property
    def drafter_holder(self) -> Side | None:
        """The checkpoint that holds the drafter: its own, else the target's."""
        return self.drafter if self.drafter is not None or not self.has_drafter else self.target

    @cached_property
    def kv(self) -> Pair:
        """What turns tokens into bytes."""
        target = None if self.target is None else self.target.checkpoint
        drafter = None if self.drafter is None else self.drafter.checkpoint
        weights = self.drafter_device_weights
        charged = None if weights is None else weights.charged_bytes
        return Pair(
            target=model_facts(target),
            drafter=drafter_model_facts(target, drafter, self.algorithm, charged),
            algorithm=self.algorithm,
            facts=self.facts,
            budget=self.budget,
        )

    @cached_property
    def window(self) -> int | None:
        """The verify window, of an adaptive engine the largest; None where it is not known."""
        if self.algorithm is None or (self.facts.adaptive and most_steps(self.facts.flags) is None):
            return None
        return verify_window(
            self.algorithm, num_steps=self.facts.num_steps, num_draft_tokens=self.facts.num_draft_tokens
        )

    @property
    def page(self) -> int:
        """Tokens per page of the KV pools."""
        return self.facts.page_tokens or 1

    @cached_property
    def draft_kv(self) -> DraftKv | None:
        """What sizes the drafter's KV; None where something of it is not known."""
        return self.kv.draft_kv(self.page, self.window) if self.has_drafter else None

    @cached_property
    def drafter_device_weights(self) -> DeviceWeights | None:
        """The drafter's weights on one device, charged and resident."""
        holder = self.drafter_holder
        if holder is None:
            return None
        return weights_per_device(
            holder.checkpoint,
            self.algorithm,
            self.tensor_parallel,
            Role.DRAFTER,
            attention_data_parallel=self.attention_data_parallel,
        )

    @cached_property
    def drafter_loaded_weights(self) -> LoadedWeights | None:
        """The drafter's weights as the engine loads them, over all ranks."""
        holder = self.drafter_holder
        return None if holder is None else loaded_weights(holder.checkpoint, self.algorithm, role=Role.DRAFTER)

    @cached_property
    def target_device_weights(self) -> DeviceWeights | None:
        """The target's weights on one device."""
        if self.target is None:
            return None
        return weights_per_device(
            self.target.checkpoint,
            self.algorithm,
            self.tensor_parallel,
            Role.TARGET,
            attention_data_parallel=self.attention_data_parallel,
        )

    @cached_property
    def pool(self) -> PoolSize:
        """The tokens of the target's pool: the running engine's own, else predicted."""
        target = None if self.target is None else self.target.checkpoint
        facts = None if target is None else target.facts
        architecture = (None if target is None else target.architecture) or ""
        return pool_size(
            SizingFacts(
                pair=self.kv,
                budget=self.budget,
                facts=self.facts,
                most_running=self.most_running,
                target_weights=self.target_device_weights,
                drafter_weights=self.drafter_device_weights if self.has_drafter else None,
                repacked=facts is not None and facts.quantization_method is not None,
                multimodal=architecture.endswith("ForConditionalGeneration"),
                start=self.start,
                running=self.engine is not None,
                ranks={} if self.engine is None else self.engine.ranks,
            )
        )

    @property
    def tensor_parallel(self) -> int:
        """Ranks of one replica that share the weights."""
        return self.facts.tensor_parallel or self.budget.parallelism.tensor

    @property
    def data_parallel(self) -> int:
        """Data-parallel ranks."""
        return self.facts.data_parallel or self.budget.parallelism.data

    @property
    def attention_data_parallel(self) -> int:
        """Ranks over which attention is data parallel: 1 without --enable-dp-attention."""
        return self.data_parallel if self.facts.attention_dp else 1

    @property
    def concurrency(self) -> int:
        """Planned running requests per data-parallel rank: the budget's, else the engine's limit, else its default."""
        line = self.budget.budget.kv
        planned = None if line is None else line.concurrency
        return planned or self.most_running or DEFAULT_CONCURRENCY

    @property
    def most_running(self) -> int | None:
        """The engine's limit of running requests on one data-parallel rank; None where it is not given.

        A running engine says its limit per rank, the argument is over all ranks of attention data parallelism.
        """
        if self.running.max_running_requests is not None:
            return self.running.max_running_requests
        given = self.launch.max_running_requests
        return None if given is None else max(1, given // self.attention_data_parallel)

    @property
    def tokens_per_request(self) -> int | None:
        """Planned tokens of one request, prompt and output."""
        line = self.budget.budget.kv
        return None if line is None else line.tokens_per_request
