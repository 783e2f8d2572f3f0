"""What pages when: from bad shares to minutes, and what never pages."""

from __future__ import annotations

from specbudget.catalog.alerts import AlertDef
from specbudget.catalog.alerts.burn import BURN_DAY, BURN_THREE_DAYS, FAST_BURN, SLOW_BURN
from specbudget.catalog.alerts.length import BELOW_BREAK_EVEN, COLLAPSED
from specbudget.catalog.promql import number
from specbudget.catalog.recording import SELDOM_SECONDS
from specbudget.catalog.rule_settings import BREAK_EVEN_SECONDS, COLLAPSE_SECONDS, RuleSettings
from specbudget.domain.burn import BurnWindows
from specbudget.domain.suspects import CONTRIBUTES_NOTHING
from specbudget.domain.time_to_page import Cadence, Guard, seconds_to_fall, seconds_to_page
from specbudget.generate.alertmanager import PAGE_WAIT_SECONDS, TICKET_WAIT_SECONDS
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.words import percent, span

CADENCE = Cadence(scrape=30.0, evaluation=30.0, notification=PAGE_WAIT_SECONDS)
"""What is assumed of Prometheus: it scrapes and evaluates twice a minute, as the Prometheus operator's stack does."""

TICKET_CADENCE = Cadence(scrape=CADENCE.scrape, evaluation=SELDOM_SECONDS, notification=TICKET_WAIT_SECONDS)
"""Windows of tickets are recorded less often, and a ticket waits longer for its siblings."""

_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


def render(s: RuleSettings, target: float | None) -> str:
    """The section. `target` is the acceptance target, None without one."""
    return f"## {headings.PAGING}\n\n{_collapse(s, target)}{_burns(s) if s.pages else ''}"


def _collapse(s: RuleSettings, target: float | None) -> str:
    waits = CADENCE.longest_wait(COLLAPSED.for_seconds)
    at_most, sooner = COLLAPSE_SECONDS + waits, ""
    if target is not None:
        fall = seconds_to_fall(before=target, after=1.0, floor=CONTRIBUTES_NOTHING, window=COLLAPSE_SECONDS)
        sooner = f" (from the target to no draft at all: {_minutes((fall or 0.0) + waits)})"
    said = [
        f"{_of(COLLAPSED)}: {_minutes(at_most)} after the length fell to {number(CONTRIBUTES_NOTHING)} or "
        f"less{sooner}, with "
        f"{s.guard_steps} verify steps or more in {span(COLLAPSE_SECONDS)}"
        f"{f' and {s.guard_events} valid events' if s.pages else ''}."
    ]
    if s.has_break_even:
        at_most = BREAK_EVEN_SECONDS + CADENCE.longest_wait(BELOW_BREAK_EVEN.for_seconds)
        said.append(f"{_of(BELOW_BREAK_EVEN)}: {_minutes(at_most)} after the length fell below break-even.")
    return (
        "The most that passes from the first bad request to the message, with Prometheus scraping and evaluating every "
        f"{span(CADENCE.scrape)}; with a minute each it is {_minutes(_slower())} more. A request counts when it "
        f"ends, so "
        f"what it takes comes on top.\n\n{md.bullets(said)}\n"
    )


def _slower() -> float:
    """By how much a minute of scraping and evaluating is slower."""
    minute = Cadence(scrape=60.0, evaluation=60.0, notification=CADENCE.notification)
    return minute.longest_wait(COLLAPSED.for_seconds) - CADENCE.longest_wait(COLLAPSED.for_seconds)


def _burns(s: RuleSettings) -> str:
    fast, slow = s.pages
    rows = [(share, _first(s, share)) for share in _shares(s)]
    guards = "".join(
        f"- {_of(alert)}: {number(round(events, 2))} events and {number(round(steps, 1))} verify steps a minute\n"
        for row, alert in ((fast, FAST_BURN), (slow, SLOW_BURN))
        for events, steps in [Guard(events=s.guard_events, steps=s.guard_steps).least_per_minute(row)]
    )
    return (
        "Burn rates, where none of the events were bad before (some were: sooner) and the service is older than the "
        "windows (younger: sooner):\n\n"
        + md.table(("bad events", "told after at most", "by"), ((percent(share), *row) for share, row in rows))
        + f"\nA page needs at least this traffic, over the whole service; with less only tickets apply:\n\n{guards}\n"
        + _budget(s)
        + "\n"
        + md.table(
            ("alert", "burns when bad are above", "over, and over", "factor"),
            (
                (
                    _of(alert),
                    percent(row.factor * (1 - s.objective)),
                    f"{span(row.long_seconds)}, {span(row.short_seconds)}",
                    number(round(row.factor, 2)),
                )
                for row, alert in _rows(s)
            ),
        )
    )


def _budget(s: RuleSettings) -> str:
    whole = s.slo_seconds * (1 - s.objective)
    return (
        f"The budget: {percent(1 - s.objective)} of the events of {span(s.slo_seconds)} may be "
        f"bad. If "
        f"every event is bad it is gone in {whole / 3600:.1f} h.\n"
    )


def _rows(s: RuleSettings) -> tuple[tuple[BurnWindows, AlertDef], ...]:
    alerts = (FAST_BURN, SLOW_BURN, BURN_DAY, BURN_THREE_DAYS)
    return tuple(zip((*s.pages, *s.tickets), alerts, strict=True))


def _shares(s: RuleSettings) -> list[float]:
    """Round shares that make a difference: down to the first at which nothing is told."""
    found = []
    for share in _SHARES:
        found.append(share)
        if _first(s, share)[1] == "–":
            break
    return found


def _first(s: RuleSettings, share: float) -> tuple[str, str]:
    """Which alert tells of a share first, and after how long; a ticket only where no page ever does."""
    of_pages, of_tickets = _rows(s)[: len(s.pages)], _rows(s)[len(s.pages) :]
    for rows, cadence, prefix in ((of_pages, CADENCE, "page"), (of_tickets, TICKET_CADENCE, "ticket only")):
        told = [
            (seconds, alert)
            for row, alert in rows
            if (
                seconds := seconds_to_page(
                    row, share, objective=s.objective, for_seconds=alert.for_seconds, cadence=cadence
                )
            )
            is not None
        ]
        if told:
            seconds, alert = min(told, key=lambda each: each[0])
            return _minutes(seconds), f"{prefix}: {_of(alert)}"
    return "never: within the objective", "–"


def _of(alert: AlertDef) -> str:
    return md.link(alert.name.removeprefix("Specbudget"), f"#{alert.anchor}")


def _minutes(seconds: float) -> str:
    """Rounded up: a promise."""
    minutes = -(-seconds // 60)
    if minutes < 180:
        return f"{minutes:.0f} min"
    hours = -(-seconds // 360) / 10
    return f"{hours:.1f} h" if hours < 72 else f"{hours / 24:.1f} days"
