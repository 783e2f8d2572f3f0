"""A number against its limit: a verdict needs the whole interval on one side."""

from __future__ import annotations

from specbudget.check.rules.rule import told
from specbudget.domain.finding import CheckResult, Exactness, Outcome
from specbudget.domain.line_state import AT_RISK


def against(
    what: str,
    *,
    value: float,
    limit: float,
    shown: str,
    limit_shown: str,
    fix: str,
    floor: bool = False,
    low: float | None = None,
    high: float | None = None,
    exactness: Exactness = Exactness.EXACT,
    arithmetic: tuple[str, ...] = (),
    undecided: str = "make the inputs more exact",
) -> Outcome:
    """The outcome for a value whose true size lies between `low` and `high` (the value itself without them).

    A floor must not fall below its limit. Within the last tenth before the limit the outcome is a warning. `shown`
    and `limit_shown` are the two numbers in words, `fix` what to do when the limit is broken, `undecided` what to
    do when it lies inside the interval.
    """
    best, worst = (high, low) if floor else (low, high)
    best = value if best is None else best
    worst = value if worst is None else worst
    bound = "at least" if floor else "at most"
    sentence = f"{what} {shown}, the budget allows {bound} {limit_shown}"

    def ratio(side: float) -> float:
        over, under = (limit, side) if floor else (side, limit)
        return over / under if under > 0 else float("inf")

    if ratio(best) > 1.0:
        result, message = CheckResult.FAIL, f"{sentence}: {fix}"
    elif ratio(worst) > 1.0:
        result, message = CheckResult.UNKNOWN, f"{sentence}, which lies inside the interval: {undecided}"
    elif ratio(worst) > AT_RISK:
        result, message = CheckResult.WARN, f"{sentence}: {1.0 - ratio(worst):.1%} left; {fix}"
    else:
        result, message = CheckResult.PASS, sentence
    return told(
        message,
        value,
        result=result,
        limit=limit,
        exactness=exactness,
        low=low,
        high=high,
        floor=floor,
        arithmetic=arithmetic,
    )
