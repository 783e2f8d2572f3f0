"""The `acceptance` section: the SLO, its profiles, and break-even in the four forms in which people have it."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from specbudget.budget.declared import ALL, CHECK, GENERATE, SERVE, Kind, key
from specbudget.budget.section import Length, MaybeNoMilliseconds, Milliseconds, Positive, Section
from specbudget.budget.units import Duration
from specbudget.domain import break_even as break_even_domain

SliForm = Literal["request", "batch", "step"]
Pattern = Annotated[str, Kind(words="shell pattern")]
MAX_PROFILES = 20
DEFAULT_PROFILE = "default"


class PageGuard(Section):
    """The least traffic in the short window under which nobody is paged."""

    events: Positive = key(20, "Events in the short window.", example="20", read_by=(SERVE, GENERATE))
    verify_steps: Positive = key(500, "Verify steps in the short window.", example="500", read_by=(SERVE, GENERATE))


class BreakEvenPoint(Section):
    """Break-even at one number of running requests."""

    running: Positive = key(..., "Running requests, rising from point to point.", example="64", read_by=ALL)
    length: Length = key(..., "The break-even length at so many.", example="3.4", read_by=ALL)


class BreakEvenTimes(Section):
    """Break-even from step times in milliseconds: (draft + verify + overhead) / plain."""

    plain_ms: Milliseconds = key(..., "One decode step of the target alone.", example="9.1", read_by=ALL)
    draft_ms: MaybeNoMilliseconds = key(..., "Drafting for one verify step.", example="3.0", read_by=ALL)
    verify_ms: Milliseconds = key(..., "One verify step of the target.", example="14.2", read_by=ALL)
    overhead_ms: MaybeNoMilliseconds = key(0.0, "Whatever else a verify step costs.", example="0.8", read_by=ALL)


class BreakEvenTrial(Section):
    """Break-even from one A/B: the acceptance length at which the speed-up was measured."""

    length: Length = key(..., "The acceptance length during the trial.", example="3.6", read_by=ALL)
    speedup: Annotated[float, Field(gt=0), Kind(words="number above 0", unit="ratio")] = key(
        ..., "Tokens per second with the drafter, divided by those without.", example="1.6", read_by=ALL
    )


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

    model: Pattern | None = key(None, "A pattern on the name of the served model.", example="ling-code-*")
    adapter: Pattern | None = key(None, "A pattern on the name of the adapter.", example="sql-*")

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
    target_length: Length = key(..., "The length that its requests must reach.", example="3.4")
    min_output_tokens: Positive | None = key(
        None,
        "Output tokens from which one of its requests is an event.",
        example="109",
        without="the line's own, else ⌈32 × target_length⌉",
    )


class AcceptanceLine(Section):
    """The acceptance SLO, break-even and profiles."""

    target_length: Length | None = key(
        None,
        "The length that nearly every request must reach: a low quantile of what was measured, not the mean.",
        example="2.6",
        read_by=ALL,
        without="there is no SLO on the length",
    )
    objective: Annotated[float, Field(gt=0, lt=1), Kind(words="number above 0, below 1", unit="ratio")] = key(
        0.95, "The share of events that must reach it.", example="0.95", read_by=ALL
    )
    window: Duration = key(28 * 86400.0, "The window of the SLO, 1d to 90d.", example="28d", read_by=ALL)
    sli: SliForm = key(
        "request",
        "What an event is: a finished request, a batch report, or a verify step. Each wants its own objective.",
        example="request",
        read_by=ALL,
    )
    min_output_tokens: Positive | None = key(
        None,
        "Output tokens from which a request is an event, whatever the drafter did.",
        example="84",
        without="⌈32 × target_length⌉",
    )
    page_guard: PageGuard = PageGuard()
    break_even: BreakEvenForm | None = key(
        None,
        "The length under which two models are slower than one: one number, points by running requests, step times, "
        "or one A/B.",
        example="[{running: 1, length: 2.1}, {running: 64, length: 3.4}]",
        read_by=ALL,
        without="nobody knows whether speculation pays",
    )
    reference: Annotated[str, Kind(words="path of a file or folder")] | None = key(
        None,
        "What was measured of this pair: a folder of SGLang's request records, a result file of `bench_serving`, or "
        "JSON with lengths by profile.",
        example="bench.json",
        read_by=(CHECK,),
        without="the gate cannot say whether the target can be reached",
    )
    profiles: dict[str, Profile] = key(
        {},
        f"Kinds of traffic with targets of their own, at most {MAX_PROFILES}; all other requests are `default`.",
        example="{code: {match: {model: ling-code-*}, target_length: 3.4}}",
    )

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
