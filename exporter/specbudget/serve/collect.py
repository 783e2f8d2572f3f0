"""Writes down every series of the catalog from the desk. Unknown is left out, never 0."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from specbudget import __version__
from specbudget.catalog import series
from specbudget.catalog.lines import ACCEPTANCE, LINES
from specbudget.catalog.sets import (
    LINE_STATES,
    ROLLING_WINDOWS,
    SPECULATION_STATES,
    TAIL_SOURCES,
    Artifact,
    CheckResult,
    Role,
    Scope,
    Suspect,
)
from specbudget.domain.line_state import Spending, line_state
from specbudget.domain.speculation import SpeculationState
from specbudget.domain.start_memory import by_data_rank
from specbudget.serve.desk import Desk
from specbudget.serve.families import Families
from specbudget.serve.kv_figures import KvFigures
from specbudget.serve.pair_watch import PairVerdict
from specbudget.serve.pool_watch import pool_gaps
from specbudget.serve.staging import as_run, cold_start_seconds, start_kind
from specbudget.sources.checkpoint import Role as WeightRole

MAX_WORD = 64
"""Characters of a label that the engine words; it keeps to that, what answers in its place may not."""


def collect(desk: Desk, now: float) -> Iterator[Metric]:
    """All families as of `now` (seconds since the epoch)."""
    families = Families(desk.loaded.budget.service)
    figures = desk.kv(now)
    _lines(families, desk.spendings(figures, now), broken=desk.view.is_broken(now))
    _artifacts(families, desk, now)
    _kv(families, figures)
    _staging(families, desk, figures, now)
    _suspects(families, desk, figures, now)
    _acceptance(families, desk, now)
    _codesign(families, desk.verdict(now))
    _engine(families, desk, now)
    _sidecar(families, desk)
    return families.render_with(desk.ledger)


def _lines(families: Families, spendings: list[Spending], *, broken: bool) -> None:
    """`broken`: speculation does not do what is paid for, whatever the lengths of the past say."""
    for line in LINES:
        own = [s for s in spendings if s.line == line.id]
        warning = line is ACCEPTANCE and bool(own) and broken
        families.state(series.LINE_STATE, (line.id,), LINE_STATES, line_state(own, warning=warning))
        for spending in own:
            labels, unit = (line.id, spending.budget), line.budget(spending.budget).unit
            families.gauge(series.BUDGET_USED_RATIO, labels, spending.used_ratio)
            families.gauge(series.BUDGET_LIMIT[unit], labels, spending.limit)
            families.gauge(series.BUDGET_SPENT[unit], labels, spending.spent)


def _artifacts(families: Families, desk: Desk, now: float) -> None:
    ranks = desk.view.ranks(now)
    for artifact, checkpoint in desk.checkpoints.items():
        families.gauge(series.ARTIFACT_BYTES, (artifact,), checkpoint.disk_bytes)
        families.gauge(series.ARTIFACT_PARAMETERS, (artifact,), checkpoint.parameters)
        if checkpoint.fingerprint is not None:
            named = (checkpoint.architecture or "unknown", checkpoint.dtype or "unknown", checkpoint.fingerprint)
            families.gauge(series.ARTIFACT_INFO, (artifact, *named), 1)
        weights = desk.weights(checkpoint, WeightRole(artifact), now)
        computed = None if weights is None else weights.resident_bytes
        for rank, reading in ranks.items():
            # of the target the engine knows better than any rule of sharding; of the drafter it says nothing
            told = reading.target_weight_bytes if artifact is Artifact.TARGET else None
            families.gauge(series.WEIGHT_MEMORY_BYTES, (artifact, rank), told if told is not None else computed)
    if Artifact.TARGET not in desk.checkpoints:
        for rank, reading in ranks.items():
            families.gauge(series.WEIGHT_MEMORY_BYTES, (Artifact.TARGET, rank), reading.target_weight_bytes)


def _kv(families: Families, figures: KvFigures) -> None:
    for artifact, token_bytes, pools, needs in (
        (Artifact.TARGET, figures.target_token_bytes, figures.target_pools, figures.target_needs),
        (Artifact.DRAFTER, figures.drafter_token_bytes, figures.drafter_pools, figures.drafter_needs),
    ):
        families.gauge(series.KV_BYTES_PER_TOKEN, (artifact,), token_bytes)
        for rank, pool in pools.items():
            labels = (artifact, rank)
            families.gauge(series.KV_POOL_CAPACITY_BYTES, labels, pool.capacity_bytes)
            families.gauge(series.KV_POOL_USED_BYTES, labels, pool.used_bytes)
            families.gauge(series.KV_POOL_RESIDENT_BYTES, labels, pool.resident_bytes)
            families.gauge(series.KV_POOL_CAPACITY_TOKENS, labels, pool.capacity_tokens)
            families.gauge(series.KV_POOL_USED_TOKENS, labels, pool.used_tokens)
        for basis, need in needs.items():
            families.gauge(series.KV_NEED_BYTES, (artifact, basis), need)
    for rank, tokens in figures.cost_tokens.items():
        families.gauge(series.KV_COST_TOKENS, (rank,), tokens)


def _acceptance(families: Families, desk: Desk, now: float) -> None:
    for scope in Scope:
        for label, seconds in ROLLING_WINDOWS.items():
            length = desk.book.rolling_length(scope, seconds, now)
            families.gauge(series.ROLLING_ACCEPTANCE_LENGTH, (scope, label), length)
    policy = desk.book.policy
    if policy.has_target:
        for profile, target in zip(policy.profiles, policy.targets, strict=True):
            families.gauge(series.SLO_OBJECTIVE, (profile,), policy.objective)
            families.gauge(series.ACCEPTANCE_TARGET, (profile,), target)
    families.gauge(series.BREAK_EVEN, (), desk.break_even(now))
    ranks = desk.view.ranks(now)
    for rank, reading in ranks.items():
        families.gauge(series.ACCEPTANCE_WINDOW, (rank,), desk.view.window(reading, now))
        families.state(series.SPECULATION_STATE, (rank,), SPECULATION_STATES, desk.view.state(rank, now))
    if not ranks:
        families.state(series.SPECULATION_STATE, ("0",), SPECULATION_STATES, SpeculationState.NO_DATA)
    families.gauge(series.ACCEPTANCE_SOURCE_INFO, (desk.request_source,), 1)


def _staging(families: Families, desk: Desk, figures: KvFigures, now: float) -> None:
    view, facts = desk.starts.latest(time.monotonic()), desk.view.fresh_facts(now)
    run = as_run(view, facts)
    if run is not None:
        families.gauge(series.STAGING_INFO, (run.mode, run.order, run.warmup), 1)
    weights, pair, ranks = desk.drafter_weights(now), desk.pair(now), desk.view.ranks(now)
    logged = {} if view is None else by_data_rank(view.start.memory)
    desk.pools.tell(pool_gaps(pair, ranks, logged, figures, weights))
    for rank, split in desk.memory(figures, now).items():
        for use, size in split:
            families.gauge(series.DEVICE_MEMORY_BYTES, (rank, use), size)
    if view is None:
        return
    still = view.start.open_stage
    for stage in view.start.stages:
        if still is not None and (stage.stage, stage.artifact) == (still.stage, still.artifact):
            continue  # one rank is through, another is not: the stage still runs
        families.gauge(series.STARTUP_STAGE_OFFSET, (stage.artifact, stage.stage), stage.offset)
        families.gauge(series.STARTUP_STAGE_DURATION, (stage.artifact, stage.stage), stage.seconds)
    if still is not None:
        families.gauge(series.STARTUP_STAGE_OFFSET, (still.artifact, still.stage), still.offset)
        families.gauge(series.STARTUP_STAGE_DURATION, (still.artifact, still.stage), view.open_seconds)
    line, target = desk.loaded.budget.budget.staging, desk.checkpoints.get(Artifact.TARGET)
    kind = start_kind(
        view, None if target is None else target.disk_bytes, None if line is None else line.storage_bandwidth
    )
    families.gauge(series.COLD_START, (kind,), cold_start_seconds(view))
    families.gauge(series.STAGING_OVERLAP, (), view.start.overlap_ratio)
    if view.start.basis is not None:
        families.gauge(series.ENGINE_START_TIME, (view.start.basis,), view.started_at)


def _suspects(families: Families, desk: Desk, figures: KvFigures, now: float) -> None:
    families.gauge(series.ACCEPTANCE_EXPECTED, (), desk.expected_length(now))
    found = desk.suspects(figures, now)
    for cause in Suspect:
        families.gauge(series.ACCEPTANCE_SUSPECT, (cause,), float(cause in found))


def _codesign(families: Families, verdict: PairVerdict | None) -> None:
    if verdict is None:
        return
    for result, count in verdict.counts().items():
        families.gauge(series.CODESIGN_CHECKS, (result,), count)
    for finding in verdict.findings:
        if finding.result is not CheckResult.PASS:
            families.gauge(series.CODESIGN_CHECK, (finding.check, finding.result), 1)
    for plan, due in verdict.due.items():
        families.gauge(series.RECHECK_DUE, (plan,), float(due))


def _engine(families: Families, desk: Desk, now: float) -> None:
    ranks, facts = desk.view.ranks(now), desk.view.fresh_facts(now)
    if ranks or facts.version is not None:
        families.gauge(
            series.ENGINE_INFO,
            (
                desk.loaded.budget.engine.kind,
                _word(facts.version or desk.loaded.budget.engine.version),
                _word((facts.algorithm or "none").lower() if facts.speculates is not None else None),
                desk.view.role(now) or Role.UNIFIED,
                _word(facts.moe_backend),
            ),
            1,
        )
    for rank, reading in ranks.items():
        families.gauge(series.ENGINE_RUNNING, (rank,), reading.running)
        families.gauge(series.ENGINE_QUEUED, (rank,), reading.queued)


def _sidecar(families: Families, desk: Desk) -> None:
    for source, health in desk.health.items():
        families.gauge(series.SOURCE_UP, (source,), None if health.up is None else float(health.up))
        families.gauge(series.SOURCE_LAST_SUCCESS, (source,), health.last_success)
        families.gauge(series.SOURCE_DURATION, (source,), health.duration)
        if source in TAIL_SOURCES:
            families.gauge(series.SOURCE_LAG, (source,), desk.lags.lag_seconds.get(source))
            families.gauge(series.SOURCE_BACKLOG, (source,), desk.lags.backlog_bytes.get(source))
    families.gauge(series.CONFIG_RELOAD_OK, (), float(desk.reload_ok and desk.web_config_ok))
    families.gauge(series.CONFIG_RELOAD_TIME, (), desk.loaded_at)
    families.gauge(series.STATE_SAVED, (), None if desk.state_saved is None else float(desk.state_saved))
    families.gauge(series.BUILD_INFO, (__version__, platform.python_version()), 1)


def _word(told: str | None) -> str:
    """A label of what the engine says of itself, of a length that labels may have."""
    return told[:MAX_WORD] if told else "unknown"
