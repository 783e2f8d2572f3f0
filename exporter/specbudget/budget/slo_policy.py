"""The acceptance SLO in force, made from the budget: targets, validity and burn windows by profile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specbudget.budget.model import Budget
from specbudget.domain.burn import LEAST_OBJECTIVE, PAGE_ROWS, BurnWindows
from specbudget.domain.requests import RequestSlo


@dataclass(frozen=True, slots=True, kw_only=True)
class SloPolicy:
    """Profiles by index and what is asked of each; `targets` holds NaN where no target is budgeted."""

    profiles: tuple[str, ...]
    targets: tuple[float, ...]
    request: RequestSlo
    objective: float
    sli: str
    rows: tuple[BurnWindows, ...]
    guard_events: int
    guard_steps: int

    @property
    def has_target(self) -> bool:
        """True when an acceptance SLO is budgeted."""
        return not math.isnan(self.targets[0])


def slo_policy(budget: Budget) -> SloPolicy:
    """The policy of a budget; without an acceptance line nothing is an event."""
    line = budget.budget.acceptance
    names = budget.profile_names()
    profiles = [None if line is None else line.profiles.get(name) for name in names]
    default = math.nan if line is None or line.target_length is None else line.target_length
    targets = tuple(default if profile is None else profile.target_length for profile in profiles)
    objective = 0.95 if line is None else line.objective
    return SloPolicy(
        profiles=names,
        targets=targets,
        request=RequestSlo(
            targets=np.array(targets),
            min_output_tokens=np.array([1 if line is None else line.min_tokens(p) for p in profiles], dtype=np.int64),
        ),
        objective=objective,
        sli="request" if line is None else line.sli,
        rows=tuple(row.windows(objective=objective, slo_seconds=line.window) for row in PAGE_ROWS)
        if line is not None and line.target_length is not None and objective >= LEAST_OBJECTIVE
        else (),
        guard_events=20 if line is None else line.page_guard.events,
        guard_steps=500 if line is None else line.page_guard.verify_steps,
    )
