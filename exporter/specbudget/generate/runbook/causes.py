"""The closed set of likely causes, each with its meaning, its evidence and its remedies."""

from __future__ import annotations

from specbudget.budget.model import Budget
from specbudget.catalog.causes import CAUSES
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.places import filled
from specbudget.generate.runbook.said import said


def render(budget: Budget) -> str:
    """The section."""
    parts = [
        f"## {headings.CAUSES}\n\nA sidecar names a cause where numbers speak for it. It is a hint and no verdict; "
        f"several "
        "may hold. The evidence with its numbers is in the sidecar's log and in this command's `causes`:\n\n"
        + md.block(filled("curl -sS [sidecar]/api/v1/status", budget), "sh")
    ]
    for cause, text in CAUSES.items():
        parts.append(
            f"### {headings.of_cause(cause)}\n\n{text.means}\n\nEvidence: {text.evidence}\n\n"
            + md.numbered(said(action, budget) for action in text.actions)
        )
    return "\n".join(parts)
