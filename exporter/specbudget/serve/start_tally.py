"""Counts how starts end: each once, stuck at most once beside it, and attempts since the last that generated."""

from __future__ import annotations

from typing import Any

from specbudget.domain.stages import StartOutcome


class StartTally:
    """`attempts` counts starts since the last one that came to a generation, the present one included."""

    def __init__(self) -> None:
        self.attempts = 0
        self.ended = False
        self.stuck = False
        self._increments: dict[StartOutcome, int] = {}

    def begin(self) -> None:
        """A start begins."""
        self.attempts += 1
        self.ended = self.stuck = False

    def succeed(self, seconds: float | None, budget_seconds: float | None) -> None:
        """The start came to a generation after `seconds`; where that is not known it is no outcome."""
        if seconds is not None:
            over = budget_seconds is not None and seconds > budget_seconds
            self._count(StartOutcome.OVER_BUDGET if over else StartOutcome.OK)
        self.ended, self.attempts = True, 0

    def fail(self) -> None:
        """The start ended without a generation."""
        self._count(StartOutcome.FAILED)
        self.ended = True

    def stick(self) -> None:
        """The start does not go on; it may still end."""
        if not self.stuck:
            self.stuck = True
            self._count(StartOutcome.STUCK)

    def take(self) -> dict[StartOutcome, int]:
        """Outcomes since the last call."""
        increments, self._increments = self._increments, {}
        return increments

    def _count(self, outcome: StartOutcome) -> None:
        self._increments[outcome] = self._increments.get(outcome, 0) + 1

    def dump(self) -> dict[str, Any]:
        """Plain values, for keeping."""
        increments = {outcome.value: count for outcome, count in self._increments.items()}
        return {"attempts": self.attempts, "ended": self.ended, "stuck": self.stuck, "increments": increments}

    def load(self, kept: dict[str, Any]) -> None:
        """Takes up what `dump` gave."""
        self.attempts, self.ended, self.stuck = kept["attempts"], kept["ended"], kept["stuck"]
        self._increments = {StartOutcome(name): count for name, count in kept["increments"].items()}
