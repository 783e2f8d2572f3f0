"""What a rule of the gate is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specbudget.check.plan import Plan
from specbudget.domain.finding import CheckResult as Result
from specbudget.domain.finding import Exactness, Finding, Outcome, RuleText, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRule:
    """One rule, declared once. `check` returns None where the rule has nothing to say of this plan."""

    text: RuleText
    check: Callable[[Plan], Outcome | None]

    @property
    def id(self) -> str:
        """The stable id of its finding."""
        return self.text.id

    def finding(self, plan: Plan) -> Finding | None:
        """What it says of a plan."""
        outcome = self.check(plan)
        return None if outcome is None else self.text.finding(outcome)


def told(
    message: str,
    value: Value,
    *,
    result: Result = Result.PASS,
    limit: Value = None,
    exactness: Exactness | None = Exactness.EXACT,
    low: float | None = None,
    high: float | None = None,
    floor: bool = False,
    arithmetic: tuple[str, ...] = (),
) -> Outcome:
    """A number for people, in order unless `result` says otherwise."""
    return Outcome(
        result=result,
        message=message,
        value=value,
        limit=limit,
        exactness=exactness,
        low=low,
        high=high,
        floor=floor,
        arithmetic=arithmetic,
    )
