"""What the records of single requests say that no series holds: groups by cached prefix, prompt and speculation.

Records give counts, and then every length is a ratio of sums. Where a record has a length only, requests count alike.
Everything here is made of sums, so that evidence of parts adds up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

from specbudget.domain.acceptance import acceptance_length

LONG_PROMPT_TOKENS = 32_768
"""From here on a prompt is long; the sidecar's suspects use the same border."""
LEAST_ROUNDS = 2
"""A request of fewer verify steps says nothing of its length: one step may run past the end of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """One finished request; None: its record did not say.

    `length` is given only where a record has no counts. `steps` 0 means that it ran without speculation.
    """

    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    output_tokens: float | None = None
    steps: float | None = None
    accepted: float | None = None
    length: float | None = None
    finished_at: float | None = None

    @property
    def emitted_per_round(self) -> float | None:
        """Tokens that reached the user per verify step, the prefill's token left out; None with too few steps."""
        if self.steps is None or self.steps < LEAST_ROUNDS or self.output_tokens is None:
            return None
        return (self.output_tokens - 1) / self.steps

    @property
    def drafter_length(self) -> float | None:
        """1 + accepted / steps; may exceed what was emitted, since a step may run past the end of the text."""
        if self.steps is None or self.accepted is None:
            return self.length
        return acceptance_length(self.accepted, self.steps)


class _Sums:
    """Field by field the sum of two of a kind."""

    __slots__ = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup(_Sums):
    """Requests taken together; `counted` of them have counts, and `lengths` is the sum of all their own lengths."""

    requests: int = 0
    counted: int = 0
    steps: float = 0.0
    accepted: float = 0.0
    lengths: float = 0.0

    @property
    def length(self) -> float | None:
        """A ratio of sums where all have counts, else the mean of their lengths; None without any."""
        if not self.requests:
            return None
        if self.counted == self.requests:
            return acceptance_length(self.accepted, self.steps)
        return self.lengths / self.requests


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSums(_Sums):
    """Prompt tokens of some requests, and those of them that came from the cache."""

    prompt: float = 0.0
    cached: float = 0.0

    @property
    def hit_rate(self) -> float | None:
        """Cached ÷ prompt tokens; None where no record says so."""
        return self.cached / self.prompt if self.prompt else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvidence(_Sums):
    """The requests of a stretch in groups.

    `with_speculation` and `without` are their prompts. `rounds` are the requests of at least two verify steps, with
    the tokens that reached the user in `emitted`; `left_out` had fewer steps.
    """

    requests: int = 0
    cached: RequestGroup = RequestGroup()
    uncached: RequestGroup = RequestGroup()
    long_prompts: RequestGroup = RequestGroup()
    short_prompts: RequestGroup = RequestGroup()
    with_speculation: PromptSums = PromptSums()
    without: PromptSums = PromptSums()
    rounds: RequestGroup = RequestGroup()
    emitted: float = 0.0
    left_out: int = 0

    @property
    def emitted_per_round(self) -> float | None:
        """Tokens that reached the user per verify step."""
        return self.emitted / self.rounds.steps if self.rounds.steps else None


def evidence_of(requests: Sequence[ServedRequest]) -> RequestEvidence:
    """The groups of some requests."""
    rounds = [r for r in requests if r.emitted_per_round is not None and r.accepted is not None]
    return RequestEvidence(
        requests=len(requests),
        cached=_group(r for r in requests if r.cached_tokens is not None and r.cached_tokens > 0),
        uncached=_group(r for r in requests if r.cached_tokens == 0),
        long_prompts=_group(r for r in requests if (r.prompt_tokens or 0) >= LONG_PROMPT_TOKENS),
        short_prompts=_group(
            r for r in requests if r.prompt_tokens is not None and r.prompt_tokens < LONG_PROMPT_TOKENS
        ),
        with_speculation=_prompts(r for r in requests if r.steps != 0 and r.drafter_length is not None),
        without=_prompts(r for r in requests if r.steps == 0),
        rounds=_group(rounds),
        emitted=sum((r.output_tokens or 0.0) - 1 for r in rounds),
        left_out=sum(1 for r in requests if r.steps is not None and 0 < r.steps < LEAST_ROUNDS),
    )


def _group(requests: Iterable[ServedRequest]) -> RequestGroup:
    told = [request for request in requests if request.drafter_length is not None]
    counted = [r for r in told if r.steps is not None and r.accepted is not None]
    return RequestGroup(
        requests=len(told),
        counted=len(counted),
        steps=sum(r.steps or 0.0 for r in counted),
        accepted=sum(r.accepted or 0.0 for r in counted),
        lengths=sum(r.drafter_length or 0.0 for r in told),
    )


def _prompts(requests: Iterable[ServedRequest]) -> PromptSums:
    told = [(r.cached_tokens, r.prompt_tokens) for r in requests]
    pairs = [(cached, prompt) for cached, prompt in told if cached is not None and prompt is not None and prompt > 0]
    return PromptSums(prompt=sum(prompt for _, prompt in pairs), cached=sum(cached for cached, _ in pairs))
