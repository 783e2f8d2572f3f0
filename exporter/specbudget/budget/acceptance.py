"""The `acceptance` section: the SLO, its profiles, and break-even in the four forms in which people have it."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from specbudget.budget.section import Length, Positive, Section
from specbudget.budget.units import Duration
from specbudget.domain import break_even as break_even_domain

SliForm = Literal["request", "batch", "step"]
MAX_PROFILES = 20
DEFAULT_PROFILE = "default"


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
