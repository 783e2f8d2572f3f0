"""Finished requests as columns, and the verdict of the acceptance SLO on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from specbudget.domain.acceptance import Bools, Floats, Ints, histogram_accepted, histogram_steps


class Verdict(IntEnum):
    """What the SLO says of one request. The first that holds, in this order, excludes it."""

    ABORTED = 0
    INVALID = 1
    NO_SPECULATION = 2
    FEW_TOKENS = 3
    WINDOW_BELOW_TARGET = 4
    GOOD = 5
    BAD = 6


EXCLUSIONS = (
    Verdict.ABORTED,
    Verdict.INVALID,
    Verdict.NO_SPECULATION,
    Verdict.FEW_TOKENS,
    Verdict.WINDOW_BELOW_TARGET,
)
"""Verdicts that are no event of the SLO, in the order in which they are tried."""

UNKNOWN = -1
"""In an integer column: the record did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBatch:
    """n finished requests as columns of length n.

    `histogram` is n × w: verify steps by number of accepted drafts, all zeros where a record had none.
    `steps`, `accepted` and `proposed` are the record's own totals, UNKNOWN where it had none. `window` is the
    verify window in force when the request finished, and `bound` the largest it can have had before; UNKNOWN where
    neither record nor engine says.
    `finished_at` is seconds since the epoch, NaN where unknown.
    """

    finished_at: Floats
    output_tokens: Ints
    prompt_tokens: Ints
    cached_tokens: Ints
    aborted: Bools
    steps: Ints
    accepted: Ints
    proposed: Ints
    window: Ints
    bound: Ints
    rank: Ints
    profile: Ints
    histogram: Ints

    def __len__(self) -> int:
        return len(self.output_tokens)

    def has_steps(self) -> Bools:
        """Requests that went through at least one verify step."""
        return self.steps > 0

    def has_histogram(self) -> Bools:
        """Requests whose record holds a histogram of accepted drafts."""
        filled: Bools = (self.histogram != 0).any(axis=1)
        return filled

    def lengths(self) -> Floats:
        """Acceptance length of each request, NaN without a step.

        Σ(i+1)·h[i] / Σh[i] where there is a histogram, else 1 + accepted / steps; never the engine's own ratio,
        which divides output tokens by steps and so counts the prefill's token and misses trimmed ones.
        """
        with_histogram = self.has_histogram()
        steps = np.where(with_histogram, histogram_steps(self.histogram), self.steps)
        accepted = np.where(with_histogram, histogram_accepted(self.histogram), self.accepted)
        known = (steps > 0) & (accepted >= 0)
        return np.where(known, 1.0 + accepted / np.where(known, steps, 1), np.nan)

    def inconsistent(self) -> Bools:
        """Requests whose numbers cannot all be true: totals against histogram, length against bound."""
        with_histogram = self.has_histogram()
        steps, accepted = histogram_steps(self.histogram), histogram_accepted(self.histogram)
        wrong: Bools = with_histogram & (self.steps != steps)
        wrong |= with_histogram & (self.accepted != UNKNOWN) & (self.accepted != accepted)
        wrong |= (self.histogram < 0).any(axis=1)
        wrong |= (self.steps > 0) & (self.accepted == UNKNOWN) & ~with_histogram
        for column in (self.steps, self.accepted, self.proposed, self.output_tokens):
            wrong |= column < UNKNOWN
        if self.histogram.shape[1]:
            highest = self.histogram.shape[1] - np.argmax(self.histogram[:, ::-1] > 0, axis=1)
            wrong |= with_histogram & (self.bound != UNKNOWN) & (highest > self.bound)
        with np.errstate(invalid="ignore"):
            wrong |= (self.bound != UNKNOWN) & (self.lengths() > self.bound)
        return wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSlo:
    """The request form of the SLO: per profile (by index) the target length and the fewest output tokens.

    A target of NaN means that the profile has none; its requests are no events.
    """

    targets: Floats
    min_output_tokens: Ints


def judge(batch: RequestBatch, slo: RequestSlo, inconsistent: Bools) -> Ints:
    """The Verdict of each request, as its integer value; `inconsistent` is what the batch says of itself.

    Validity looks at what was asked and how it ended, never at what the drafter did: for a given output a bad
    request has more verify steps, so that a filter on steps would select bad ones.
    """
    lengths, targets = batch.lengths(), slo.targets[batch.profile]
    one_token = (batch.output_tokens != UNKNOWN) & (batch.output_tokens <= 1)
    tried: Sequence[tuple[Bools, Verdict]] = (
        (batch.aborted, Verdict.ABORTED),
        (inconsistent, Verdict.INVALID),
        (~batch.has_steps() & ~one_token, Verdict.NO_SPECULATION),
        (batch.output_tokens < np.maximum(slo.min_output_tokens[batch.profile], 2), Verdict.FEW_TOKENS),
        ((batch.window != UNKNOWN) & (batch.window < targets), Verdict.WINDOW_BELOW_TARGET),
        (lengths >= targets, Verdict.GOOD),
    )
    return np.select([holds for holds, _ in tried], [int(v) for _, v in tried], default=int(Verdict.BAD))
