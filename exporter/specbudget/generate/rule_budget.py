"""What of a budget file the rules depend on."""

from __future__ import annotations

from dataclasses import replace

from specbudget.budget.model import Budget
from specbudget.catalog.lines import ARTIFACTS, KV, STAGING
from specbudget.catalog.rule_settings import EVERY_LIMIT, RuleSettings
from specbudget.catalog.sets import SliForm
from specbudget.domain.burn import LEAST_OBJECTIVE, PAGE_ROWS, TICKET_ROWS
from specbudget.generate.files import CannotGenerate


def rule_settings(budget: Budget) -> RuleSettings:
    """The settings of a budget. Raises CannotGenerate for an objective that no burn rate can watch."""
    line, staging = budget.budget.acceptance, budget.budget.staging
    plain = RuleSettings(
        service=budget.service,
        engine=budget.engine.kind,
        labels=budget.rules.labels,
        has_break_even=line is not None and line.break_even is not None,
        mode=None if staging is None else staging.mode,
        order=None if staging is None or staging.order is None else ",".join(staging.order),
        limits=_limits(budget),
        warmup_required=staging is not None and staging.warmup == "required",
        runbook=budget.links.runbook,
        dashboards=budget.links.dashboards,
    )
    if line is None:
        return plain
    plain = replace(plain, guard_events=line.page_guard.events, guard_steps=line.page_guard.verify_steps)
    if line.target_length is None:
        return plain
    if line.objective < LEAST_OBJECTIVE:
        others = " or ".join(f"`sli: {form}`" for form in SliForm if form != line.sli)
        raise CannotGenerate(
            f"budget.acceptance.objective: {line.objective:g} of the events good means at most "
            f"{1 / (1 - line.objective):.2g} times the allowed bad ones: no burn rate tells a collapse from a normal "
            f"day; set at least {LEAST_OBJECTIVE:g} with a lower target_length, or another form: {others}, "
            "with an objective of its own"
        )
    rows = [row.windows(objective=line.objective, slo_seconds=line.window) for row in (*PAGE_ROWS, *TICKET_ROWS)]
    return replace(
        plain,
        sli=SliForm(line.sli),
        objective=line.objective,
        slo_seconds=line.window,
        pages=tuple(rows[: len(PAGE_ROWS)]),
        tickets=tuple(rows[len(PAGE_ROWS) :]),
    )


def _limits(budget: Budget) -> frozenset[tuple[str, str]]:
    """Line and id of the budgets that have a limit; of the other lines all, since other settings decide there."""
    sections = {ARTIFACTS.id: budget.budget.artifacts, KV.id: budget.budget.kv, STAGING.id: budget.budget.staging}
    return frozenset(
        (line, each)
        for line, each in EVERY_LIMIT
        if line not in sections or getattr(sections[line], each, None) is not None
    )
