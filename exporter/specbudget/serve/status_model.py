"""What the status says, by type: the JSON of /api/v1/status, and what the status page is made of."""

from __future__ import annotations

import msgspec


class BudgetStatus(msgspec.Struct, kw_only=True):
    """One budget: spent against its limit in `unit`; `why` says why it is not known.

    `state` is that of the budget alone: ok, at_risk, breach or unknown. A used ratio above 1 is no breach where the
    traffic is too low to page.
    """

    budget: str
    state: str
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


class EngineStatus(msgspec.Struct, kw_only=True):
    """What the engine says of itself; before it was asked, what the budget says of its version and algorithm."""

    kind: str
    version: str | None
    algorithm: str | None
    role: str | None


class ModelStatus(msgspec.Struct, kw_only=True):
    """One model of the pair: the last part of its checkpoint's path, and what the checkpoint says."""

    artifact: str
    name: str | None
    architecture: str | None
    dtype: str | None
    parameters: int | None
    disk_bytes: int | None
    token_bytes: int | None


class PoolStatus(msgspec.Struct, kw_only=True):
    """One model's KV pool on one rank, per device; used is held by running requests."""

    artifact: str
    rank: str
    capacity_tokens: float | None
    used_tokens: float | None
    capacity_bytes: float | None
    used_bytes: float | None


class KvStatus(msgspec.Struct, kw_only=True):
    """What the drafter's KV takes. `drafter_share` is its share of the target's token budget, 0 to 1, as the engine
    charges it; `why` says why that is not known. `cost_tokens` is by rank what the target's pool would hold more
    without the drafter, its weights included."""

    drafter_share: float | None
    why: str
    cost_tokens: dict[str, int]
    drafter_needs: dict[str, int]
    pools: list[PoolStatus]


class MemoryStatus(msgspec.Struct, kw_only=True):
    """One rank's fullest device at engine start: bytes by use; `missing` are uses that nobody tells the size of."""

    rank: str
    total_bytes: int | None
    parts: dict[str, int]
    missing: list[str]


class LinksStatus(msgspec.Struct, kw_only=True):
    """Where the budget says that runbook and dashboards are."""

    runbook: str | None
    dashboards: str | None


class Status(msgspec.Struct, kw_only=True):
    """Everything at `at`, seconds since the epoch. `state` is that of the worst line, in `sentence` in words."""

    service: str
    version: str
    at: float
    state: str
    sentence: str
    engine: EngineStatus
    models: list[ModelStatus]
    lines: list[LineStatus]
    kv: KvStatus
    memory: list[MemoryStatus]
    acceptance: AcceptanceStatus
    start: StartStatus | None
    pair: PairStatus | None
    sources: list[SourceStatus]
    links: LinksStatus
