"""The SLO's panels: error budget, burn rates against the page factors, and whether traffic is enough to page."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.burn import BURN_DAY, BURN_THREE_DAYS, FAST_BURN, SLOW_BURN
from specbudget.catalog.alerts.length import BAD_FROM_BOOT, BELOW_BREAK_EVEN, COLLAPSED
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.catalog.promql import duration, number
from specbudget.catalog.recording import BAD_EVENTS, EVENTS
from specbudget.catalog.rule_settings import COLLAPSE_SECONDS
from specbudget.domain.burn import BurnWindows
from specbudget.domain.line_state import AT_RISK
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.line_tile import line_tile
from specbudget.generate.dashboards.links import runbook
from specbudget.generate.dashboards.queries import (
    budget_left,
    burn_rate,
    by,
    length,
    limit,
    may_page,
    over,
    speculation,
    speculation_states,
    window_seen,
)
from specbudget.generate.dashboards.view import View

LONG, SHORT = colours.TARGET, colours.SECOND
NO_EVENTS = "unknown: no event seen"
WINDOW = duration(COLLAPSE_SECONDS)


def at_a_glance(view: View) -> tuple[house.Placed, ...]:
    """Numbers to read from across the room."""
    judged = (left(view), guard(view)) if view.settings.pages else ()
    return (line_now(view), length_now(view), causes_now(view), speculation_now(view), *judged)


def line_now(view: View) -> house.Placed:
    """The state of the line."""
    return line_tile(view, ACCEPTANCE, "Acceptance line", "a page condition or a length below its floor")


def length_now(view: View) -> house.Placed:
    """The length of the last five minutes."""
    head = house.Head(
        title=f"Length over {WINDOW}",
        reads=f"Tokens per verify step over {WINDOW}, the target's own token included: 1 means that no draft helps.",
        good="above target and break-even, see the graph below.",
        unit="short",
        empty="unknown: no verify steps",
        links=runbook(view, COLLAPSED),
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head,
        [house.Query(expr=length(view, window=WINDOW))],
        thresholds=house.plain(colours.TARGET),
        trend=True,
        decimals=2,
    )


def causes_now(view: View) -> house.Placed:
    """What the evidence speaks for, by name."""
    head = house.Head(
        title="Likely cause",
        reads="What any replica has evidence for now. It is no verdict; since when, the lanes below tell.",
        good="none told.",
        unit="none",
        links=runbook(view, BAD_FROM_BOOT),
        width=house.SIXTH,
        height=house.LOW,
    )
    suspects = view.of(series.ACCEPTANCE_SUSPECT)
    none = f'label_replace(max ({suspects}) == 0, "cause", "none told", "", "")'
    query = house.Query(expr=f"max by (cause) ({suspects}) == 1 or {none}", legend="{{cause}}")
    marks = house.steps((None, colours.QUIET), (1.0, colours.AT_RISK))
    return panels.number(head, [query], thresholds=marks, names_only=True)


def speculation_now(view: View) -> house.Placed:
    """What speculation does now, where it is worst."""
    head = house.Head(
        title="Speculation",
        reads="The state that comes first of: no data, invalid, frozen, off, capped, idle, active; over all ranks.",
        good="active; idle without traffic.",
        unit="none",
        width=house.SIXTH,
        height=house.LOW,
    )
    expr = speculation(view)
    return panels.number(
        head,
        [house.Query(expr=expr)],
        thresholds=house.plain(colours.UNKNOWN),
        mappings=speculation_states(),
        background=True,
    )


def left(view: View) -> house.Placed:
    """What is left of the error budget, and how much of its window that is about."""
    s = view.settings
    window = duration(s.slo_seconds)
    head = house.Head(
        title=f"Error budget of {window}",
        reads=(
            f"Left: of {number(round(100 * (1 - s.objective), 4))} % events that may be bad over {window}, the share "
            "that is not spent; below 0 the SLO is missed. Window seen: the share of that time of which there are "
            "events; with little seen, what is left says little. All replicas: choosing one changes nothing."
        ),
        good="no less is left than of the window is still to come.",
        unit="percentunit",
        empty=NO_EVENTS,
        links=runbook(view, FAST_BURN, BURN_THREE_DAYS),
        width=house.SIXTH,
        height=house.LOW,
    )
    marks = house.steps((None, colours.BREACH), (0.0, colours.AT_RISK), (round(1 - AT_RISK, 4), colours.OK))
    return panels.number(
        head,
        [
            house.Query(expr=budget_left(view), legend="left"),
            house.Query(expr=window_seen(view), legend="window seen", colour=colours.QUIET),
        ],
        thresholds=marks,
        named=True,
        decimals=1,
    )


def guard(view: View) -> house.Placed:
    """Whether a page could come at all."""
    s = view.settings
    head = house.Head(
        title="Traffic to page",
        reads=(
            f"A page wants {s.guard_events} events and {s.guard_steps} verify steps in its short window "
            f"({', '.join(duration(row.short_seconds) for row in s.pages)}); below that only tickets come. No value: "
            "every replica is held back, catching up or bad since its start."
        ),
        good="enough. Too little is no fault, but nobody is woken.",
        unit="none",
        empty="no replica may page",
        width=house.SIXTH,
        height=house.LOW,
    )
    return panels.number(
        head,
        [house.Query(expr=f"min ({' or '.join(may_page(view, row) for row in s.pages[:1])})")],
        thresholds=house.plain(colours.UNKNOWN),
        mappings=house.words(ENOUGH),
        background=True,
    )


ENOUGH = ((0.0, "too little", colours.AT_RISK), (1.0, "enough", colours.OK))


def burning(view: View) -> tuple[house.Placed, ...]:
    """One graph per page: it fires where both lines are above the dashed one."""
    alerts = (FAST_BURN, SLOW_BURN)
    return tuple(_burn(view, row, alert) for row, alert in zip(view.settings.pages, alerts, strict=True))


def _burn(view: View, row: BurnWindows, alert: object) -> house.Placed:
    long, short = duration(row.long_seconds), duration(row.short_seconds)
    place = " ".join(f"{{{{{label}}}}}" for label in view.places)
    name = "Fast" if alert is FAST_BURN else "Slow"
    head = house.Head(
        title=f"{name} burn: {long} and {short}",
        reads=(
            "How many times faster than allowed the error budget goes, exactly as the page reads it. The page fires "
            f"where both windows are above the dashed factor; at that speed {row.share:.0%} of the budget goes in "
            f"{long}. Replicas that catch up, or were bad since their start, are left out."
        ),
        good="below 1: the budget lasts. Between 1 and the dashed line only tickets come.",
        unit="short",
        empty=NO_EVENTS,
        links=runbook(view, FAST_BURN if alert is FAST_BURN else SLOW_BURN),
        height=house.MIDDLE,
    )
    budget = ACCEPTANCE.budget(row.id)
    return panels.lines(
        head,
        [
            house.Query(expr=burn_rate(view, row, row.long_seconds), legend=f"{long} {place}", colour=LONG),
            house.Query(expr=burn_rate(view, row, row.short_seconds), legend=f"{short} {place}", colour=SHORT),
            house.Query(expr=limit(view, ACCEPTANCE, budget), legend="page factor", colour=colours.LIMIT, dashed=True),
        ],
        axis="times the allowed speed",
        decimals=2,
    )


def over_days(view: View) -> tuple[house.Placed, ...]:
    """The tickets' burn, and which pages had enough traffic when."""
    return (_tickets(view), _guards(view))


def _tickets(view: View) -> house.Placed:
    s = view.settings
    allowed = f"(1 - max by ({SERVICE_LABEL}) ({view.of(series.SLO_OBJECTIVE, whole=True)}))"
    queries = []
    for row, colour in zip(s.tickets, (LONG, SHORT), strict=True):
        bad, every = (f"sum{by(*s.labels)} ({view.recorded(q.ticket(row.long_seconds))})" for q in (BAD_EVENTS, EVENTS))
        expr = f"{over(bad, every)} / on ({SERVICE_LABEL}) group_left () {allowed}"
        window, factor = duration(row.long_seconds), number(round(row.factor, 2))
        queries.append(house.Query(expr=expr, legend=f"{window}, ticket from {factor}", colour=colour))
    head = house.Head(
        title="Burn of the tickets",
        reads=(
            "The same over days, backlogs included. The legend says from which value on a ticket is written, once "
            "the shorter window agrees."
        ),
        good="below 1.",
        unit="short",
        empty=NO_EVENTS,
        links=runbook(view, BURN_DAY, BURN_THREE_DAYS),
    )
    return panels.lines(head, queries, axis="times the allowed speed", decimals=2)


def _guards(view: View) -> house.Placed:
    queries = [
        house.Query(expr=may_page(view, row), legend=f"{duration(row.long_seconds)} page") for row in
        view.settings.pages
    ]  # fmt: skip
    head = house.Head(
        title="Enough traffic to page",
        reads=(
            f"Per page: {view.settings.guard_events} events and {view.settings.guard_steps} verify steps in its short "
            "window. A gap: no replica may page, or none is there."
        ),
        good="enough while there is traffic.",
        unit="none",
        empty="no replica may page",
        links=runbook(view, BELOW_BREAK_EVEN),
    )
    return panels.states(head, queries, house.words(ENOUGH))
