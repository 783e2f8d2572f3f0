"""The ledger: five lines, each with its budgets, what is spent, the limit, what is left and how it went."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specbudget.catalog.lines import BudgetDef
from specbudget.serve.budget_words import amount, headroom, limit
from specbudget.serve.headline import DEFINITIONS, NOT_BUDGETED, deciding
from specbudget.serve.page.spark import Spark, spark
from specbudget.serve.page.words import percent
from specbudget.serve.status_model import AcceptanceStatus, BudgetStatus, LineStatus
from specbudget.serve.trends import TrendRing, budget_name

BAR_TOP = 1.25
"""The used ratio at which a bar is full: the limit stands at four fifths of it."""

LIMIT_MARK = round(100 / BAR_TOP, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One budget. `bar` is the used ratio in per cent of the bar's width, None where it is not known."""

    id: str
    title: str
    what: str
    state: str
    spent: str
    limit: str
    headroom: str
    used: str
    bar: float | None
    why: str
    spark: Spark


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRows:
    """One line: the budget that speaks for it, and its other ones."""

    id: str
    title: str
    state: str
    lead: BudgetRow | None
    others: tuple[BudgetRow, ...]


def ledger(
    lines: list[LineStatus], acceptance: AcceptanceStatus, trends: TrendRing, now: float
) -> tuple[LineRows, ...]:
    """All lines in order, those without a limit too."""
    found = []
    for line in lines:
        lead = deciding(line)
        rows = {budget.budget: _row(line, budget, acceptance, trends, now) for budget in line.budgets}
        found.append(
            LineRows(
                id=line.line,
                title=line.title,
                state=line.state if line.budgeted else NOT_BUDGETED,
                lead=None if lead is None else rows.pop(lead.budget),
                others=tuple(rows.values()),
            )
        )
    return tuple(found)


def _row(
    line: LineStatus, status: BudgetStatus, acceptance: AcceptanceStatus, trends: TrendRing, now: float
) -> BudgetRow:
    definition = DEFINITIONS[line.line].budget(status.budget)
    ratio = status.used_ratio
    return BudgetRow(
        id=f"{line.line}-{status.budget}",
        title=definition.title,
        what=_what(definition, acceptance),
        state=status.state,
        spent=amount(definition, status.spent),
        limit=limit(definition, status.limit),
        headroom=headroom(definition, status),
        used="" if ratio is None else f"{percent(ratio, 0)} of the limit used",
        bar=None if ratio is None or math.isinf(ratio) else round(min(ratio, BAR_TOP) / BAR_TOP * 100, 1),
        why=status.why,
        spark=spark(trends.column(budget_name(line.line, status.budget), now)),
    )


def _what(definition: BudgetDef, acceptance: AcceptanceStatus) -> str:
    """What is spent, in the words of the declaration; the objective in numbers."""
    objective = acceptance.objective
    share = "the wanted share" if objective is None else percent(objective, 0)
    return definition.spent.replace("`objective`", share)
