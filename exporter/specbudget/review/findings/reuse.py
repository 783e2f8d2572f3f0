"""Did the prefix cache still help: reuse with speculation against reuse without it."""

from __future__ import annotations

from specbudget.review.findings.phrases import middle
from specbudget.review.model import Cause, Finding
from specbudget.review.seen import Seen

NOTABLE = 0.1
"""A hit rate that fell by less says nothing."""


def find(seen: Seen) -> list[Finding]:
    """From request records alone: no series of the engine says it of single requests."""
    if seen.requests is None:
        return []
    found = reuse(
        before=seen.requests.without.hit_rate,
        after=seen.requests.with_speculation.hit_rate,
        length=middle(seen.review.acceptance.request_length),
        target=middle(seen.review.acceptance.target_length),
        start=seen.review.axis.start,
        end=seen.review.axis.end,
    )
    return [] if found is None else [found]


def recompute_factor(before: float, after: float) -> float | None:
    """How many times as many prompt tokens must be computed: (1 − after) ÷ (1 − before); None at a perfect before."""
    return (1 - after) / (1 - before) if before < 1 else None


def reuse(
    *, before: float | None, after: float | None, length: float | None, target: float | None, start: float, end: float
) -> Finding | None:
    """The finding, where the hit rate without speculation and the one with it are known and the second is lower."""
    if before is None or after is None or before - after < NOTABLE:
        return None
    factor = recompute_factor(before, after)
    times = "" if factor is None else f": {factor:.1f}x the prefill tokens"
    green = length is not None and (target is None or length >= target)
    return Finding(
        id="kv.prefix_reuse",
        line="kv",
        cause=Cause.PREFIX_REUSE,
        title=f"Prefix reuse fell with speculation: {before:.0%} → {after:.0%} of prompt tokens{times}",
        evidence=(
            f"Hit rate {before:.2f} without speculation, {after:.2f} with it ({after - before:+.2f}).",
            *(
                []
                if factor is None
                else [f"(1 − {after:.2f}) ÷ (1 − {before:.2f}) = {factor:.1f}x more prompt tokens are computed."]
            ),
        ),
        ruled_out=(f"the drafter's acceptance: {length:.2f} is as it should be",) if green else (),
        start=start,
        end=end,
    )
