"""The runbook of a budget: what a person who is woken needs, best first.

It is made from the budget alone. Checkpoints, the engine and the lock are not read, although they would give more
numbers: the same budget must give the same file on every machine, or `--check` would mean nothing in a pipeline. What
only they can tell stands in it as the command or the query that shows it.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from specbudget.budget.model import Budget
from specbudget.generate.files import Files
from specbudget.generate.rule_budget import rule_settings
from specbudget.generate.runbook import alerts, causes, checklist, ledger, paging, speculation, top

RUNBOOK = PurePosixPath("docs/runbook.md")


def files(budget: Budget) -> Files:
    """The file of the target `runbook`. Raises CannotGenerate."""
    return {RUNBOOK: render(budget)}


def render(budget: Budget) -> str:
    """The whole runbook."""
    settings, line = rule_settings(budget), budget.budget.acceptance
    parts = (
        top.render(budget, settings),
        speculation.render(budget, settings),
        alerts.index(settings),
        ledger.render(budget, settings),
        checklist.render(budget, settings),
        paging.render(settings, None if line is None else line.target_length),
        alerts.render(budget, settings),
        causes.render(budget),
    )
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)
