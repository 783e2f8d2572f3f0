"""Nothing happened, or nothing is known: both are said, with what was looked at."""

from __future__ import annotations

import numpy as np

from specbudget.domain.acceptance import acceptance_length
from specbudget.review.findings import overshoot
from specbudget.review.findings.explanations import fullest
from specbudget.review.findings.phrases import bad_share, middle
from specbudget.review.model import SIDECAR_LINE, Cause, Finding
from specbudget.review.seen import Seen
from specbudget.words import count, seconds


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
    return Finding(
        id="acceptance.nothing",
        line="acceptance",
        cause=Cause.NOTHING,
        title="Nothing happened: both models did what was planned",
        evidence=tuple(_figures(seen)),
        ruled_out=tuple(_looked_at(seen)),
        start=review.axis.start,
        end=review.axis.end,
    )


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
