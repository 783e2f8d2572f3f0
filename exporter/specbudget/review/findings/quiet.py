"""Nothing happened, or nothing is known: both are said, with what was looked at."""

from __future__ import annotations

import numpy as np

from specbudget.catalog.lines import ACCEPTANCE
from specbudget.domain.acceptance import acceptance_length
from specbudget.review.findings import overshoot
from specbudget.review.findings.explanations import fullest
from specbudget.review.findings.phrases import bad_share, middle
from specbudget.review.model import SIDECAR_LINE, Cause, Finding
from specbudget.review.seen import Seen
from specbudget.words import count, seconds

LEAST_LENGTHS = 2
"""Points at which a length is known; of a single one nobody knows what it was before."""

MOSTLY = 0.5
"""Share of a stretch that must have been recorded before it is called uneventful."""


def find(seen: Seen) -> Finding:
    """The only finding of a review without any other."""
    review, recorded = seen.review, seen.recorded()
    reports = review.acceptance.batch_length
    if not recorded.any() and (reports is None or np.isnan(reports).all()):
        return Finding(
            id="sidecar.nothing_known",
            line=SIDECAR_LINE,
            cause=Cause.UNKNOWN,
            title="Nothing is known of this stretch: no sidecar was recorded in it",
            evidence=("No sample of the service lies in the stretch.",),
            ruled_out=(),
            start=review.axis.start,
            end=review.axis.end,
        )
    too_little = _too_little(seen)
    return Finding(
        id="sidecar.too_little_known" if too_little else "acceptance.nothing",
        line=SIDECAR_LINE if too_little else ACCEPTANCE.id,
        cause=Cause.UNKNOWN if too_little else Cause.NOTHING,
        title=too_little or "Nothing happened: both models did what was planned",
        evidence=tuple(_figures(seen)),
        ruled_out=tuple(_looked_at(seen)),
        start=review.axis.start,
        end=review.axis.end,
    )


def _too_little(seen: Seen) -> str:
    """Why nobody can say that nothing happened; empty where it can be said."""
    review, track = seen.review, seen.review.acceptance
    recorded = int(seen.recorded().sum())
    of = f"{seconds(recorded * review.step)} of {seconds(review.axis.count * review.step)}"
    lengths = [one for one in (track.request_length, track.batch_length) if one is not None]
    known = max((int(np.isfinite(one).sum()) for one in lengths), default=0)
    if known < LEAST_LENGTHS:
        points = "one point" if known else "no point"
        return f"Too little is known to say whether anything happened: {points} with an acceptance length"
    if recorded < MOSTLY * review.axis.count:
        return f"Nothing stood out in what was recorded, {of}; of the rest nothing is known"
    return ""


def _figures(seen: Seen) -> list[str]:
    review, track = seen.review, seen.review.acceptance
    told = [f"{seconds(float(seen.recorded().sum()) * review.step)} were recorded, every {review.step:g} s."]
    if track.steps is not None and track.accepted is not None:
        steps = float(np.nansum(track.steps))
        length, target = acceptance_length(float(np.nansum(track.accepted)), steps), middle(track.target_length)
        if length is not None:
            against = "" if target is None else f", the target is {target:g}"
            told.append(f"Acceptance length {length:.2f} over {count(steps)} verify steps{against}.")
    elif (reported := middle(track.batch_length)) is not None:
        told.append(f"Batch reports of the engine's log say a length of {reported:.2f}; no request was counted.")
    bad, objective = bad_share(review, seen.recorded()), middle(track.objective)
    if bad is not None and objective is not None:
        told.append(f"{bad:.1%} of requests were bad; the objective allows {1 - objective:.1%}.")
    needed, length = middle(track.break_even), middle(track.request_length)
    if needed is not None and length is not None:
        told.append(f"Break-even lay at {needed:.2f}: {length / needed:.2f}x the speed of the target alone.")
    return [*told, *overshoot.sentences(seen.requests)]


def _looked_at(seen: Seen) -> list[str]:
    part = fullest(seen, seen.recorded())
    lost = seen.review.traffic.retractions
    told = ["a fall or decay of the length: its levels lie within 10 % of each other"]
    if part is not None:
        retracted = 0.0 if lost is None else float(np.nansum(lost))
        told.append(
            f"KV pressure: the fuller pool was {part:.0%} used at most, {count(retracted)} requests were retracted"
        )
    told.append("another engine start, a changed checkpoint, speculation off or frozen: none was recorded")
    return told
