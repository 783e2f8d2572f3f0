"""Whether the waivers of a budget can stand: each names a rule that there is, and its day has not passed."""

from __future__ import annotations

import difflib
from datetime import date
from pathlib import Path

from specbudget.budget.model import Budget
from specbudget.check.report import TEXTS
from specbudget.errors import BudgetError, Problem


def check_waivers(budget: Budget, file: Path, today: date) -> None:
    """Raises BudgetError for waivers of unknown findings and for those whose last day lies before `today`.

    Only the gate asks: a sidecar starts whatever the day.
    """
    problems = []
    for number, waiver in enumerate(budget.waivers):
        if waiver.finding not in TEXTS:
            near = difflib.get_close_matches(waiver.finding, TEXTS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else "docs/reference/rules.md lists them"
            problems.append(
                Problem(str(file), None, f"waivers.{number}.finding", f"{waiver.finding}: no such finding; {hint}")
            )
        elif waiver.until < today:
            message = f"the waiver of {waiver.finding} ended on {waiver.until}: settle the finding, or set a later day"
            problems.append(Problem(str(file), None, f"waivers.{number}.until", message))
    if problems:
        raise BudgetError(problems)
