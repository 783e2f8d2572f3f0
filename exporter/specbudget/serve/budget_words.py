"""Budgets in words: both sides in their unit, and what is left. One form on the page, in its sentence and in events."""

from __future__ import annotations

from specbudget.catalog.lines import CODESIGN, KV, BudgetDef, Unit
from specbudget.serve.status_model import BudgetStatus
from specbudget.words import count, size

SHARES = (KV.budget("high_water"),)
"""Ratios that people read in per cent; the others are burns, which are read as a factor."""

COUNTS = (CODESIGN.budget("pair"),)
"""Ratios in name only: their sides are whole numbers."""

UNKNOWN = "not known"


def amount(budget: BudgetDef, value: float | None) -> str:
    """One side of a budget in its unit."""
    if value is None:
        return UNKNOWN
    match budget.unit:
        case Unit.BYTES:
            return size(value)
        case Unit.SECONDS:
            return f"{value:,.1f} s"
        case Unit.TOKENS:
            return f"{value:,.0f} tokens" if value >= 100 else f"{value:.2f}"
        case _ if budget in SHARES:
            return f"{value:.1%}".replace("%", " %")
        case _ if budget in COUNTS:
            return count(value)
        case _:
            return f"{value:.2f}×"


def limit(budget: BudgetDef, value: float | None) -> str:
    """The limit with its direction."""
    return UNKNOWN if value is None else f"at {'least' if budget.floor else 'most'} {amount(budget, value)}"


def headroom(budget: BudgetDef, status: BudgetStatus) -> str:
    """What is left to the limit, or by how much it is passed."""
    if status.spent is None or status.limit is None:
        return UNKNOWN
    left = status.spent - status.limit if budget.floor else status.limit - status.spent
    if budget in COUNTS:
        return "none fails" if left >= 0 else f"{count(-left)} too many"
    if budget in SHARES:
        # a difference of shares is told in points: per cent would be of what?
        return f"{abs(left) * 100:.1f} points {'left' if left >= 0 else 'over'}"
    word = "left" if left >= 0 else ("short" if budget.floor else "over")
    return f"{amount(budget, abs(left))} {word}"


def phrase(budget: BudgetDef, status: BudgetStatus) -> str:
    """`length reached is 1.93, at least 2.60 is budgeted`."""
    return f"{budget.title} is {amount(budget, status.spent)}, {limit(budget, status.limit)} is budgeted"
