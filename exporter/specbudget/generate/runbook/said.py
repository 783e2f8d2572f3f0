"""Sentences of the catalog as Markdown: marks filled, code kept whole, names of causes as links."""

from __future__ import annotations

import re

from specbudget.budget.model import Budget
from specbudget.catalog.sets import Suspect
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.places import filled

_SPAN = re.compile(r"`([^`]+)`")
_CAUSES = {str(cause): cause for cause in Suspect}


def said(text: str, budget: Budget) -> str:
    """A sentence of the catalog. What is filled into code may hold any sign, so the code is marked anew."""
    parts = _SPAN.split(text)
    return "".join(_code(part, budget) if place % 2 else _words(part, budget) for place, part in enumerate(parts))


def _words(text: str, budget: Budget) -> str:
    whole = filled(text, budget)
    # an engine's words have code of their own
    return whole if whole == text else said(whole, budget)


def _code(text: str, budget: Budget) -> str:
    if text in _CAUSES:
        return md.link(md.code(text), f"#{md.anchor(headings.of_cause(_CAUSES[text]))}")
    return md.code(filled(text, budget))
