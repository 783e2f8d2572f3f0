"""The sidecar's answer to people and tools: every line with its budgets, and what no series holds.

It says why something is not known, names causes and findings in words, and shows what an engine tells since its start.
"""

from __future__ import annotations

import math
import time
from typing import Any

import msgspec

from specbudget import __version__
from specbudget.catalog.lines import ACCEPTANCE, CODESIGN, LINES, LineDef
from specbudget.catalog.sets import ROLLING_WINDOWS
from specbudget.domain.finding import CheckResult
from specbudget.domain.line_state import Spending, line_state
from specbudget.domain.stages import Stage
from specbudget.serve.desk import Desk
from specbudget.serve.staging import as_run, cold_start_seconds


class BudgetStatus(msgspec.Struct, kw_only=True):
    """One budget: spent against its limit in `unit`; `why` says why it is not known."""

    budget: str
    unit: str
    spent: float | None
    limit: float | None
    floor: bool
    used_ratio: float | None
    why: str


class LineStatus(msgspec.Struct, kw_only=True):
    """One of the five lines."""

    line: str
    title: str
    budgeted: bool
    state: str
    budgets: list[BudgetStatus]


class RankStatus(msgspec.Struct, kw_only=True):
    """One data-parallel rank. `length_since_start` is the engine's own mean since it started: no window's value."""

    rank: str
    speculation: str
    window: int | None
    running: float | None
    queued: float | None
    length_since_start: float | None


class Cause(msgspec.Struct, kw_only=True):
    """A likely cause of a low or strange acceptance length."""

    cause: str
    evidence: str


class AcceptanceStatus(msgspec.Struct, kw_only=True):
    """Lengths are ratios of sums; `rolling` is by window for the scope that counts."""

    source: str
    scope: str
    rolling: dict[str, float | None]
    target_length: float | None
    objective: float | None
    break_even: float | None
    expected: float | None
    ranks: list[RankStatus]
    causes: list[Cause]


class StageStatus(msgspec.Struct, kw_only=True):
    """A stage of the latest start: seconds from the start of the process, and how long it took or has taken."""

    artifact: str
    stage: str
    offset: float | None
    seconds: float | None
    open: bool


class StartStatus(msgspec.Struct, kw_only=True):
    """The latest start, and attempts that came to nothing.

    `cold_start_seconds` ends with the first generation and is what has passed while it is not there. `ready_seconds`
    is an earlier mark. `unexplained_seconds` are what no phase of the engine's own explains, `hot_reload_seconds` the
    latest swap of weights in the live process: no part of a start.
    """

    basis: str | None
    ready: bool
    ready_seconds: float | None
    cold_start_seconds: float | None
    over_budget: bool
    stuck: bool
    mode: str | None
    order: str | None
    warmup: str | None
    attempts: int
    trying_seconds: float | None
    unexplained_seconds: float | None
    hot_reload_seconds: float | None
    stages: list[StageStatus]


class FindingStatus(msgspec.Struct, kw_only=True):
    """A rule on the pair that does not pass."""

    id: str
    result: str
    message: str


class PairStatus(msgspec.Struct, kw_only=True):
    """The pair's fit, and what is due since it was approved; `due` is empty without a lock."""

    results: dict[str, int]
    findings: list[FindingStatus]
    due: list[str]


class SourceStatus(msgspec.Struct, kw_only=True):
    """One source. `up` is null before its first reading ended; `last_success` is seconds since the epoch."""

    source: str
    up: bool | None
    last_success: float | None
    reason: str
    problem: str


class Status(msgspec.Struct, kw_only=True):
    """Everything at `at`, seconds since the epoch."""

    service: str
    version: str
    at: float
    lines: list[LineStatus]
    acceptance: AcceptanceStatus
    start: StartStatus | None
    pair: PairStatus | None
    sources: list[SourceStatus]


_encode = msgspec.json.Encoder().encode


def status_json(desk: Desk, now: float) -> bytes:
    """The status as JSON; what is not known or not finite is null."""
    return _encode(status(desk, now))


def status_schema() -> dict[str, Any]:
    """The JSON schema of the status."""
    return msgspec.json.schema(Status)


def status(desk: Desk, now: float) -> Status:
    """The status as of `now` (seconds since the epoch)."""
    figures = desk.kv(now)
    spendings = desk.spendings(figures, now)
    return Status(
        service=desk.loaded.budget.service,
        version=__version__,
        at=now,
        lines=[_line(desk, line, [s for s in spendings if s.line == line.id], now) for line in LINES],
        acceptance=_acceptance(desk, [Cause(cause=c, evidence=e) for c, e in desk.suspects(figures, now).items()], now),
        start=_start(desk, now),
        pair=_pair(desk, now),
        sources=[
            SourceStatus(source=s, up=h.up, last_success=h.last_success, reason=h.reason, problem=h.problem)
            for s, h in desk.health.items()
        ],
    )


def _line(desk: Desk, line: LineDef, own: list[Spending], now: float) -> LineStatus:
    warning = line is ACCEPTANCE and bool(own) and desk.view.is_broken(now)
    lines = desk.loaded.budget.budget
    return LineStatus(
        line=line.id,
        title=line.title,
        budgeted=bool(own) if line is CODESIGN else getattr(lines, line.id) is not None,
        state=line_state(own, warning=warning),
        budgets=[
            BudgetStatus(
                budget=s.budget,
                unit=line.budget(s.budget).unit,
                spent=_finite(s.spent),
                limit=_finite(s.limit),
                floor=s.floor,
                used_ratio=_finite(s.used_ratio),
                why=s.why,
            )
            for s in own
        ],
    )


def _acceptance(desk: Desk, causes: list[Cause], now: float) -> AcceptanceStatus:
    policy, facts = desk.book.policy, desk.view.fresh_facts(now)
    since_start = dict(enumerate(facts.lifetime_lengths))
    return AcceptanceStatus(
        source=desk.request_source,
        scope=desk.scope,
        rolling={
            label: _finite(desk.book.rolling_length(desk.scope, seconds, now))
            for label, seconds in ROLLING_WINDOWS.items()
        },
        target_length=policy.targets[0] if policy.has_target else None,
        objective=policy.objective if policy.has_target else None,
        break_even=desk.break_even(now),
        expected=_finite(desk.expected_length(now)),
        ranks=[
            RankStatus(
                rank=rank,
                speculation=desk.view.state(rank, now),
                window=desk.view.window(reading, now),
                running=_finite(reading.running),
                queued=_finite(reading.queued),
                length_since_start=_finite(since_start.get(int(rank)) if rank.isdecimal() else None),
            )
            for rank, reading in desk.view.ranks(now).items()
        ],
        causes=causes,
    )


def _start(desk: Desk, now: float) -> StartStatus | None:
    monotonic = time.monotonic()
    view = desk.starts.latest(monotonic)
    if view is None:
        return None
    start, still = view.start, view.start.open_stage
    run = as_run(view, desk.view.fresh_facts(now))
    open_key = None if still is None else (still.artifact, still.stage)
    stages = [
        StageStatus(artifact=s.artifact, stage=s.stage, offset=s.offset, seconds=s.seconds, open=False)
        for s in start.stages
        if (s.artifact, s.stage) != open_key
    ]
    if still is not None:
        stages.append(
            StageStatus(
                artifact=still.artifact, stage=still.stage, offset=still.offset, seconds=view.open_seconds, open=True
            )
        )
    phases, mark = start.phases, start.stage(Stage.READY)
    return StartStatus(
        basis=start.basis,
        ready=start.ready,
        ready_seconds=start.ready_seconds if mark is None else mark.offset,
        cold_start_seconds=cold_start_seconds(view),
        over_budget=view.over_budget,
        stuck=view.stuck,
        mode=None if run is None else run.mode,
        order=None if run is None else run.order,
        warmup=None if run is None else run.warmup,
        attempts=desk.starts.attempts,
        trying_seconds=desk.starts.trying_seconds(monotonic),
        unexplained_seconds=None if phases is None else phases.rest,
        hot_reload_seconds=None if phases is None else phases.hot_reload,
        stages=stages,
    )


def _pair(desk: Desk, now: float) -> PairStatus | None:
    verdict = desk.verdict(now)
    if verdict is None:
        return None
    return PairStatus(
        results={str(result): count for result, count in verdict.counts().items()},
        findings=[
            FindingStatus(id=f.id, result=f.result, message=f.message)
            for f in verdict.findings
            if f.result is not CheckResult.PASS
        ],
        due=[plan for plan, due in verdict.due.items() if due],
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
