"""Was it still the pair that was approved: a drafter that does not fit, a model that was changed, a hot reload."""

from __future__ import annotations

from itertools import pairwise

from specbudget.catalog.sets import Artifact
from specbudget.review.findings.phrases import lasting, middle, moment, stretch
from specbudget.review.model import Cause, Finding
from specbudget.review.seen import Seen

CAUSES = {Artifact.TARGET: Cause.TARGET_CHANGED, Artifact.DRAFTER: Cause.DRAFTER_CHANGED}


def find(seen: Seen) -> list[Finding]:
    """Rules that fail, and checkpoints that became others."""
    return [*_unfit(seen), *_changed(seen)]


def _unfit(seen: Seen) -> list[Finding]:
    if not seen.failing:
        return []
    review, held = seen.review, next(iter(seen.failing.values()))
    for other in seen.failing.values():
        held = held | other
    start, end = stretch(held, review) or (review.axis.start, review.axis.end)
    length, target = middle(review.acceptance.request_length), middle(review.acceptance.target_length)
    evidence = [f"The rule {check} fails {lasting(start, end, review)}." for check in sorted(seen.failing)]
    ruled_out = []
    if length is not None:
        evidence.append(f"The acceptance length is {length:.2f}" + (f", the target {target:g}." if target else "."))
        if target is not None and length >= target:
            ruled_out.append("a length that suffers from it: the target is reached")
    return [
        Finding(
            id=f"codesign.{Cause.PAIR_UNFIT}",
            line="codesign",
            cause=Cause.PAIR_UNFIT,
            title=f"The drafter does not fit its target: {', '.join(sorted(seen.failing))}",
            evidence=tuple(evidence),
            ruled_out=tuple(ruled_out),
            start=start,
            end=end,
        )
    ]


def _changed(seen: Seen) -> list[Finding]:
    review, times, found = seen.review, seen.review.axis.times, []
    for artifact in Artifact:
        known = [(place, one) for place, one in enumerate(seen.held.get(artifact, ())) if one is not None]
        for (_, old), (place, new) in pairwise(known):
            if old != new:
                found.append(_change(seen, artifact, old, new, float(times[place])))
    if not found and seen.due:
        plan, held = next(iter(seen.due.items()))
        span = stretch(held, review) or (review.axis.start, review.axis.end)
        # which of the two it is stands in the plan: only one changed for the single ones
        cause = Cause.DRAFTER_CHANGED if plan == "kv" else Cause.TARGET_CHANGED
        found.append(
            Finding(
                id="codesign.recheck_due",
                line="codesign",
                cause=cause,
                title=f"The pair is not the one that was approved: {plan.replace('_', '-')} check due",
                evidence=(f"The check was due {lasting(*span, review)}; the change lies before this review.",),
                ruled_out=(),
                start=span[0],
                end=span[1],
            )
        )
    return found


def _change(seen: Seen, artifact: Artifact, old: str, new: str, at: float) -> Finding:
    review, times = seen.review, seen.review.axis.times
    before = middle(review.acceptance.request_length, times < at)
    after = middle(review.acceptance.request_length, times >= at)
    restarted = any(start.basis is not None and at <= start.started_at <= review.axis.end for start in review.starts)
    evidence = [f"The {artifact}'s checkpoint on disk went from {old[:8]} to {new[:8]} at {moment(at, review)}."]
    if seen.due:
        evidence.append(f"Due since then: {', '.join(plan.replace('_', '-') for plan in seen.due)}.")
    if not restarted:
        evidence.append("The engine was not started since: what it loaded at its start is what it runs.")
    ruled_out = []
    if before is not None and after is not None and after >= 0.9 * before:
        ruled_out.append(f"an effect on acceptance so far: {before:.2f} before, {after:.2f} after")
    other = next(one for one in Artifact if one is not artifact)
    values = {one for one in seen.held.get(other, ()) if one is not None}
    if len(values) == 1:
        ruled_out.append(f"another {other}: its checkpoint is {values.pop()[:8]} all along")
    waits = "" if restarted else "; the running engine still has the old one"
    return Finding(
        id=f"codesign.{CAUSES[artifact]}",
        line="codesign",
        cause=CAUSES[artifact],
        title=f"Another {artifact} took the place of the approved one{waits}",
        evidence=tuple(evidence),
        ruled_out=tuple(ruled_out),
        start=at,
        end=review.axis.end,
    )
