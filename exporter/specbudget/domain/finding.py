"""What a rule says, on every budget line alike: a result, a sentence, and the numbers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class CheckResult(StrEnum):
    """What a rule says. Unknown is never a pass."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Exactness(StrEnum):
    """How a number is known: from bytes, from a log's rounded figures, or from what is usual."""

    EXACT = "exact"
    FROM_LOG = "from_log"
    ESTIMATE = "estimate"


Value = float | int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a rule's function returns.

    `required` None keeps the rule's own word on it. `low` and `high` are the interval of a predicted `value`, all
    in the rule's unit; `floor` says that `value` must not fall below `limit`. `arithmetic` are the steps that led to
    it, one line each, with the numbers of this plan.
    """

    result: CheckResult
    message: str
    value: Value = None
    limit: Value = None
    required: bool | None = None
    low: float | int | None = None
    high: float | int | None = None
    exactness: Exactness | None = None
    floor: bool = False
    arithmetic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the verdict: `id` is `<line>.<what>`, the message names the key and the fix.

    An unknown finding with `required` makes the whole line unknown; without, it is only told. The other fields are
    those of `Outcome`.
    """

    id: str
    result: CheckResult
    required: bool
    message: str
    value: Value = None
    limit: Value = None
    unit: str = ""
    low: float | int | None = None
    high: float | int | None = None
    exactness: Exactness | None = None
    floor: bool = False
    arithmetic: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The id of the budget line it belongs to."""
        return self.id.partition(".")[0]

    @property
    def check(self) -> str:
        """The id without its line: the value of the label `check`."""
        return self.id.partition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """The words of a rule, declared once: its id, its question, its unit and where it comes from.

    `required` says whether a finding that is unknown makes its line unknown.
    """

    id: str
    asks: str
    source: str
    unit: str = ""
    required: bool = True

    def finding(self, outcome: Outcome) -> Finding:
        """The outcome under the rule's name."""
        return Finding(
            id=self.id,
            result=outcome.result,
            required=self.required if outcome.required is None else outcome.required,
            message=outcome.message,
            value=outcome.value,
            limit=outcome.limit,
            unit=self.unit,
            low=outcome.low,
            high=outcome.high,
            exactness=outcome.exactness,
            floor=outcome.floor,
            arithmetic=outcome.arithmetic,
        )


def passes(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """In order; the message may still say something worth knowing."""
    return Outcome(result=CheckResult.PASS, message=message, value=value, limit=limit)


def warns(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """It runs, and may run badly."""
    return Outcome(result=CheckResult.WARN, message=message, value=value, limit=limit)


def fails(message: str, *, value: Value = None, limit: Value = None) -> Outcome:
    """It does not fit."""
    return Outcome(result=CheckResult.FAIL, message=message, value=value, limit=limit)


def unknown(message: str, *, required: bool | None = None) -> Outcome:
    """A fact is missing. `required` False for evidence that may lawfully be absent."""
    return Outcome(result=CheckResult.UNKNOWN, message=message, required=required)


def overall(findings: Iterable[Finding]) -> CheckResult:
    """Fail if any fails, else unknown if a required fact is missing, else warn, else pass."""
    found = tuple(findings)
    results = {finding.result for finding in found}
    if CheckResult.FAIL in results:
        return CheckResult.FAIL
    if any(finding.required for finding in found if finding.result is CheckResult.UNKNOWN):
        return CheckResult.UNKNOWN
    return CheckResult.WARN if CheckResult.WARN in results else CheckResult.PASS


def counts(findings: Iterable[Finding]) -> dict[CheckResult, int]:
    """How many findings of each result; every result is there."""
    found = Counter(finding.result for finding in findings)
    return {result: found[result] for result in CheckResult}
