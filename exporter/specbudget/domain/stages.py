"""The words of a start-up: its stages, whose they are, how its beginning is known and how it ends."""

from __future__ import annotations

from enum import StrEnum


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


class StagingMode(StrEnum):
    """How checkpoints get from storage into device memory."""

    SERIAL = "serial"
    PREFETCH = "prefetch"
    OVERLAP = "overlap"
