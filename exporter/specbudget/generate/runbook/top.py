"""The head of the runbook: the service, what it promises, where to look, and what else there is."""

from __future__ import annotations

from specbudget.budget.acceptance import DEFAULT_PROFILE, AcceptanceLine
from specbudget.budget.model import Budget
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.promql import number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import SliForm
from specbudget.domain.break_even import BreakEven
from specbudget.generate.files import heading
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.headings import ALERTS, CAUSES, CHECKLIST, LEDGER, PAGING, SPECULATION
from specbudget.words import count, percent, span

_SECTIONS = (
    (SPECULATION, "commands, when to do it, what it costs"),
    (ALERTS, "every alert, by how urgent it is"),
    (LEDGER, "the five lines with their limits"),
    (CHECKLIST, "five lines, each with its command"),
    (PAGING, "what pages when, and what never does"),
    (CAUSES, "what the words behind “Likely cause” mean"),
)

_EVENT = {
    SliForm.REQUEST: "finished requests with speculation",
    SliForm.BATCH: "batch reports with work",
    SliForm.STEP: "verify steps",
}


def render(budget: Budget, s: RuleSettings) -> str:
    """Everything above the first section."""
    # a comment ends at the first two dashes and a bracket, also where they stand in a name
    comment = heading("runbook", budget.service.replace("-->", "--)"))
    head = f"<!-- {comment} -->\n# Runbook: {md.plain(budget.service)}\n\n"
    links = md.bullets(f"{md.link(title, f'#{md.anchor(title)}')}: {what}" for title, what in _SECTIONS)
    dashboards = _dashboards(s)
    return (
        f"{head}{_promise(budget, s)}\n"
        "**Woken by a page?** Its link leads to its paragraph here. Without the link, find its name under "
        f"{md.link(ALERTS, f'#{md.anchor(ALERTS)}')}.\n\n{links}{dashboards}"
    )


def _promise(budget: Budget, s: RuleSettings) -> str:
    line = budget.budget.acceptance
    if line is None or line.target_length is None:
        return (
            "**No acceptance target is budgeted**, so nothing here pages for a length that is merely too low; a "
            "collapse "
            "does. The acceptance length is how many tokens a verify step of the target yields, its own token "
            "included: "
            "1 is what the target does alone.\n" + _break_even_words(line)
        )
    target, bad = number(line.target_length), number(round(100 * (1 - line.objective), 4))
    events = f"{percent(line.objective)} of {_EVENT[s.sli]}"
    unit = {SliForm.REQUEST: "request", SliForm.BATCH: "report", SliForm.STEP: "step"}[s.sli]
    said = (
        f"**Target: an acceptance length of {target} or more, for {events}, over {span(line.window)}.**\n\n"
        f"The acceptance length is how many tokens a verify step of the target yields, its own token included: 1 is "
        f"what "
        f"the target does alone, {target} means that many tokens for each of its passes. Of 100 valid {unit}s at most "
        f"{bad} may get fewer.{_valid(line, s)}\n"
    )
    return said + _profiles(line) + _break_even_words(line)


def _valid(line: AcceptanceLine, s: RuleSettings) -> str:
    if s.sli is not SliForm.REQUEST:
        return ""
    return f" A request is valid with {line.min_tokens(None):,} output tokens or more."


def _profiles(line: AcceptanceLine) -> str:
    if not line.profiles:
        return ""
    rows = [(DEFAULT_PROFILE, line.target_length or 0.0, line.min_tokens(None))]
    rows += [(name, profile.target_length, line.min_tokens(profile)) for name, profile in line.profiles.items()]
    return "\n" + md.table(
        ("profile", "target", "valid from"),
        ((md.code(name, in_table=True), number(target), f"{least:,} tokens") for name, target, least in rows),
    )


def _break_even_words(line: AcceptanceLine | None) -> str:
    curve = None if line is None else line.break_even_curve()
    if line is None or curve is None:
        return ""
    first, last = curve.points[0], curve.points[-1]
    if curve.everywhere:
        text = f"Below a length of **{count(first[1])}** two models are slower than one (break-even)."
    else:
        text = (
            f"Below break-even two models are slower than one: **{count(first[1])}** with {first[0]} running "
            f"request{'s' if first[0] > 1 else ''}, **{count(last[1])}** with {last[0]}."
        )
    overtaken = _overtaken(curve, line.target_length)
    return f"\n{text}{overtaken}\n"


def _overtaken(curve: BreakEven, target: float | None) -> str:
    """From how many running requests a request can meet its target and be slower than without a drafter."""
    if target is None:
        return ""
    first, last = curve.points[0][0], curve.points[-1][0]
    found = next((running for running in range(first, last + 1) if curve.at(running) > target), None)
    if found is None:
        return ""
    where = "" if curve.everywhere else f" From {found} running requests on"
    return (
        f"{where or ' Everywhere'} it is above the target: a request can be good there and still be slower than "
        f"without "
        "a drafter."
    )


def _dashboards(s: RuleSettings) -> str:
    if s.dashboards is None or not md.web_address(s.dashboards):
        return ""
    return "- Dashboards: " + ", ".join(md.link(each, dashboard_address(s, each) or "") for each in Dashboard) + "\n"


def dashboard_address(s: RuleSettings, dashboard: Dashboard) -> str | None:
    """Where a dashboard is; None where the budget does not say."""
    if s.dashboards is None or not md.web_address(s.dashboards):
        return None
    return f"{s.dashboards.rstrip('/')}/{dashboard.uid}?var-service={s.service}"
