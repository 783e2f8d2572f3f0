"""What specbudget raises on purpose.

SpecbudgetError
├── BudgetError        a file that the operator wrote (budget, lock, web configuration) cannot be used: one Problem
│                      per fault
├── StateError         the state folder cannot be used (locked, unreadable, foreign)
└── SourceError        one source gave nothing usable; carries a reason of a closed set
"""

from __future__ import annotations

from dataclasses import dataclass


class SpecbudgetError(Exception):
    """Base of all errors that are told to a person in one line."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a file: where it is and what to do about it."""

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class BudgetError(SpecbudgetError):
    """The budget file, or one beside it, is unreadable or breaks a rule; `problems` holds one entry per fault."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class StateError(SpecbudgetError):
    """The state folder cannot be used."""


class SourceError(SpecbudgetError):
    """A source gave nothing usable.

    `reason` is one of `specbudget.catalog.sets.ERROR_REASONS` and becomes a label; the text is for people
    and never holds a response body, a record or a secret.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
