"""What a rule says of a pair, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.drafter import DraftAlgorithm

LINE = "codesign"


class CheckResult(StrEnum):
    """What a co-design rule says of a pair."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


Value = float | int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a rule's function returns. `required` None keeps the rule's own word on it."""

    result: CheckResult
    message: str
    value: Value = None
    limit: Value = None
    required: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the verdict: `id` is `codesign.<what>`, the message names the key and the fix.

    An unknown finding with `required` makes the whole line unknown; without, it is only told.
    """

    id: str
    result: CheckResult
    required: bool
    message: str
    value: Value = None
    limit: Value = None
    unit: str = ""

    @property
    def check(self) -> str:
        """The id without its line: the value of the label `check`."""
        return self.id.removeprefix(f"{LINE}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, declared once.

    `asks` is its question in a few words. `reads` are dotted names of facts it cannot do without: where one of them
    is None the finding is unknown and `check` is not called. Without `algorithms` it holds for all of them.
    `source` says where the rule comes from.
    """

    what: str
    asks: str
    check: Callable[[PairFacts], Outcome]
    source: str
    reads: tuple[str, ...] = ()
    algorithms: frozenset[DraftAlgorithm] | None = None
    required: bool = True
    unit: str = ""

    @property
    def id(self) -> str:
        """The stable id of its finding."""
        return f"{LINE}.{self.what}"

    def applies(self, facts: PairFacts) -> bool:
        """Whether the rule says anything of a drafter of this algorithm."""
        return self.algorithms is None or facts.algorithm in self.algorithms


BLOCK = frozenset({DraftAlgorithm.DSPARK, DraftAlgorithm.DFLASH})
TAPPED = BLOCK | {DraftAlgorithm.EAGLE3}
"""Drafters that read the target's hidden states at chosen layers."""


def passes(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """The pair fits; the message may still say something worth knowing."""
    return Outcome(result=CheckResult.PASS, message=message, value=value, limit=limit)


def warns(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """The pair runs, and may run badly."""
    return Outcome(result=CheckResult.WARN, message=message, value=value, limit=limit)


def fails(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """The pair does not fit."""
    return Outcome(result=CheckResult.FAIL, message=message, value=value, limit=limit)


def unknown(message: str, *, required: bool | None = None) -> Outcome:
    """A fact is missing. `required` False for evidence that a checkpoint may lawfully lack."""
    return Outcome(result=CheckResult.UNKNOWN, message=message, required=required)
