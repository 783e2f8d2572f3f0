"""The pair on disk at run time: does it fit, and is it still the one that was approved."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specbudget.budget.lock import LoadedLock, load_lock, lock_path
from specbudget.budget.model import Budget
from specbudget.catalog.sets import Artifact
from specbudget.domain.codesign import TokenComparison, judge, pair_ratio
from specbudget.domain.finding import CheckResult, Finding, counts
from specbudget.domain.observation import EngineFacts
from specbudget.domain.pair_change import Fingerprints, PairChange, RecheckPlan, pair_change
from specbudget.errors import BudgetError
from specbudget.pair.facts import engine_setup, pair_facts
from specbudget.pair.side import Side
from specbudget.pair.tokens import TokenizerWatch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """What the rules say of the pair, and what changed since it was approved or first seen.

    `due` is empty without a lock: nobody approved anything that could be out of date. Not `complete`: a configured
    checkpoint was not read yet, so nothing is judged.
    """

    findings: tuple[Finding, ...]
    change: PairChange
    due: Mapping[RecheckPlan, bool]
    complete: bool = True

    @property
    def failing(self) -> int:
        """Rules that the pair breaks."""
        return sum(finding.result is CheckResult.FAIL for finding in self.findings)

    @property
    def ratio(self) -> float | None:
        """The used ratio of the budget `pair`; None when a required fact is missing."""
        return pair_ratio(self.findings, recheck_due=any(self.due.values())) if self.complete else None

    def counts(self) -> Mapping[CheckResult, int]:
        """Rules by result."""
        return counts(self.findings)


@dataclass(slots=True)
class PairWatch:
    """Both sides as last read, the lock, and the verdict on them.

    `budget_file` is where the budget lies: the lock lies beside it.
    """

    budget: Budget
    budget_file: Path
    sides: dict[Artifact, Side] = field(default_factory=dict)
    _first: dict[Artifact, Fingerprints] = field(default_factory=dict)
    _tokenizers: TokenizerWatch = field(default_factory=TokenizerWatch)
    _tokens: TokenComparison | None = None
    _lock: LoadedLock | None = None
    _lock_problems: tuple[str, ...] = ()
    _judged: tuple[object, ...] = ()
    _verdict: PairVerdict | None = None
    _told: frozenset[str] = frozenset()

    def saw(self, artifact: Artifact, side: Side) -> None:
        """Takes a side as it is on disk now."""
        self.sides[artifact] = side
        if side.fingerprints.whole is not None:
            self._first.setdefault(artifact, side.fingerprints)

    def compare_tokenizers(self) -> None:
        """Compares the tokenizers of both sides where one of them changed; large files, so not on the event loop."""
        target, drafter = self.sides.get(Artifact.TARGET), self.sides.get(Artifact.DRAFTER)
        if target is not None and drafter is not None:
            self._tokens = self._tokenizers.compare(target, drafter)

    def read_lock(self) -> None:
        """Reads the lock again when its content changed; a bad one leaves the old one in force."""
        try:
            loaded = load_lock(lock_path(self.budget_file))
        except BudgetError as error:
            problems = tuple(str(problem) for problem in error.problems)
            if problems != self._lock_problems:
                for problem in problems:
                    log.error("lock not loaded, the old one stays in force: %s", problem)
            self._lock_problems = problems
            return
        self._lock_problems = ()
        if (loaded and loaded.digest) != (self._lock and self._lock.digest):
            self._lock = loaded
            log.info("lock in force: file=%s", "none" if loaded is None else loaded.path)

    def measured_lengths(self) -> dict[str, float]:
        """Acceptance lengths that were measured when the pair was approved, by profile; empty without a lock."""
        return {} if self._lock is None else {name: a.length for name, a in self._lock.lock.acceptance.items()}

    def verdict(self, facts: EngineFacts) -> PairVerdict | None:
        """The verdict with what the engine says of itself now; None where there is no second model."""
        inputs = (self.sides.get(Artifact.TARGET), self.sides.get(Artifact.DRAFTER), facts, self._lock, self._tokens)
        if len(self._judged) != len(inputs) or any(a is not b for a, b in zip(self._judged, inputs, strict=True)):
            self._judged, self._verdict = inputs, self._judge(facts)
        return self._verdict

    def _judge(self, facts: EngineFacts) -> PairVerdict | None:
        if self.budget.drafter.path is None and not facts.speculates and self.budget.drafter.algorithm is None:
            return None
        target, drafter = self.sides.get(Artifact.TARGET), self.sides.get(Artifact.DRAFTER)
        paths = {Artifact.TARGET: self.budget.target.path, Artifact.DRAFTER: self.budget.drafter.path}
        if any(path is not None and artifact not in self.sides for artifact, path in paths.items()):
            change = self._change(target, drafter)
            return PairVerdict(findings=(), change=change, due={}, complete=False)
        engine = engine_setup(self.budget, facts, facts.flags)
        pair = pair_facts(target, drafter, engine=engine, budgeted=self.budget.drafter.algorithm, tokens=self._tokens)
        if pair is None:
            return None
        change = self._change(target, drafter)
        verdict = PairVerdict(findings=judge(pair), change=change, due=change.due if self._lock is not None else {})
        self._tell(verdict)
        return verdict

    def _change(self, target: Side | None, drafter: Side | None) -> PairChange:
        """Against the lock; without one against what this process saw first."""
        second = Artifact.DRAFTER if self.budget.drafter.path is not None else Artifact.TARGET
        held = drafter if second is Artifact.DRAFTER else target
        lock = self._lock.lock if self._lock is not None else None
        return pair_change(
            target_before=self._first.get(Artifact.TARGET) if lock is None else lock.target_fingerprints,
            drafter_before=self._first.get(second) if lock is None else lock.drafter_fingerprints,
            target=None if target is None else target.fingerprints,
            drafter=None if held is None else held.fingerprints,
        )

    def _tell(self, verdict: PairVerdict) -> None:
        """Logs each failing or warning rule once, and again when its message changes."""
        said = frozenset(
            f"check={f.check} result={f.result} message={f.message}"
            for f in verdict.findings
            if f.result in (CheckResult.FAIL, CheckResult.WARN)
        )
        for line in sorted(said - self._told):
            log.warning("pair: %s", line)
        self._told = said
