"""The headings of the runbook's sections; links within it are made of them."""

from __future__ import annotations

from specbudget.catalog.sets import Suspect

SPECULATION = "Turn speculation off"
ALERTS = "Alerts"
LEDGER = "Budget ledger"
CHECKLIST = "Before a rollout"
PAGING = "Time to page"
CAUSES = "Likely causes"
EACH_ALERT = "What to do"


def of_cause(cause: Suspect) -> str:
    """The heading of one cause."""
    return f"Cause {cause}"
