"""The exact totals of a stand-in run, kept beside everything it prints, for tests to compare against."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from specbudget.simulate.configs import GAMMA
from specbudget.simulate.request import Ending, Request


@dataclass(slots=True)
class Totals:
    """Sums over the requests that ended, aborted ones included.

    `histogram[i]` counts verify steps that accepted i drafts. `records` counts lines of the request log;
    `without_steps` those with no verify step; `never_ran` those aborted before they ran.
    """

    records: int = 0
    aborted: int = 0
    never_ran: int = 0
    without_steps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    verify_steps: int = 0
    accepted_drafts: int = 0
    proposed_drafts: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * (GAMMA + 1))

    def add(self, request: Request) -> None:
        """Count one request that has ended."""
        self.records += 1
        self.aborted += request.ending in (Ending.ABORT_RUNNING, Ending.ABORT_WAITING, Ending.POOL_FULL)
        self.never_ran += request.first_token is None
        self.without_steps += request.verify_steps == 0
        if request.first_token is not None:
            self.prompt_tokens += request.prompt_tokens
        self.completion_tokens += request.completion_tokens
        self.verify_steps += request.verify_steps
        self.accepted_drafts += request.accepted
        self.proposed_drafts += request.proposed
        for accepted, steps in enumerate(request.histogram):
            self.histogram[accepted] += steps


@dataclass(slots=True)
class Truth:
    """Totals over all starts of the engine: altogether, by rank, by profile, and both.

    `this_start` holds what the present process has counted; `starts` counts processes so far. The health
    counters tell how often somebody called an endpoint that makes a real engine generate a token.
    """

    total: Totals = field(default_factory=Totals)
    this_start: Totals = field(default_factory=Totals)
    by_rank: dict[str, Totals] = field(default_factory=dict)
    by_profile: dict[str, Totals] = field(default_factory=dict)
    by_rank_and_profile: dict[str, dict[str, Totals]] = field(default_factory=dict)
    starts: int = 0
    process_started: float | None = None
    ready_at: float | None = None
    first_generation_at: float | None = None
    health_calls: dict[str, int] = field(default_factory=lambda: {"/health": 0, "/health_generate": 0})
    engine: dict[str, Any] = field(default_factory=dict)

    def add(self, request: Request) -> None:
        """Count one request that has ended and whose record is written."""
        rank = str(request.rank)
        children = self.by_rank_and_profile.setdefault(rank, {})
        for totals in (
            self.total,
            self.this_start,
            self.by_rank.setdefault(rank, Totals()),
            self.by_profile.setdefault(request.profile, Totals()),
            children.setdefault(request.profile, Totals()),
        ):
            totals.add(request)

    def begin_start(self, now: float) -> None:
        """A process starts."""
        self.starts += 1
        self.this_start = Totals()
        self.process_started = now
        self.ready_at = self.first_generation_at = None

    def write(self, path: Path) -> None:
        """Write all of it as JSON, so that a reader sees the old file or the new one and never a part."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
        temporary.replace(path)
