"""Made-up stretches for findings: a few numbers along one axis, everything else unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from specbudget.catalog.sets import Artifact
from specbudget.domain.axis import Axis
from specbudget.review.model import AcceptanceTrack, ProfileTrack, Review, TrafficTrack
from specbudget.review.seen import Seen

START = 1_796_095_740.0


def made(
    *,
    lengths: Mapping[str, list[float]],
    steps: Mapping[str, list[float]],
    break_even: list[float] | None = None,
    running: list[float] | None = None,
    target: float | None = None,
    fingerprints: Mapping[Artifact, list[str]] | None = None,
    step: float = 60.0,
) -> Seen:
    """What is seen of profiles with a length and verify steps at each point."""
    count = len(next(iter(lengths.values())))
    profiles = tuple(
        ProfileTrack(
            name=name,
            steps=np.array(steps[name]),
            accepted=np.array(steps[name]) * (np.array(own) - 1.0),
            length=np.array(own),
        )
        for name, own in lengths.items()
    )
    whole, accepted = sum(p.steps for p in profiles), sum(p.accepted for p in profiles)
    axis = Axis(start=START, step=step, count=count)
    review = Review(
        service="chat",
        start=axis.start,
        end=axis.end,
        axis=axis,
        sources=(),
        acceptance=AcceptanceTrack(
            request_length=1.0 + accepted / whole,
            steps=whole,
            accepted=accepted,
            profiles=profiles,
            target_length=None if target is None else np.full(count, target),
            break_even=None if break_even is None else np.array(break_even),
        ),
        traffic=TrafficTrack(running=None if running is None else np.array(running)),
    )
    seen = Seen(review=review, presence={"": np.ones(count, dtype=np.bool_)})
    if fingerprints is not None:
        seen = replace(seen, held={artifact: tuple(held) for artifact, held in fingerprints.items()})
    return seen
