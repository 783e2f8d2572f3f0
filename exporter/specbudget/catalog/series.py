"""Every series of /metrics, declared once: name, type, labels, meaning.

A name ends in its unit, a counter in `_total`. `specbudget_service` is on every series and is not repeated here.
Counters and histograms live as long as the process and begin at 0; gauges vanish when their source is stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specbudget.catalog import sets
from specbudget.catalog.labels import SERVICE_LABEL as SERVICE_LABEL
from specbudget.catalog.lines import LINES, Unit
from specbudget.domain.device_memory import MemoryPart

PREFIX = "specbudget_"


class Kind(StrEnum):
    """The type that /metrics says. Facts (`_info`) are gauges of value 1."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesDef:
    """One series. `group` is a line's id, or the sidecar itself. `buckets` are upper bounds, +Inf left out."""

    name: str
    kind: Kind
    help: str
    group: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """The name on the wire."""
        return PREFIX + self.name


ALL_LINES = "every line"
SIDECAR = "sidecar"
ENGINE = "engine"

LENGTH_BUCKETS = (1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 12, 14, 17)

LABELS: dict[str, tuple[str, ...] | str] = {
    "line": tuple(line.id for line in LINES),
    "budget": "a budget of the line, see below",
    "artifact": tuple(sets.Artifact),
    "rank": "data-parallel rank, `0` where there is one",
    "profile": "a profile of the budget file, `default` for the rest",
    "source": tuple(sets.Source),
    "outcome": tuple(sets.RecordOutcome),
    "verdict": tuple(sets.EventVerdict),
    "sli": tuple(sets.SliForm),
    "scope": tuple(sets.Scope),
    "window": tuple(sets.ROLLING_WINDOWS),
    "role": tuple(sets.Role),
    "use": tuple(MemoryPart),
    "cause": tuple(sets.Suspect),
    "stage": tuple(sets.Stage),
    "kind": tuple(sets.StartKind),
    "result": tuple(sets.CheckResult),
    "plan": tuple(sets.RecheckPlan),
    "position": "place in the draft block, from 1",
}
"""What a label can be: a closed set, or a sentence. What differs from series to series is in SETS_OF_SERIES."""

SETS_OF_SERIES: dict[tuple[str, str], tuple[str, ...]] = {
    ("line_state", "state"): tuple(sets.LINE_STATES),
    ("speculation_state", "state"): tuple(sets.SPECULATION_STATES),
    ("kv_need_bytes", "basis"): tuple(sets.NeedBasis),
    ("slo_excluded_requests_total", "reason"): sets.EXCLUSION_REASONS,
    ("engine_start_time_seconds", "basis"): tuple(sets.StartBasis),
    ("startup_stage_offset_seconds", "artifact"): tuple(sets.StageArtifact),
    ("startup_stage_duration_seconds", "artifact"): tuple(sets.StageArtifact),
    ("startups_total", "outcome"): tuple(sets.StartOutcome),
    ("codesign_check", "check"): sets.CODESIGN_CHECKS,
    ("source_errors_total", "reason"): tuple(sets.ErrorReason),
}
"""Closed sets of labels that mean another thing in each series, by (series, label)."""


def _gauge(name: str, group: str, help: str, *labels: str) -> SeriesDef:
    return SeriesDef(name=name, kind=Kind.GAUGE, help=help, group=group, labels=labels)


def _counter(name: str, group: str, help: str, *labels: str) -> SeriesDef:
    return SeriesDef(name=name, kind=Kind.COUNTER, help=help, group=group, labels=labels)


LINE_STATE = _gauge("line_state", ALL_LINES, "State of a budget line: exactly one is 1.", "line", "state")
BUDGET_USED_RATIO = _gauge(
    "budget_used_ratio",
    ALL_LINES,
    "Spent divided by limit, for a floor limit divided by spent; above 1 is always bad.",
    "line",
    "budget",
)
BUDGET_LIMIT = {
    unit: _gauge(f"budget_limit_{unit}", ALL_LINES, f"Limit of a budget in {unit}.", "line", "budget") for unit in Unit
}
BUDGET_SPENT = {
    unit: _gauge(f"budget_spent_{unit}", ALL_LINES, f"What a budget has spent, in {unit}.", "line", "budget")
    for unit in Unit
}

ARTIFACT_BYTES = _gauge(
    "artifact_bytes", "artifacts", "Loadable weights on disk, by index and tensor headers.", "artifact"
)
ARTIFACT_PARAMETERS = _gauge("artifact_parameters", "artifacts", "Loadable parameters on disk.", "artifact")
ARTIFACT_INFO = _gauge(
    "artifact_info",
    "artifacts",
    "Architecture, dominant dtype and fingerprint of a checkpoint; always 1.",
    "artifact",
    "architecture",
    "dtype",
    "fingerprint",
)
WEIGHT_MEMORY_BYTES = _gauge("weight_memory_bytes", "artifacts", "Resident weights, per device.", "artifact", "rank")

KV_BYTES_PER_TOKEN = _gauge("kv_bytes_per_token", "kv", "KV of one token, per device.", "artifact")
KV_POOL_CAPACITY_BYTES = _gauge(
    "kv_pool_capacity_bytes", "kv", "Bytes allocated for a KV pool, per device.", "artifact", "rank"
)
KV_POOL_USED_BYTES = _gauge(
    "kv_pool_used_bytes", "kv", "Bytes of a KV pool held by running requests, per device.", "artifact", "rank"
)
KV_POOL_RESIDENT_BYTES = _gauge(
    "kv_pool_resident_bytes",
    "kv",
    "Bytes of a KV pool in use or kept as evictable prefix cache, per device.",
    "artifact",
    "rank",
)
KV_POOL_CAPACITY_TOKENS = _gauge("kv_pool_capacity_tokens", "kv", "Tokens that a KV pool can hold.", "artifact", "rank")
KV_POOL_USED_TOKENS = _gauge(
    "kv_pool_used_tokens", "kv", "Tokens of a KV pool held by running requests.", "artifact", "rank"
)
KV_NEED_BYTES = _gauge(
    "kv_need_bytes",
    "kv",
    "KV that a model needs, per device: for the draft block alone, as planned, or at most for what runs now.",
    "artifact",
    "basis",
)
KV_COST_TOKENS = _gauge(
    "kv_cost_tokens", "kv", "Tokens that the target's pool would hold more without the drafter.", "rank"
)
DEVICE_MEMORY_BYTES = _gauge(
    "device_memory_bytes",
    "kv",
    "Device memory at engine start by use; other is the remainder and absent where a part is not known.",
    "rank",
    "use",
)
KV_RETRACTIONS = _counter(
    "kv_retractions_total", "kv", "Requests retracted or preempted, from the engine's counters.", "rank"
)

REQUEST_ACCEPTANCE_LENGTH = SeriesDef(
    name="request_acceptance_length",
    kind=Kind.HISTOGRAM,
    help="Acceptance length of finished requests. For shape: its sum divided by its count is a mean of means.",
    group="acceptance",
    labels=("profile",),
    buckets=LENGTH_BUCKETS,
)
BATCH_ACCEPTANCE_LENGTH = SeriesDef(
    name="batch_acceptance_length",
    kind=Kind.HISTOGRAM,
    help="Acceptance length of batch reports, one per decode-log interval of the engine.",
    group="acceptance",
    labels=("rank",),
    buckets=LENGTH_BUCKETS,
)
ROLLING_ACCEPTANCE_LENGTH = _gauge(
    "rolling_acceptance_length",
    "acceptance",
    "Acceptance length over a window, a ratio of sums; for people, rules use the counters.",
    "scope",
    "window",
)
VERIFY_STEPS = _counter(
    "verify_steps_total", "acceptance", "Verify steps: target passes that checked drafts.", "rank", "profile"
)
PROPOSED_DRAFTS = _counter(
    "proposed_draft_tokens_total", "acceptance", "Draft tokens proposed for verification.", "rank", "profile"
)
ACCEPTED_DRAFTS = _counter(
    "accepted_draft_tokens_total",
    "acceptance",
    "Draft tokens accepted; acceptance length = 1 + rate(accepted) / rate(steps).",
    "rank",
    "profile",
)
GENERATED_TOKENS = _counter(
    "generated_tokens_total", "acceptance", "Output tokens of finished requests.", "rank", "profile"
)
DRAFT_POSITION_ACCEPTED = _counter(
    "draft_position_accepted_total",
    "acceptance",
    "Verify steps that accepted at least this many drafts.",
    "position",
)
SLO_EVENTS = _counter(
    "slo_events_total",
    "acceptance",
    "Valid events of the acceptance SLO by verdict; exactly one sli is in force.",
    "sli",
    "verdict",
    "profile",
)
SLO_EXCLUDED = _counter(
    "slo_excluded_requests_total",
    "acceptance",
    "Finished requests that are no event of the SLO, by the first reason that holds.",
    "reason",
    "profile",
)
SLO_OBJECTIVE = _gauge("slo_objective_ratio", "acceptance", "Share of valid events that must be good.", "profile")
ACCEPTANCE_TARGET = _gauge(
    "acceptance_target_length", "acceptance", "Acceptance length that a good event reaches.", "profile"
)
BREAK_EVEN = _gauge(
    "break_even_acceptance_length",
    "acceptance",
    "Acceptance length under which two models are slower than one, at the present batch.",
)
ACCEPTANCE_WINDOW = _gauge(
    "acceptance_window_length",
    "acceptance",
    "Verify window in force: the largest possible acceptance length.",
    "rank",
)
SPECULATION_STATE = _gauge(
    "speculation_state", "acceptance", "What speculation is doing: exactly one is 1.", "rank", "state"
)
ACCEPTANCE_EXPECTED = _gauge(
    "acceptance_expected_length",
    "acceptance",
    "Acceptance length to expect of the present traffic: the profiles' own lengths, weighted by their verify steps.",
)
ACCEPTANCE_SUSPECT = _gauge(
    "acceptance_suspect",
    "acceptance",
    "Likely causes of a low or strange acceptance length: 1 while the evidence holds.",
    "cause",
)
ACCEPTANCE_SOURCE_INFO = _gauge(
    "acceptance_source_info", "acceptance", "The source that counts requests and steps; always 1.", "source"
)

ENGINE_INFO = _gauge(
    "engine_info",
    ENGINE,
    "The engine as it runs; always 1.",
    "engine",
    "version",
    "algorithm",
    "role",
    "moe_backend",
)
ENGINE_START_TIME = _gauge(
    "engine_start_time_seconds", ENGINE, "When the engine's process started, and how that is known.", "basis"
)
ENGINE_RUNNING = _gauge("engine_running_requests", ENGINE, "Requests in the running batch.", "rank")
ENGINE_QUEUED = _gauge("engine_queued_requests", ENGINE, "Requests waiting.", "rank")

STARTUP_STAGE_OFFSET = _gauge(
    "startup_stage_offset_seconds",
    "staging",
    "When a stage of the latest start began, from the start of the process.",
    "artifact",
    "stage",
)
STARTUP_STAGE_DURATION = _gauge(
    "startup_stage_duration_seconds",
    "staging",
    "How long a stage of the latest start took, or has taken so far; the slowest rank's.",
    "artifact",
    "stage",
)
COLD_START = _gauge(
    "cold_start_seconds",
    "staging",
    "Process start to first successful generation of the latest start, the engine's own warm-up counting.",
    "kind",
)
STARTUPS = _counter("startups_total", "staging", "Starts of the engine by how they ended.", "outcome")
STAGING_INFO = _gauge(
    "staging_info", "staging", "How the artifacts were staged in the latest start; always 1.", "mode", "order", "warmup"
)
STAGING_OVERLAP = _gauge(
    "staging_overlap_ratio",
    "staging",
    "Share of the shorter load that ran beside the other: 0 one after the other, 1 hidden behind it.",
)

CODESIGN_CHECKS = _gauge("codesign_checks", "codesign", "Co-design rules by result.", "result")
CODESIGN_CHECK = _gauge(
    "codesign_check", "codesign", "A co-design rule that does not pass, and its result; always 1.", "check", "result"
)
RECHECK_DUE = _gauge(
    "recheck_due",
    "codesign",
    "1 while a plan is to be made again because a model of the approved pair changed.",
    "plan",
)

SOURCE_UP = _gauge("source_up", SIDECAR, "1 when the latest reading of a source succeeded.", "source")
SOURCE_LAST_SUCCESS = _gauge(
    "source_last_success_timestamp_seconds", SIDECAR, "When a source was last read successfully.", "source"
)
SOURCE_DURATION = _gauge("source_poll_duration_seconds", SIDECAR, "How long the latest reading took.", "source")
SOURCE_ERRORS = _counter("source_errors_total", SIDECAR, "Readings or values that failed.", "source", "reason")
SOURCE_LAG = _gauge(
    "source_lag_seconds",
    SIDECAR,
    "Age of the newest record that was counted while a backlog is left, else 0.",
    "source",
)
SOURCE_BACKLOG = _gauge("source_backlog_bytes", SIDECAR, "Bytes written to tailed files and not yet read.", "source")
RECORDS = _counter("records_total", SIDECAR, "Lines of tailed files by what became of them.", "source", "outcome")
CONFIG_RELOAD_OK = _gauge(
    "config_last_reload_successful",
    SIDECAR,
    "1 when the latest reading of the budget file, and of the web configuration file if there is one, succeeded.",
)
CONFIG_RELOAD_TIME = _gauge(
    "config_last_reload_success_timestamp_seconds", SIDECAR, "When the budget in force was read."
)
STATE_SAVED = _gauge(
    "state_saved",
    SIDECAR,
    "1 when the latest saving of positions, counters and history succeeded; absent without a state folder.",
)
BUILD_INFO = _gauge("build_info", SIDECAR, "Version of specbudget and of Python; always 1.", "version", "pythonversion")

SERIES: tuple[SeriesDef, ...] = (
    LINE_STATE,
    BUDGET_USED_RATIO,
    *(side[unit] for unit in Unit for side in (BUDGET_LIMIT, BUDGET_SPENT)),
    ARTIFACT_BYTES,
    ARTIFACT_PARAMETERS,
    ARTIFACT_INFO,
    WEIGHT_MEMORY_BYTES,
    KV_BYTES_PER_TOKEN,
    KV_POOL_CAPACITY_BYTES,
    KV_POOL_USED_BYTES,
    KV_POOL_RESIDENT_BYTES,
    KV_POOL_CAPACITY_TOKENS,
    KV_POOL_USED_TOKENS,
    KV_NEED_BYTES,
    KV_COST_TOKENS,
    DEVICE_MEMORY_BYTES,
    KV_RETRACTIONS,
    REQUEST_ACCEPTANCE_LENGTH,
    BATCH_ACCEPTANCE_LENGTH,
    ROLLING_ACCEPTANCE_LENGTH,
    VERIFY_STEPS,
    PROPOSED_DRAFTS,
    ACCEPTED_DRAFTS,
    GENERATED_TOKENS,
    DRAFT_POSITION_ACCEPTED,
    SLO_EVENTS,
    SLO_EXCLUDED,
    SLO_OBJECTIVE,
    ACCEPTANCE_TARGET,
    BREAK_EVEN,
    ACCEPTANCE_WINDOW,
    ACCEPTANCE_EXPECTED,
    ACCEPTANCE_SUSPECT,
    SPECULATION_STATE,
    ACCEPTANCE_SOURCE_INFO,
    ENGINE_INFO,
    ENGINE_START_TIME,
    ENGINE_RUNNING,
    ENGINE_QUEUED,
    STARTUP_STAGE_OFFSET,
    STARTUP_STAGE_DURATION,
    COLD_START,
    STARTUPS,
    STAGING_INFO,
    STAGING_OVERLAP,
    CODESIGN_CHECKS,
    CODESIGN_CHECK,
    RECHECK_DUE,
    SOURCE_UP,
    SOURCE_LAST_SUCCESS,
    SOURCE_DURATION,
    SOURCE_ERRORS,
    SOURCE_LAG,
    SOURCE_BACKLOG,
    RECORDS,
    CONFIG_RELOAD_OK,
    CONFIG_RELOAD_TIME,
    STATE_SAVED,
    BUILD_INFO,
)
"""In the order in which /metrics prints them."""
