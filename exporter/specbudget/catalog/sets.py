"""Closed sets: the only values that labels of these names ever take."""

from __future__ import annotations

from enum import StrEnum

from specbudget.domain.line_state import LineState
from specbudget.domain.requests import EXCLUSIONS
from specbudget.domain.speculation import SpeculationState


class Artifact(StrEnum):
    """The two models of a pair."""

    TARGET = "target"
    DRAFTER = "drafter"


class NeedBasis(StrEnum):
    """What a need for KV memory was computed from."""

    BLOCK_FLOOR = "block_floor"
    PLANNED = "planned"
    LIVE_UPPER = "live_upper"


class Source(StrEnum):
    """Where the sidecar reads from."""

    METRICS = "metrics"
    LOADS = "loads"
    SERVER_INFO = "server_info"
    REQUEST_LOG = "request_log"
    SERVER_LOG = "server_log"
    TARGET_CHECKPOINT = "target_checkpoint"
    DRAFTER_CHECKPOINT = "drafter_checkpoint"


HTTP_SOURCES = (Source.METRICS, Source.LOADS, Source.SERVER_INFO)
TAIL_SOURCES = (Source.REQUEST_LOG, Source.SERVER_LOG)
CHECKPOINT_SOURCES = (Source.TARGET_CHECKPOINT, Source.DRAFTER_CHECKPOINT)


class ErrorReason(StrEnum):
    """Why a reading gave nothing, or not all, usable."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    HTTP_STATUS = "http_status"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"
    NOT_FINITE = "not_finite"
    AMBIGUOUS = "ambiguous"
    OUT_OF_BOUNDS = "out_of_bounds"
    SECRET = "secret"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    INTERNAL = "internal"


_HTTP_REASONS = (
    ErrorReason.REFUSED,
    ErrorReason.TIMEOUT,
    ErrorReason.UNAUTHORIZED,
    ErrorReason.NOT_FOUND,
    ErrorReason.HTTP_STATUS,
    ErrorReason.TOO_LARGE,
    ErrorReason.MALFORMED,
    ErrorReason.SECRET,
    ErrorReason.INTERNAL,
)
_FILE_REASONS = (ErrorReason.MISSING, ErrorReason.UNREADABLE, ErrorReason.MALFORMED, ErrorReason.INTERNAL)

REASONS_BY_SOURCE: dict[Source, tuple[ErrorReason, ...]] = {
    Source.METRICS: (
        *_HTTP_REASONS,
        ErrorReason.NOT_FINITE,
        ErrorReason.AMBIGUOUS,
        ErrorReason.OUT_OF_BOUNDS,
    ),
    Source.LOADS: _HTTP_REASONS,
    Source.SERVER_INFO: _HTTP_REASONS,
    Source.REQUEST_LOG: (ErrorReason.MISSING, ErrorReason.UNREADABLE, ErrorReason.INTERNAL),
    Source.SERVER_LOG: (
        ErrorReason.MISSING,
        ErrorReason.UNREADABLE,
        ErrorReason.OUT_OF_BOUNDS,
        ErrorReason.INTERNAL,
    ),
    Source.TARGET_CHECKPOINT: _FILE_REASONS,
    Source.DRAFTER_CHECKPOINT: _FILE_REASONS,
}
"""The reasons that each source can have; every such pair is a counter from the start."""


class RecordOutcome(StrEnum):
    """What became of a line of a tailed file."""

    OK = "ok"
    SKIPPED = "skipped"
    MALFORMED = "malformed"
    OVERSIZED = "oversized"
    DUPLICATE = "duplicate"


class EventVerdict(StrEnum):
    """The verdict on a valid event of the SLO."""

    GOOD = "good"
    BAD = "bad"


class SliForm(StrEnum):
    """What counts as one event of the SLO."""

    REQUEST = "request"
    BATCH = "batch"
    STEP = "step"


class Scope(StrEnum):
    """Whose lengths a rolling length sums."""

    REQUEST = "request"
    BATCH = "batch"


class Role(StrEnum):
    """What an engine does of a request; acceptance is judged on unified and decode only."""

    UNIFIED = "unified"
    PREFILL = "prefill"
    DECODE = "decode"


class StageArtifact(StrEnum):
    """Whose stage of a start-up it is."""

    TARGET = "target"
    DRAFTER = "drafter"
    BOTH = "both"


class Stage(StrEnum):
    """The stages of a start-up, in the order in which an engine goes through them."""

    PREFETCH = "prefetch"
    LOAD = "load"
    POST_LOAD = "post_load"
    KV_ALLOC = "kv_alloc"
    GRAPH_CAPTURE = "graph_capture"
    WARMUP = "warmup"
    READY = "ready"
    FIRST_GENERATION = "first_generation"


class StartBasis(StrEnum):
    """How the start of the engine's process is known."""

    PID_NAMESPACE = "pid_namespace"
    LAUNCH = "launch"
    FIRST_LOG_LINE = "first_log_line"
    OBSERVED = "observed"


class StartKind(StrEnum):
    """Whether the page cache held the weights; unknown without evidence."""

    COLD = "cold"
    WARM = "warm"
    UNKNOWN = "unknown"


class StartOutcome(StrEnum):
    """How a start ended, or that it does not end."""

    OK = "ok"
    OVER_BUDGET = "over_budget"
    FAILED = "failed"
    STUCK = "stuck"


class CheckResult(StrEnum):
    """What a co-design rule says of a pair."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class RecheckPlan(StrEnum):
    """What must be done again because a model of the approved pair changed."""

    ACCEPTANCE = "acceptance"
    KV = "kv"
    TWO_MODEL = "two_model"


class Suspect(StrEnum):
    """Likely causes of a low or strange acceptance length."""

    FROM_BOOT = "from_boot"
    DRAFTER_CHANGED = "drafter_changed"
    TARGET_CHANGED = "target_changed"
    CAPPED = "capped"
    MIX = "mix"
    PREFIX_HITS = "prefix_hits"
    LONG_CONTEXT = "long_context"
    KV_PRESSURE = "kv_pressure"
    DECAY = "decay"
    REPETITION = "repetition"
    SIMULATED = "simulated"


EXCLUSION_REASONS = tuple(verdict.name.lower() for verdict in EXCLUSIONS)
LINE_STATES = tuple(LineState)
SPECULATION_STATES = tuple(SpeculationState)

ROLLING_WINDOWS: dict[str, float] = {"1m": 60.0, "5m": 300.0, "30m": 1800.0, "1h": 3600.0}
"""Rolling windows by label, in seconds."""
