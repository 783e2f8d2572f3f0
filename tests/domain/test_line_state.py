"""The state of a budget line from what its budgets have spent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from specbudget.domain.line_state import LineState, Spending, line_state

OK, RISK, BREACH, UNKNOWN = LineState.OK, LineState.AT_RISK, LineState.BREACH, LineState.UNKNOWN


def spent(value: float | None, limit: float = 100.0, **more: Any) -> Spending:
    """A budget of 100 with so much spent."""
    return Spending(line="kv", budget="target", spent=value, limit=limit, **more)


@pytest.mark.parametrize(
    ("spending", "ratio", "state"),
    [
        (spent(0), 0.0, OK),
        (spent(90), 0.9, OK),
        (spent(90.1), 0.901, RISK),
        (spent(100), 1.0, RISK),
        (spent(100.1), 1.001, BREACH),
        (spent(None), None, UNKNOWN),
        (spent(200, floor=True), 0.5, OK),
        (spent(110, floor=True), 100 / 110, RISK),
        (spent(100, floor=True), 1.0, RISK),
        (spent(99, floor=True), 100 / 99, BREACH),
        (spent(99, at_risk=1.0), 0.99, OK),
        (spent(150, can_breach=False), 1.5, RISK),
        (spent(150, at_risk=1.0, can_breach=False), 1.5, RISK),
    ],
)
def test_one_budget(spending: Spending, ratio: float | None, state: LineState) -> None:
    """At the mark itself nothing happens yet; a floor is turned round; unknown is neither a pass nor a zero."""
    assert spending.used_ratio == (None if ratio is None else pytest.approx(ratio))
    assert line_state([spending]) is state


def test_a_line_without_budgets_is_ok() -> None:
    """Nothing asked, nothing broken."""
    assert line_state([]) is OK


@pytest.mark.parametrize("order", [*itertools.permutations((spent(10), spent(95), spent(None)))])
def test_the_worst_budget_decides_in_any_order(order: tuple[Spending, ...]) -> None:
    """breach before at_risk before unknown before ok."""
    assert line_state(order) is RISK
    assert line_state([*order, spent(101)]) is BREACH
    assert line_state([spent(101), *order]) is BREACH
    assert line_state([one for one in order if one.spent != 95]) is UNKNOWN


def test_a_warning_puts_a_line_at_risk_and_hides_no_breach() -> None:
    """Speculation that is off is trouble, whatever the lengths of the past say."""
    fine = Spending(line="acceptance", budget="target_length", spent=1.0, limit=2.0)
    over = Spending(line="acceptance", budget="target_length", spent=3.0, limit=2.0)
    assert line_state([fine], warning=True) is LineState.AT_RISK
    assert line_state([over], warning=True) is LineState.BREACH
