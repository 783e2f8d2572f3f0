"""Reads a budget file; what is wrong with it is one line per fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specbudget.budget.document import MAX_BYTES, content_digest, read_document, validated
from specbudget.budget.model import Budget
from specbudget.errors import BudgetError, Problem

__all__ = ["MAX_BYTES", "LoadedBudget", "content_digest", "load_budget"]


@dataclass(frozen=True, slots=True)
class LoadedBudget:
    """A budget in force, the file it came from and the hash of the content that was read."""

    budget: Budget
    path: Path
    digest: str


def load_budget(path: Path) -> LoadedBudget:
    """Reads and checks `path`; raises BudgetError with one Problem per fault."""
    try:
        document = read_document(path, what="budget", begin="start with `service: NAME`")
    except FileNotFoundError as error:
        raise BudgetError([Problem(str(path), None, "", f"cannot be read: {error.strerror}")]) from error
    return LoadedBudget(validated(Budget, document), path, document.digest)
