"""The overall state and the one sentence that says it."""

from __future__ import annotations

from collections.abc import Sequence

from specbudget.catalog.lines import LINES
from specbudget.domain.line_state import LineState
from specbudget.serve.budget_words import phrase
from specbudget.serve.engine_view import BROKEN_STATES
from specbudget.serve.status_model import BudgetStatus, LineStatus, RankStatus

NOT_BUDGETED = "not_budgeted"
"""The overall state where no line has a limit: neither good nor bad, and not unknown either."""

WORST_FIRST = (LineState.BREACH, LineState.AT_RISK, LineState.UNKNOWN)

_IS = {LineState.BREACH: "in breach", LineState.AT_RISK: "at risk", LineState.UNKNOWN: "not known"}

DEFINITIONS = {line.id: line for line in LINES}


def headline(lines: Sequence[LineStatus], ranks: Sequence[RankStatus]) -> tuple[str, str]:
    """The worst state of the budgeted lines, and a sentence that names it, its number and what else is wrong."""
    budgeted = [line for line in lines if line.budgeted]
    if not budgeted:
        return NOT_BUDGETED, "No line has a limit, so there is nothing to hold the numbers against."
    by_state = {state: [line for line in budgeted if line.state == state] for state in WORST_FIRST}
    worst = next((state for state in WORST_FIRST if by_state[state]), None)
    if worst is None:
        return LineState.OK, _all_well(lines)
    named = by_state[worst]
    # with several lines the reason is that of the first: its title goes with it
    verb = "are" if len(named) > 1 or named[0].title.endswith("s") else "is"
    lead = f"{_listed([line.title for line in named])} {verb} {_IS[worst]}"
    reason = _reason(named[0], worst, ranks)
    begin = "" if len(named) == 1 or not reason else f"{named[0].title}: "
    also = [
        f"{_listed([line.title for line in by_state[state]])} {_IS[state]}"
        for state in WORST_FIRST
        if state is not worst and by_state[state]
    ]
    sentence = f"{lead}{': ' if len(named) == 1 and reason else '. ' if reason else ''}{begin}{reason}."
    return worst, " ".join([sentence, *(f"Also {text}." for text in also)])


def deciding(line: LineStatus) -> BudgetStatus | None:
    """The budget that speaks for its line: the first one in the line's state, as they are declared for readers; of a
    line that is ok the one that is spent most. None where there is none."""
    if line.state != LineState.OK:
        found = next((budget for budget in line.budgets if budget.state == line.state), None)
        if found is not None:
            return found
    return max(line.budgets, key=lambda budget: -1.0 if budget.used_ratio is None else budget.used_ratio, default=None)


def _reason(line: LineStatus, state: LineState, ranks: Sequence[RankStatus]) -> str:
    budget = deciding(line)
    if budget is None or budget.state != state:
        # no budget of the line says so: speculation itself does not do what is paid for
        broken = [rank for rank in ranks if rank.speculation in BROKEN_STATES]
        return f"speculation is {broken[0].speculation} on rank {broken[0].rank}" if broken else ""
    if state is LineState.UNKNOWN:
        return budget.why
    return phrase(DEFINITIONS[line.line].budget(budget.budget), budget)


def _all_well(lines: Sequence[LineStatus]) -> str:
    without = [line.title for line in lines if not line.budgeted]
    if not without:
        return f"All {len(lines)} lines are within their limits."
    what = "Every line that has a limit is within it"
    return f"{what}; {_listed(without)} {'has' if len(without) == 1 else 'have'} none."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
