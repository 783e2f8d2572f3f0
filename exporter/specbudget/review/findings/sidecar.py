"""Was anybody watching: sources that failed, and stretches of which nothing is known."""

from __future__ import annotations

import numpy as np

from specbudget.catalog.sets import HTTP_SOURCES, Source
from specbudget.domain.acceptance import Bools
from specbudget.review.findings.phrases import lasting, stretch
from specbudget.review.model import SIDECAR_LINE, Cause, Finding
from specbudget.review.seen import Seen
from specbudget.words import count, seconds

LEAST_SECONDS = 60.0
LEAST_GAP_LOOKS = 4.0
"""A hole of fewer steps is a late scrape."""


def find(seen: Seen) -> list[Finding]:
    """An engine that could not be read, and holes in the record."""
    return [*_blind(seen), *_holes(seen)]


def _blind(seen: Seen) -> list[Finding]:
    review = seen.review
    down = np.zeros(review.axis.count, dtype=np.bool_)
    failed: dict[Source, float] = {}
    for (_, source), track in seen.up.items():
        if source in HTTP_SOURCES:
            off: Bools = track == 0
            failed[source] = max(failed.get(source, 0.0), float(off.sum()) * review.step)
            down |= off
    span = stretch(down, review)
    if span is None or failed.get(Source.METRICS, 0.0) < LEAST_SECONDS:
        return []
    told = ", ".join(f"{source.value} for {seconds(held)}" for source, held in failed.items() if held)
    evidence = [f"Could not be read: {told}, {lasting(*span, review)}."]
    ruled_out, requests = [], _finished(seen, down)
    if requests:
        evidence.append(f"{count(requests)} requests were finished in it, by the request log.")
        ruled_out.append("an engine that is down: it went on serving")
    if all(there[down].all() for there in seen.presence.values()):
        ruled_out.append("a sidecar that is down: it was read all along")
    return [
        Finding(
            id="sidecar.blind",
            line=SIDECAR_LINE,
            cause=Cause.SIDECAR_BLIND,
            title="The sidecar could not read its engine",
            evidence=tuple(evidence),
            ruled_out=tuple(ruled_out),
            start=span[0],
            end=span[1],
        )
    ]


def _finished(seen: Seen, held: Bools) -> float:
    rates = list(seen.review.traffic.requests.values())
    return sum(float(np.nansum(rate[held])) for rate in rates) * seen.review.step


def _holes(seen: Seen) -> list[Finding]:
    """Holes between two recorded points; what lies before the first or after the last is no incident."""
    review, recorded = seen.review, np.flatnonzero(seen.recorded())
    if not len(recorded):
        return []
    first, last = review.axis.times[recorded[0]], review.axis.times[recorded[-1]]
    holes = [
        gap
        for gap in review.gaps
        if not gap.replica
        and first < gap.start
        and gap.end < last
        and gap.end - gap.start >= LEAST_GAP_LOOKS * review.step
    ]
    if not holes:
        return []
    whole = sum(gap.end - gap.start + review.step for gap in holes)
    return [
        Finding(
            id="sidecar.unrecorded",
            line=SIDECAR_LINE,
            cause=Cause.SIDECAR_BLIND,
            title=f"Nothing is known of {seconds(whole)}",
            evidence=tuple(f"Nothing was recorded {lasting(gap.start, gap.end, review)}." for gap in holes),
            ruled_out=(),
            start=holes[0].start,
            end=holes[-1].end,
        )
    ]
