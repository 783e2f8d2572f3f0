"""The sidecar's answer to people and tools: every line with its budgets, and what no series holds.

It says why something is not known, names causes and findings in words, and shows what an engine tells since its start.
"""

from __future__ import annotations

import math
import time
from pathlib import PurePath
from typing import Any

import msgspec

from specbudget import __version__
from specbudget.catalog.lines import ACCEPTANCE, CODESIGN, LINES, LineDef
from specbudget.catalog.sets import ROLLING_WINDOWS, Artifact
from specbudget.domain.drafter_cost import kv_cost_ratio
from specbudget.domain.finding import CheckResult
from specbudget.domain.line_state import Spending, line_state
from specbudget.domain.stages import Stage
from specbudget.serve.desk import Desk
from specbudget.serve.headline import headline
from specbudget.serve.kv_figures import KvFigures
from specbudget.serve.staging import as_run, cold_start_seconds
from specbudget.serve.status_model import (
    AcceptanceStatus,
    BudgetStatus,
    Cause,
    EngineStatus,
    FindingStatus,
    KvStatus,
    LineStatus,
    LinksStatus,
    MemoryStatus,
    ModelStatus,
    PairStatus,
    PoolStatus,
    RankStatus,
    SourceStatus,
    StageStatus,
    StartStatus,
    Status,
)

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
    lines = [_line(desk, line, [s for s in spendings if s.line == line.id], now) for line in LINES]
    causes = [Cause(cause=c, evidence=e) for c, e in desk.suspects(figures, now).items()]
    acceptance = _acceptance(desk, causes, now)
    state, sentence = headline(lines, acceptance.ranks)
    links = desk.loaded.budget.links
    return Status(
        service=desk.loaded.budget.service,
        version=__version__,
        at=now,
        state=state,
        sentence=sentence,
        engine=_engine(desk, now),
        models=[_model(desk, figures, artifact, now) for artifact in Artifact],
        lines=lines,
        kv=_kv(desk, figures, now),
        memory=[
            MemoryStatus(
                rank=rank,
                total_bytes=split.total_bytes,
                parts={str(part): size for part, size in split},
                missing=[str(part) for part in split.missing],
            )
            for rank, split in desk.memory(figures, now).items()
        ],
        acceptance=acceptance,
        start=_start(desk, now),
        pair=_pair(desk, now),
        sources=[
            SourceStatus(source=s, up=h.up, last_success=h.last_success, reason=h.reason, problem=h.problem)
            for s, h in desk.health.items()
        ],
        links=LinksStatus(runbook=links.runbook, dashboards=links.dashboards),
    )


def _engine(desk: Desk, now: float) -> EngineStatus:
    facts, engine = desk.view.fresh_facts(now), desk.loaded.budget.engine
    algorithm = desk.view.algorithm(now)
    return EngineStatus(
        kind=engine.kind,
        version=facts.version or engine.version,
        algorithm=None if algorithm is None else str(algorithm),
        role=desk.view.role(now),
    )


def _model(desk: Desk, figures: KvFigures, artifact: Artifact, now: float) -> ModelStatus:
    facts, budget, checkpoint = desk.view.fresh_facts(now), desk.loaded.budget, desk.checkpoints.get(artifact)
    told, given, token_bytes = (
        (facts.target_path, budget.target.path, figures.target_token_bytes)
        if artifact is Artifact.TARGET
        else (facts.drafter_path, budget.drafter.path, figures.drafter_token_bytes)
    )
    path = told or given
    return ModelStatus(
        artifact=artifact,
        # the rest of the path is of one machine, and may name people
        name=None if path is None else PurePath(path).name or None,
        architecture=None if checkpoint is None else checkpoint.architecture,
        dtype=None if checkpoint is None else checkpoint.dtype,
        parameters=None if checkpoint is None else checkpoint.parameters,
        disk_bytes=None if checkpoint is None else checkpoint.disk_bytes,
        token_bytes=token_bytes,
    )


def _kv(desk: Desk, figures: KvFigures, now: float) -> KvStatus:
    target, charged = figures.target_token_bytes, figures.charged_token_bytes
    why = _why_no_share(desk, figures, now)
    return KvStatus(
        drafter_share=kv_cost_ratio(target_token_bytes=target, charged_token_bytes=charged)
        if not why and target and charged is not None
        else None,
        why=why,
        cost_tokens=dict(figures.cost_tokens),
        drafter_needs=dict(figures.drafter_needs),
        pools=[
            PoolStatus(
                artifact=artifact,
                rank=rank,
                capacity_tokens=_finite(pool.capacity_tokens),
                used_tokens=_finite(pool.used_tokens),
                capacity_bytes=_finite(pool.capacity_bytes),
                used_bytes=_finite(pool.used_bytes),
            )
            for artifact, pools in ((Artifact.TARGET, figures.target_pools), (Artifact.DRAFTER, figures.drafter_pools))
            for rank, pool in pools.items()
        ],
    )


def _why_no_share(desk: Desk, figures: KvFigures, now: float) -> str:
    """Why the drafter's share of the token budget is not known; empty where it is."""
    pair = desk.pair(now)
    if pair.algorithm is None:
        return "no drafter is known: neither the engine nor the budget names an algorithm"
    if figures.target_token_bytes is None:
        return "what a token takes of the target's KV is not known: its checkpoint is not read, or its layout unknown"
    if figures.drafter_token_bytes is None and (pair.drafter.geometry is None or pair.drafter_element_bytes is None):
        return "what a token takes of the drafter's KV is not known: its checkpoint is not read, or its layout unknown"
    if figures.drafter_token_bytes is None:
        return "how many drafts a verify step takes is not known: the engine has not told it"
    return (
        ""
        if figures.charged_token_bytes is not None
        else "how this release of the engine charges a drafter is not known"
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
                state=line_state([s]),
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
