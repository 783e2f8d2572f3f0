"""Closed sets: the only values that labels of these names ever take."""

from __future__ import annotations

from enum import StrEnum

from specbudget.domain.codesign import RULES
from specbudget.domain.finding import CheckResult as CheckResult
from specbudget.domain.line_state import LineState
from specbudget.domain.pair_change import RecheckPlan as RecheckPlan
from specbudget.domain.requests import EXCLUSIONS
from specbudget.domain.speculation import SpeculationState
from specbudget.domain.stages import Stage as Stage
from specbudget.domain.stages import StageArtifact as StageArtifact
from specbudget.domain.stages import StartBasis as StartBasis
from specbudget.domain.stages import StartKind as StartKind
from specbudget.domain.stages import StartOutcome as StartOutcome
from specbudget.domain.suspects import Suspect as Suspect


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


UNANSWERED = (ErrorReason.REFUSED, ErrorReason.TIMEOUT)
"""Reasons without an answer of any kind: nobody is there, or somebody who hangs."""

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


EXCLUSION_REASONS = tuple(verdict.name.lower() for verdict in EXCLUSIONS)
CODESIGN_CHECKS = tuple(rule.what for rule in RULES)
LINE_STATES = tuple(LineState)
SPECULATION_STATES = tuple(SpeculationState)

ROLLING_WINDOWS: dict[str, float] = {"1m": 60.0, "5m": 300.0, "30m": 1800.0, "1h": 3600.0}
"""Rolling windows by label, in seconds."""
