"""The tile with which a line's own dashboard begins."""

from __future__ import annotations

from specbudget.catalog.lines import LineDef
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.queries import line_states, state_now
from specbudget.generate.dashboards.view import View


def line_tile(view: View, line: LineDef, title: str, breach: str) -> house.Placed:
    """The state of the line; `breach` says what puts it there."""
    head = house.Head(
        title=title,
        reads=f"The worst replica's state of the line: breach is {breach}.",
        good="ok.",
        unit="none",
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head,
        [house.Query(expr=state_now(view, line))],
        thresholds=house.plain(colours.UNKNOWN),
        mappings=line_states(),
        background=True,
    )
