"""Every alert of the budget: an index by severity, and a paragraph for each."""

from __future__ import annotations

from specbudget.budget.model import Budget
from specbudget.catalog.alerts import ALERT_LINES, ALERTS, AlertDef, Severity
from specbudget.catalog.lines import LINES
from specbudget.catalog.looks import SUSPECTS, Look, Query
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.places import filled
from specbudget.generate.runbook.said import said
from specbudget.generate.runbook.top import dashboard_address
from specbudget.words import span

_TITLES = {line.id: line.title for line in LINES}
_WHOM = {
    Severity.PAGE: ("Pages", "somebody gets up, now"),
    Severity.TICKET: ("Tickets", "this week; nobody gets up"),
    Severity.INFO: ("Notes", "for whoever plans"),
}


def in_force(s: RuleSettings) -> tuple[AlertDef, ...]:
    """The alerts that the budget's rules hold, most urgent first, then line by line."""
    found = [alert for alert in ALERTS if alert.condition(s) is not None]
    return tuple(sorted(found, key=lambda alert: (list(Severity).index(alert.severity), ALERT_LINES.index(alert.line))))


def index(s: RuleSettings) -> str:
    """The list of all alerts with links; tickets line by line."""
    parts = [f"## {headings.ALERTS}\n"]
    for severity, (title, whom) in _WHOM.items():
        rows = [alert for alert in in_force(s) if alert.severity is severity]
        if rows:
            parts.append(f"**{title}**: {whom}\n\n{_entries(rows)}")
    return "\n".join(parts)


def _entries(rows: list[AlertDef]) -> str:
    """One list; where there are several lines, each under its title."""
    lines = dict.fromkeys(alert.line for alert in rows)
    if len(lines) == 1:
        return md.bullets(_entry(alert) for alert in rows)
    return "\n".join(
        f"{_title(line)}\n\n{md.bullets(_entry(alert) for alert in rows if alert.line == line)}" for line in lines
    )


def _title(line: str) -> str:
    return _TITLES.get(line, line.capitalize())


def _entry(alert: AlertDef) -> str:
    return f"{md.link(alert.name, f'#{alert.anchor}')}: {alert.means.partition('. ')[0].rstrip('.')}"


def render(budget: Budget, s: RuleSettings) -> str:
    """A paragraph for each alert; its heading is its name alone, since links lead to that."""
    return "\n".join((f"## {headings.EACH_ALERT}\n", *(_paragraph(alert, budget, s) for alert in in_force(s))))


def _paragraph(alert: AlertDef, budget: Budget, s: RuleSettings) -> str:
    turn_off = md.link(headings.SPECULATION, f"#{md.anchor(headings.SPECULATION)}")
    parts = (
        f"### {alert.name}\n",
        f"**{alert.severity.capitalize()}** · {_title(alert.line)}{_dashboard(alert, s)}\n",
        f"{said(alert.means, budget)}\n",
        f"**Confirm**\n\n{''.join(_look(look, budget, s) for look in alert.confirm)}".rstrip("\n") + "\n",
        f"**Likely causes**, likeliest first\n\n{md.numbered(said(cause, budget) for cause in alert.causes)}",
        f"**Do**\n\n{md.numbered(said(action, budget) for action in alert.actions)}",
        f"**{turn_off}** {said(alert.off, budget)}.\n" if alert.off else "",
        md.folded("When it fires, and the rule", _rule(alert, budget, s)),
    )
    return "\n".join(part for part in parts if part)


def _dashboard(alert: AlertDef, s: RuleSettings) -> str:
    address = dashboard_address(s, alert.dashboard)
    return "" if address is None else f" · {md.link('dashboard', address)}"


def _look(look: Look, budget: Budget, s: RuleSettings) -> str:
    is_query = isinstance(look, Query)
    text = look.text(s) if isinstance(look, Query) else filled(look.text, budget)
    shows = look.shows
    if look is SUSPECTS:
        shows += f" What each means: {md.link(headings.CAUSES, f'#{md.anchor(headings.CAUSES)}')}."
    return f"{shows}\n\n{md.block(text, 'promql' if is_query else 'sh')}\n"


def _rule(alert: AlertDef, budget: Budget, s: RuleSettings) -> str:
    condition = alert.condition(s)
    assert condition is not None
    waits = f" It must hold for {span(alert.for_seconds)}." if alert.for_seconds else ""
    return f"{said(alert.when(s), budget)}{waits}\n\n{md.block(condition.text(), 'promql')}"
