"""What a co-design rule is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, RuleText

LINE = "codesign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, declared once.

    `asks` is its question in a few words, `evidence` what it looks at, for people. `reads` are dotted names of facts
    it cannot do without: where one of them is None the finding is unknown and `check` is not called. Without
    `algorithms` it holds for all of them, without `engines` for every kind of engine; an engine of unknown kind is
    taken for any. `alone`: it holds for a target without a second model, too. `source` says where the rule comes from.
    """

    what: str
    asks: str
    check: Callable[[PairFacts], Outcome]
    evidence: str
    source: str
    reads: tuple[str, ...] = ()
    algorithms: frozenset[DraftAlgorithm] | None = None
    engines: frozenset[str] | None = None
    required: bool = True
    alone: bool = False
    unit: str = ""

    @property
    def id(self) -> str:
        """The stable id of its finding."""
        return f"{LINE}.{self.what}"

    @property
    def text(self) -> RuleText:
        """Its words, as those of every line's rules."""
        return RuleText(id=self.id, asks=self.asks, source=self.source, unit=self.unit, required=self.required)

    def applies(self, facts: PairFacts) -> bool:
        """Whether the rule says anything of a drafter of this algorithm on this kind of engine."""
        if self.engines is not None and facts.engine.kind is not None and facts.engine.kind not in self.engines:
            return False
        if not self.alone and (not facts.second_model or facts.algorithm is DraftAlgorithm.NGRAM):
            return False
        return self.algorithms is None or facts.algorithm in self.algorithms


SGLANG = frozenset({"sglang"})
VLLM = frozenset({"vllm"})

BLOCK = frozenset({DraftAlgorithm.DSPARK, DraftAlgorithm.DFLASH})
TAPPED = BLOCK | {DraftAlgorithm.EAGLE3}
"""Drafters that read the target's hidden states at chosen layers."""

CHAIN = frozenset(
    {DraftAlgorithm.EAGLE, DraftAlgorithm.EAGLE3, DraftAlgorithm.MTP, DraftAlgorithm.STANDALONE},
)
EAGLE_WORDS = frozenset({DraftAlgorithm.EAGLE, DraftAlgorithm.MTP})
"""Algorithms that SGLang calls EAGLE."""
