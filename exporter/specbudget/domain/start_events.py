"""What an engine's log tells of a start-up, one event per line, free of any engine's wording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from specbudget.domain.stages import StageArtifact

NO_FIGURES: Mapping[str, float] = MappingProxyType({})

SKIPS_WARMUP = "skips_warmup"
PREFETCHES = "prefetches"
OVERLAPS = "overlaps"
"""Figures of a launch line: 1.0 or 0.0 where the engine's arguments say so, absent where they are silent."""

POOL_TOKENS = "pool_tokens"
"""The figure of a capacity line: tokens of the target's pool on that rank."""


class Mark(StrEnum):
    """What a line marks."""

    LAUNCH = "launch"
    """The engine's first word: its arguments, printed before any process of a rank begins."""
    PREFETCH_BEGIN = "prefetch_begin"
    PREFETCH_PROGRESS = "prefetch_progress"
    PREFETCH_END = "prefetch_end"
    LOAD_BEGIN = "load_begin"
    LOAD_END = "load_end"
    DEFERRED_LOAD = "deferred_load"
    """The checkpoint is committed only after graph capture: overlapped staging."""
    KV_POOL = "kv_pool"
    STATE_POOL = "state_pool"
    """Recurrent state, and the copies that a verify step keeps."""
    KV_RESIZED = "kv_resized"
    """A pool's final size, set after graph capture."""
    POOLS_END = "pools_end"
    """All pools of one runner are there."""
    CAPTURE_BEGIN = "capture_begin"
    CAPTURE_END = "capture_end"
    DRAFT_RUNNER = "draft_runner"
    CAPACITY = "capacity"
    TIMINGS = "timings"
    HTTP_UP = "http_up"
    ANSWERED = "answered"
    """A generating request was answered with success."""
    FIRED_UP = "fired_up"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEvent:
    """One line of a start-up.

    `at` is the log's own clock in seconds, its wall time read without a zone: only differences mean anything.
    `rank` is the line's rank prefix, "" for the main process. `role` is whose line it is, where it says so.
    `seconds` is a duration that the line states. `size_bytes` is what a load or a capture took, or a pool's size
    (None for address space that is only reserved); `verify_bytes` the part of a state pool that holds per-step
    copies; `free_bytes` the device memory left. `figures` are further numbers by name. `seen` is the reader's
    monotonic second, only for a line that was read as it was written.
    """

    mark: Mark
    at: float
    rank: str = ""
    role: StageArtifact | None = None
    label: str = ""
    model: str | None = None
    seconds: float | None = None
    size_bytes: float | None = None
    verify_bytes: float | None = None
    free_bytes: float | None = None
    figures: Mapping[str, float] = field(default_factory=lambda: NO_FIGURES)
    seen: float | None = None
