"""The budget file's model: every key, its meaning, default and rule.

Paths are kept as written; `Budget.resolve` turns one into a path beside the budget file. Everything is frozen:
a reload makes a new Budget and never changes the one in force.
"""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from specbudget.budget.units import Bandwidth, Duration, Measured, Size
from specbudget.catalog.labels import DEFAULT_LABELS, REPLICA_LABELS, SERVICE_LABEL
from specbudget.domain import break_even as break_even_domain
from specbudget.domain.drafter import DraftAlgorithm

Ratio = Annotated[float, Field(gt=0, le=1)]
Positive = Annotated[int, Field(ge=1, le=10**15)]
Length = Annotated[float, Field(ge=1, le=1024)]
EngineKind = Literal["sglang", "vllm", "tensorrt-llm"]
SliForm = Literal["request", "batch", "step"]

ServiceName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="use letters, digits, dot, dash and underscore, starting with a letter or digit, at most 100",
    ),
]

MAX_PROFILES = 20
_ALERT_LABELS = frozenset({*REPLICA_LABELS, "severity", "service", "state", "series", "le"})
DEFAULT_PROFILE = "default"


class Section(BaseModel):
    """A mapping of the file: unknown keys are errors, values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, hide_input_in_errors=True)


class Tls(Section):
    """TLS towards the engine."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure_skip_verify: bool = False

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: give both or neither")
        return self


def _has_port(parts: SplitResult) -> bool:
    """False for a port that is none; without one the scheme's holds."""
    try:
        return parts.port is None or parts.port > 0
    except ValueError:
        return False


def engine_address(value: str) -> str:
    """An engine's address without a slash at its end; raises ValueError, saying how one is written."""
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or not _has_port(parts):
        raise ValueError("write the engine's address as http://HOST:PORT or https://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError("keep credentials out of the address: put the key in a file and name it api_key_file")
    if parts.query or parts.fragment:
        raise ValueError("write the address without ? and #")
    return value.rstrip("/")


class Engine(Section):
    """The engine beside which the sidecar runs, and how it was started."""

    kind: EngineKind = "sglang"
    url: str = "http://127.0.0.1:30000"
    version: str | None = None
    args: str | list[str] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    gpu_memory: Size | None = None
    free_before_load: Measured | None = None
    api_key_file: str | None = None
    tls: Tls = Tls()
    poll_interval: Duration = 5.0
    request_log: str | None = None
    server_log: str | None = None

    @field_validator("url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        return engine_address(value)

    @field_validator("version", mode="before")
    @classmethod
    def _version_is_text(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(f'put the version in quotes, like "{value}", or it is read as a number')
        return value

    @field_validator("env", mode="before")
    @classmethod
    def _env_is_text(cls, value: object) -> object:
        if isinstance(value, dict):
            return {key: str(item) if isinstance(item, int | float) else item for key, item in value.items()}
        return value

    @field_validator("poll_interval")
    @classmethod
    def _not_too_often(cls, value: float) -> float:
        if not 1 <= value <= 300:
            raise ValueError("choose 1s to 300s: each poll costs the engine a rendering of its metrics")
        return value


class Target(Section):
    """The target's checkpoint."""

    path: str | None = None


class Drafter(Section):
    """The drafter's checkpoint and algorithm (the latter where the launch arguments are silent)."""

    path: str | None = None
    algorithm: DraftAlgorithm | None = None


class Parallelism(Section):
    """GPUs per replica: tensor, pipeline and data parallel sizes."""

    tensor: Positive = 1
    pipeline: Positive = 1
    data: Positive = 1


class ArtifactsLine(Section):
    """Limits on loadable bytes on disk."""

    image: Size | None = None
    target: Size | None = None
    drafter: Size | None = None
    total: Size | None = None


class KvLine(Section):
    """Limits on the two KV pools, per device."""

    target: Size | None = None
    drafter: Size | None = None
    high_water: Ratio = 0.90
    concurrency: Positive | None = None
    tokens_per_request: Positive | None = None
    min_target_tokens: Positive | None = None


class PageGuard(Section):
    """The least traffic in the short window under which nobody is paged."""

    events: Positive = 20
    verify_steps: Positive = 500


class BreakEvenPoint(Section):
    """Break-even at one number of running requests."""

    running: Positive
    length: Length


class BreakEvenTimes(Section):
    """Break-even from step times in milliseconds: (draft + verify + overhead) / plain."""

    plain_ms: Annotated[float, Field(gt=0)]
    draft_ms: Annotated[float, Field(ge=0)]
    verify_ms: Annotated[float, Field(gt=0)]
    overhead_ms: Annotated[float, Field(ge=0)] = 0.0


class BreakEvenTrial(Section):
    """Break-even from one A/B: the acceptance length at which the speed-up was measured."""

    length: Length
    speedup: Annotated[float, Field(gt=0)]


UNION_TAGS = frozenset({"Number", "Points", "Times", "Trial"})
"""Names of union members; they appear in pydantic's locations and in no file."""


def _break_even_form(value: object) -> str:
    """Which of the four forms was meant, so that a fault is told of that form only."""
    if isinstance(value, list):
        return "Points"
    if isinstance(value, dict):
        return "Trial" if {"length", "speedup"} & value.keys() else "Times"
    return "Number"


BreakEvenForm = Annotated[
    Annotated[Length, Tag("Number")]
    | Annotated[list[BreakEvenPoint], Tag("Points")]
    | Annotated[BreakEvenTimes, Tag("Times")]
    | Annotated[BreakEvenTrial, Tag("Trial")],
    Discriminator(_break_even_form),
]


class ProfileMatch(Section):
    """Which requests belong to a profile: shell patterns on the served model and on the adapter."""

    model: str | None = None
    adapter: str | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.model is None and self.adapter is None:
            raise ValueError("give a pattern for model or adapter")
        return self

    def matches(self, model: str | None, adapter: str | None) -> bool:
        """True when every given pattern fits; a name that is not known fits no pattern."""
        for pattern, name in ((self.model, model), (self.adapter, adapter)):
            if pattern is not None and (name is None or not fnmatchcase(name, pattern)):
                return False
        return True


class Profile(Section):
    """A kind of traffic with a target of its own."""

    match: ProfileMatch
    target_length: Length
    min_output_tokens: Positive | None = None


class AcceptanceLine(Section):
    """The acceptance SLO, break-even and profiles."""

    target_length: Length | None = None
    objective: Annotated[float, Field(gt=0, lt=1)] = 0.95
    window: Duration = 28 * 86400.0
    sli: SliForm = "request"
    min_output_tokens: Positive | None = None
    page_guard: PageGuard = PageGuard()
    break_even: BreakEvenForm | None = None
    reference: str | None = None
    profiles: dict[str, Profile] = Field(default_factory=dict)

    @field_validator("window")
    @classmethod
    def _window_days(cls, value: float) -> float:
        if not 86400 <= value <= 90 * 86400:
            raise ValueError("choose an SLO window of 1d to 90d")
        return value

    @field_validator("break_even")
    @classmethod
    def _break_even_points(cls, value: object) -> object:
        if isinstance(value, list):
            runs = [point.running for point in value]
            if not value or runs != sorted(set(runs)):
                raise ValueError("give at least one point, with `running` rising from point to point")
        return value

    @field_validator("profiles")
    @classmethod
    def _profile_names(cls, value: dict[str, Profile]) -> dict[str, Profile]:
        if len(value) > MAX_PROFILES:
            raise ValueError(f"{len(value)} profiles: at most {MAX_PROFILES} are kept apart, the rest is “default”")
        if DEFAULT_PROFILE in value:
            raise ValueError("“default” is the name of the rest: choose another name")
        return value

    @model_validator(mode="after")
    def _profiles_need_target(self) -> Self:
        if self.profiles and self.target_length is None:
            raise ValueError("profiles need target_length for the requests that match none of them")
        return self

    def min_tokens(self, profile: Profile | None) -> int:
        """Output tokens from which a request is a valid event: ⌈32 × target_length⌉ unless given."""
        target = profile.target_length if profile is not None else self.target_length
        given = profile.min_output_tokens if profile is not None else None
        if given is None:
            given = self.min_output_tokens
        if given is not None:
            return given
        return 1 if target is None else math.ceil(round(32 * target, 6))

    def break_even_curve(self) -> break_even_domain.BreakEven | None:
        """The break-even length as a function of running requests; None when not budgeted."""
        match self.break_even:
            case None:
                return None
            case float() as length:
                return break_even_domain.constant(length)
            case list() as points:
                return break_even_domain.BreakEven(tuple((p.running, p.length) for p in points))
            case BreakEvenTimes() as t:
                return break_even_domain.from_step_times(
                    plain_ms=t.plain_ms, draft_ms=t.draft_ms, verify_ms=t.verify_ms, overhead_ms=t.overhead_ms
                )
            case BreakEvenTrial() as trial:
                return break_even_domain.from_trial(length=trial.length, speedup=trial.speedup)


class StagingLine(Section):
    """The start-up budget and how the two artifacts are to be staged."""

    cold_start: Duration | None = None
    mode: Literal["serial", "prefetch", "overlap"] | None = None
    order: list[Literal["target", "drafter"]] | None = None
    warmup: Literal["required", "optional"] | None = None
    storage_bandwidth: Bandwidth | None = None
    readers: Positive | None = None
    probe_budget: Duration | None = None

    @field_validator("order")
    @classmethod
    def _both_once(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and sorted(value) != ["drafter", "target"]:
            raise ValueError("name target and drafter once each, in the order they load")
        return value


class Lines(Section):
    """The budget lines; a line that is left out is not budgeted."""

    artifacts: ArtifactsLine | None = None
    kv: KvLine | None = None
    acceptance: AcceptanceLine | None = None
    staging: StagingLine | None = None


class Links(Section):
    """Where pages and alerts point to."""

    runbook: str | None = None
    dashboards: str | None = None


LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class Rules(Section):
    """How the generated rules see the fleet: what pages and tickets are aggregated by."""

    labels: tuple[str, ...] = DEFAULT_LABELS

    @field_validator("labels")
    @classmethod
    def _name_the_service(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [label for label in value if not LABEL_NAME.fullmatch(label) or label.startswith("__")]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: no name of a label")
        if SERVICE_LABEL not in value or len(set(value)) != len(value):
            raise ValueError(f"name each label once, and {SERVICE_LABEL} among them: it is what a page is about")
        # the catalog is read only where labels are chosen: it brings numpy
        from specbudget.catalog.series import LABELS

        # no page can be aggregated by a label of the series themselves, of replicas or of alerts
        taken = sorted(set(value) & (_ALERT_LABELS | set(LABELS)))
        if taken:
            raise ValueError(f"{', '.join(taken)}: the rules use this label themselves")
        return value


class Budget(Section):
    """A whole budget file."""

    service: ServiceName
    engine: Engine = Engine()
    target: Target = Target()
    drafter: Drafter = Drafter()
    parallelism: Parallelism = Parallelism()
    budget: Lines = Lines()
    links: Links = Links()
    rules: Rules = Rules()

    def profile_names(self) -> tuple[str, ...]:
        """The profiles in force, `default` first."""
        line = self.budget.acceptance
        return (DEFAULT_PROFILE, *(line.profiles if line is not None else ()))

    def profile_of(self, model: str | None, adapter: str | None) -> str:
        """The first profile whose patterns fit; `default` when none does."""
        line = self.budget.acceptance
        for name, profile in line.profiles.items() if line is not None else ():
            if profile.match.matches(model, adapter):
                return name
        return DEFAULT_PROFILE


def resolve(path: str, beside: Path) -> Path:
    """A path of the budget file, relative ones taken from the folder of the file `beside`."""
    return beside.parent / Path(path).expanduser()
