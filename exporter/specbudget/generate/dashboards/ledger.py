"""The ledger: every budget of every line as one row, worst first, whatever its unit."""

from __future__ import annotations

from collections.abc import Mapping

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import LINES, Unit
from specbudget.catalog.promql import equals, none_of, number, one_of
from specbudget.catalog.series import SeriesDef
from specbudget.domain.line_state import AT_RISK, LineState
from specbudget.generate.dashboards import house, panels
from specbudget.generate.dashboards.links import TITLES, to_service
from specbudget.generate.dashboards.queries import SEVERITY, by, line_states
from specbudget.generate.dashboards.view import View

SHOWN_IN: Mapping[Unit, tuple[str, float]] = {
    Unit.BYTES: ("GiB", 2**30),
    Unit.TOKENS: ("tokens", 1),
    Unit.SECONDS: ("s", 1),
    Unit.RATIO: ("×", 1),
}
"""The word and the divisor of each unit: one column can hold all of them only when the unit is a column too."""

OF_BUDGET = (SERVICE_LABEL, "line", "budget")
TREND = "1h"


def ledger(view: View) -> house.Placed:
    """One row per service, line and budget."""
    used = f"max{by(*OF_BUDGET)} ({view.of(series.BUDGET_USED_RATIO)})"
    before = f"max{by(*OF_BUDGET)} ({view.of(series.BUDGET_USED_RATIO)} offset {TREND})"
    titles: dict[str, tuple[str, str | None]] = {line.id: (line.title, None) for line in LINES}
    head = house.Head(
        title="Ledger of the five lines",
        reads=(
            "Every budget of every line: spent ÷ limit, for a floor limit ÷ spent, so that above 1 is always bad. "
            "The worst replica counts, and the worst budget stands first. The state is what the budget makes of its "
            "line: a mark that is passed, such as high water, is a risk, and a burn that too little traffic speaks "
            f"for, too. Unknown is budgeted, and nobody can say. The change is that of {TREND}. The service leads to "
            "its own dashboards."
        ),
        good=f"every state ok: no ratio above {AT_RISK:.0%}, none blank.",
        unit="none",
        empty="unknown",
        width=house.FULL,
        height=12,
    )
    answers = (Dashboard.ACCEPTANCE, Dashboard.MEMORY, Dashboard.STARTUP)
    leads = [to_service(each, TITLES[each], "${__data.fields.Service}") for each in answers]
    return panels.rows(
        head,
        [
            house.Query(expr=used),
            house.Query(expr=f"{used} - {before}"),
            house.Query(expr=_in_words(view, series.BUDGET_SPENT, worst="max", worst_of_floor="min")),
            house.Query(expr=_in_words(view, series.BUDGET_LIMIT, worst="min", worst_of_floor="max")),
            house.Query(expr=states(view)),
        ],
        {
            SERVICE_LABEL: "Service",
            "line": "Line",
            "budget": "Budget",
            "Value #E": "State",
            "Value #A": "Used",
            "Value #B": "Change",
            "Value #C": "Spent",
            "Value #D": "Limit",
            "unit": "Unit",
        },
        worst_first=("State", "Used"),
        by_columns={
            "Service": {"links": leads},
            "Line": {"mappings": house.named(titles)},
            "State": {"mappings": line_states(), **panels.background(), **panels.width(100)},
            "Used": {"unit": "percentunit", "decimals": 0, **panels.narrow(100)},
            "Change": {"unit": "percentunit", "decimals": 1, "noValue": "–", **panels.narrow(100)},
            "Spent": {"unit": "locale", "decimals": 2},
            "Limit": {"unit": "locale", "decimals": 2},
            "Unit": panels.narrow(80),
        },
    )


def states(view: View) -> str:
    """The state of each budget by its place in SEVERITY, as line_state() decides it.

    Above a mark a budget is at risk and never in breach. A budget is in breach only where its line is on the same
    replica: what too little traffic speaks for, the sidecar alone can tell.
    """
    at_risk, breach, unknown = (SEVERITY.index(s) for s in (LineState.AT_RISK, LineState.BREACH, LineState.UNKNOWN))
    marks = sorted(b.id for line in LINES for b in line.budgets if b.mark)
    passed = view.of(series.BUDGET_USED_RATIO, one_of("budget", marks))
    ratio = view.of(series.BUDGET_USED_RATIO, none_of("budget", marks))
    replica = (*view.replica, *OF_BUDGET[1:])
    judged = (
        f"({at_risk} * (max{by(*replica)} ({ratio}) > bool {number(AT_RISK)})"
        f" + {breach - at_risk} * (max{by(*replica)} ({ratio}) > bool 1)"
        f" or {at_risk} * (max{by(*replica)} ({passed}) > bool 1))"
    )
    line = f"max{by(*view.replica, 'line')} ({view.of(series.LINE_STATE, equals('state', LineState.BREACH))}) == 1"
    where = ", ".join((*view.replica, "line"))
    sides = " or ".join(view.of(side) for each in (series.BUDGET_LIMIT, series.BUDGET_SPENT) for side in each.values())
    silent = f"max{by(*replica)} ({sides}) unless max{by(*replica)} ({view.of(series.BUDGET_USED_RATIO)})"
    return (
        f"max{by(*OF_BUDGET)} ({judged} and on ({where}) ({line}) or clamp_max({judged}, {at_risk})"
        f" or {unknown} + 0 * ({silent}))"
    )


def _in_words(view: View, side: Mapping[Unit, SeriesDef], *, worst: str, worst_of_floor: str) -> str:
    """One side of all budgets in the units of SHOWN_IN, each with its word as the label `unit`."""
    parts = []
    for unit, (word, divisor) in SHOWN_IN.items():
        floors = sorted({b.id for line in LINES for b in line.budgets if b.unit is unit and b.floor})
        caps = sorted({b.id for line in LINES for b in line.budgets if b.unit is unit and not b.floor})
        for found, chosen in ((floors, worst_of_floor), (caps, worst)):
            if not found:
                continue
            value = view.of(side[unit], one_of("budget", found))
            value = value if divisor == 1 else f"{value} / {divisor}"
            parts.append(f'{chosen}{by(*OF_BUDGET, "unit")} (label_replace({value}, "unit", "{word}", "", ""))')
    return " or ".join(parts)
