"""What a review holds: tracks on one shared time axis, events beside them, and findings in words.

Times are seconds since the epoch (UTC). A track is an array with one value per point of the axis; NaN stands where
nothing is known, which is never 0, and None in place of a track means that it is not known anywhere. Quantities are in
base units: bytes, seconds, tokens, ratios from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from specbudget.catalog.sets import NeedBasis, StageArtifact, StartBasis, StartKind
from specbudget.domain.acceptance import Floats
from specbudget.domain.axis import Axis as Axis
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.cause import Cause as Cause

_EMPTY: Mapping[str, Floats] = MappingProxyType({})
SIDECAR_LINE = "sidecar"
"""The line of findings that are about the watching and not about the engine; the others are ids of budget lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One data-parallel rank of one replica.

    `replica` is how the storage tells replicas apart (instance, with pod, namespace and cluster where there are
    any), empty in a sidecar's own history. `rank` is "0" where there is one.
    """

    replica: str
    rank: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTrack:
    """One model's KV pool on one rank, per device.

    `used_*` is held by running requests, `resident_bytes` adds evictable prefix cache; between two points the
    highest value counts. `need_bytes` is what the model needs for the planned or running requests, by basis.
    """

    capacity_bytes: Floats | None = None
    used_bytes: Floats | None = None
    resident_bytes: Floats | None = None
    capacity_tokens: Floats | None = None
    used_tokens: Floats | None = None
    need_bytes: Mapping[NeedBasis, Floats] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTrack:
    """The memory of one rank.

    `device` is the split of one device at engine start, by part; a part that is not known is absent. The drafter's
    `capacity_bytes` is what the engine allocated for it. `cost_tokens` is what the target's pool would hold more
    without the drafter. `high_water` is the budget's mark as a ratio of capacity. `retractions` are requests that
    lost their KV since the point before.
    """

    place: Place
    device: Mapping[MemoryPart, Floats] = field(default_factory=lambda: MappingProxyType({}))
    target: PoolTrack = PoolTrack()
    drafter: PoolTrack = PoolTrack()
    cost_tokens: Floats | None = None
    high_water: Floats | None = None
    retractions: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTrack:
    """One profile of traffic. `steps`, `accepted`, `good` and `bad` are counts since the point before.

    `length` is 1 + accepted / steps between two points, `target_length` what a good event reaches.
    """

    name: str
    steps: Floats
    accepted: Floats
    length: Floats
    good: Floats | None = None
    bad: Floats | None = None
    target_length: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceTrack:
    """Acceptance of the whole service, a ratio of sums over replicas, ranks and profiles.

    `request_length` is from finished requests and `batch_length` from batch reports (the sidecar's own minute).
    `steps` and `accepted` are counts since the point before. `target_length` is the default profile's; `break_even`
    holds at the batch that ran; `expected` is what the traffic's mix lets one expect; `window` is the verify window
    in force. `positions` has, for each place in the draft block from 1, the share of verify steps that accepted at
    least so many drafts. `bad_share` is bad ÷ valid events since the point before; `budget_spent` the error budget
    that was spent from the start of the review on: 1 is what the objective allows for the events seen so far.
    """

    request_length: Floats | None = None
    batch_length: Floats | None = None
    steps: Floats | None = None
    accepted: Floats | None = None
    target_length: Floats | None = None
    objective: Floats | None = None
    break_even: Floats | None = None
    expected: Floats | None = None
    window: Floats | None = None
    positions: Mapping[int, Floats] = field(default_factory=lambda: MappingProxyType({}))
    profiles: tuple[ProfileTrack, ...] = ()
    bad_share: Floats | None = None
    budget_spent: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficTrack:
    """What ran, over all replicas: requests in the batch and waiting, generated tokens a second.

    `requests` are finished requests a second by what became of them: the verdicts of the SLO (good, bad), and the
    reasons for which a request is no event (aborted, invalid, no_speculation, few_tokens, window_below_target).
    `retractions` are counts since the point before.
    """

    running: Floats | None = None
    queued: Floats | None = None
    tokens_per_second: Floats | None = None
    requests: Mapping[str, Floats] = field(default_factory=lambda: _EMPTY)
    retractions: Floats | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStage:
    """A named interval of a start: whose, its name, its begin in seconds from process start, and its length.

    `seconds` None: it had not ended when it was last seen.
    """

    artifact: StageArtifact
    stage: str
    offset: float
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStart:
    """One start of an engine, as a timeline of stages.

    `started_at` is the start of the process and `basis` how that is known. `seconds` is process start to first
    successful generation, None while that did not come; `budget_seconds` the limit in force. `outcome` is one of
    specbudget.catalog.sets.StartOutcome or None. `target_tokens` are the tokens of the target's pool that this start
    made, of the rank that got fewest. `seen_from` says where it was read: series or a log file.
    """

    replica: str
    started_at: float
    basis: StartBasis | None
    stages: tuple[StartStage, ...]
    seconds: float | None = None
    kind: StartKind | None = None
    budget_seconds: float | None = None
    outcome: str | None = None
    mode: str | None = None
    order: str | None = None
    warmup: str | None = None
    overlap_ratio: float | None = None
    target_tokens: float | None = None
    seen_from: str = "series"


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredAlert:
    """An interval in which an alert fired. `labels` are those that tell it from others of its name."""

    name: str
    severity: str
    line: str
    start: float
    end: float
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class MarkKind(StrEnum):
    """What a mark on the time axis stands for."""

    CONFIG = "config"
    """A budget was loaded."""
    TARGET_LENGTH = "target_length"
    """The budget's target length changed."""
    PAIR = "pair"
    """A checkpoint on disk became another."""
    ENGINE_START = "engine_start"
    SIDECAR_START = "sidecar_start"
    SPECULATION = "speculation"
    """The state of speculation changed."""
    CAPACITY = "capacity"
    """A KV pool changed its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened at a moment, with one short sentence. `replica` is empty where all are meant."""

    at: float
    kind: MarkKind
    text: str
    replica: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A stretch of which nothing is known: of one replica, or of all where `replica` is empty. Why, in words."""

    start: float
    end: float
    reason: str
    replica: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that happened, in words.

    `id` is `<line>.<what>` and stable; `line` a budget line or `sidecar`. `evidence` are sentences with the numbers
    that speak for it, the weightiest first; `ruled_out` are the competing explanations that were tested first, each
    with the number that speaks against it, and those that could not be tested, which say so. `start` and `end` are
    the stretch it is about.
    """

    id: str
    line: str
    cause: Cause
    title: str
    evidence: tuple[str, ...]
    ruled_out: tuple[str, ...]
    start: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSource:
    """Where something was read: what kind of source, where it lies (no secrets), and what it gave, in words."""

    kind: str
    place: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Everything that one stretch of time holds about one service.

    `axis` is shared by every track: its points lie `step` seconds apart in `start`…`end`. `alerts` None: the source
    keeps no alerts. `findings` begin with the likeliest cause of the worst that happened and are never empty.
    """

    service: str
    start: float
    end: float
    axis: Axis
    sources: tuple[ReviewSource, ...]
    memory: tuple[MemoryTrack, ...] = ()
    acceptance: AcceptanceTrack = AcceptanceTrack()
    traffic: TrafficTrack = TrafficTrack()
    starts: tuple[EngineStart, ...] = ()
    alerts: tuple[FiredAlert, ...] | None = None
    marks: tuple[Mark, ...] = ()
    gaps: tuple[Gap, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def step(self) -> float:
        """Seconds between two points of the axis."""
        return self.axis.step
