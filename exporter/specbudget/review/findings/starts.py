"""How the engine started: stuck, failed, over its budget and where the time went, or again."""

from __future__ import annotations

import numpy as np

from specbudget.catalog.sets import Artifact, Source, StartOutcome
from specbudget.domain.stages import Stage, StageArtifact
from specbudget.review.findings.phrases import middle, moment
from specbudget.review.model import Cause, EngineStart, Finding, Review
from specbudget.review.seen import Seen
from specbudget.words import count, seconds

JUST_BEFORE = 600.0
"""A start that ended so many seconds before the first point still belongs to the story."""
MARKS = (Stage.READY, Stage.FIRST_GENERATION)
"""Moments, and no stages that take time."""
_WORTH_A_WORD = 0.02
"""Of the whole start: a shorter stage is not asked after."""


def find(seen: Seen) -> list[Finding]:
    """Starts that lie in the stretch or just before it."""
    review = seen.review
    near = [s for s in review.starts if s.started_at >= review.axis.start - JUST_BEFORE]
    found = [*_stuck(seen, near), *_failed(seen), *_over_budget(near, review)]
    return [*found, *_restarted(seen, near)]


def stage_words(start: EngineStart) -> list[str]:
    """The stages that take time, the longest first."""
    timed = [s for s in start.stages if s.stage not in MARKS and s.seconds is not None]
    whole = start.seconds or sum(s.seconds or 0.0 for s in timed)
    return [
        f"{_named(s.artifact, s.stage)} {seconds(s.seconds)} ({(s.seconds or 0.0) / whole:.0%})"
        for s in sorted(timed, key=lambda s: -(s.seconds or 0.0))
        if whole
    ]


def _named(artifact: StageArtifact, stage: str) -> str:
    whose = "" if artifact is StageArtifact.BOTH else f" of the {artifact}"
    return f"{stage.replace('_', ' ')}{whose}"


def _stuck(seen: Seen, near: list[EngineStart]) -> list[Finding]:
    review, told = seen.review, seen.started.get(StartOutcome.STUCK)
    if told is None or told.total <= 0:
        return []
    hanging = [s for s in near or review.starts if s.seconds is None and s.stages]
    if not hanging:
        return []
    start = hanging[-1]
    if told.within <= 0 and start not in near:
        return []
    last = max((s for s in start.stages if s.stage not in MARKS), key=lambda s: s.offset, default=None)
    if last is None:
        return []
    done = [
        f"{_named(s.artifact, s.stage)} ended after {seconds(s.seconds)}"
        for s in start.stages
        if s is not last and s.seconds
    ]
    evidence = [
        f"It stood in {_named(last.artifact, last.stage)} for {seconds(last.seconds)} when it was last seen, "
        f"{seconds(last.offset)} after the process began.",
        f"The process started at {moment(start.started_at, review)} and never generated.",
    ]
    ruled_out = [f"a stage before it: {', '.join(done)}"] if done else []
    ups = [track for (_, source), track in seen.up.items() if source is Source.METRICS]
    if ups and all(np.nanmax(track) == 0 for track in ups if not np.isnan(track).all()):
        ruled_out.append("an engine that serves and is not seen: it answers nothing yet")
    failed = seen.started.get(StartOutcome.FAILED)
    if failed is not None and failed.total == 0:
        ruled_out.append("a start that ended with an error: its log tells of none")
    return [
        Finding(
            id="staging.stuck",
            line="staging",
            cause=Cause.STUCK_START,
            title=f"The engine never came up: it hangs in {_named(last.artifact, last.stage)}",
            evidence=tuple(evidence),
            ruled_out=tuple(ruled_out),
            start=max(start.started_at, review.axis.start),
            end=review.axis.end,
        )
    ]


def _failed(seen: Seen) -> list[Finding]:
    told, review = seen.started.get(StartOutcome.FAILED), seen.review
    if told is None or told.within <= 0:
        return []
    return [
        Finding(
            id="staging.failed",
            line="staging",
            cause=Cause.FAILED_START,
            title=f"{count(told.within)} starts of the engine came to nothing",
            evidence=(f"{count(told.within)} starts ended with an error or were killed before they were ready.",),
            ruled_out=(),
            start=review.axis.start,
            end=review.axis.end,
        )
    ]


def _over_budget(near: list[EngineStart], review: Review) -> list[Finding]:
    found = []
    for start in near:
        if start.seconds is None or start.budget_seconds is None or start.seconds <= start.budget_seconds:
            continue
        words = stage_words(start)
        over = start.seconds - start.budget_seconds
        evidence = [
            f"{seconds(start.seconds)} from process start to the first generation, {seconds(over)} over the budget of "
            f"{seconds(start.budget_seconds)}.",
            *([f"The time went into: {', '.join(words[:5])}."] if words else []),
            *([f"Staged {start.mode}, order {start.order}."] if start.mode else []),
        ]
        found.append(
            Finding(
                id="staging.cold_start",
                line="staging",
                cause=Cause.COLD_START,
                title=f"A start took {seconds(start.seconds)} instead of {seconds(start.budget_seconds)}"
                + (f": {words[0]}" if words else ""),
                evidence=tuple(evidence),
                ruled_out=tuple(_other_stages(start)),
                start=start.started_at,
                end=start.started_at + start.seconds,
            )
        )
    return found


def _other_stages(start: EngineStart) -> list[str]:
    """The stages that could not have kept the start over its budget, had they been free."""
    timed = [s for s in start.stages if s.stage not in MARKS and s.seconds is not None]
    over = (start.seconds or 0.0) - (start.budget_seconds or 0.0)
    small = [s for s in timed if _WORTH_A_WORD * (start.seconds or 0.0) <= (s.seconds or 0.0) < over]
    told = [f"{_named(s.artifact, s.stage)}: only {seconds(s.seconds)}, less than what is over" for s in small]
    if start.warmup and any(s.stage == Stage.WARMUP for s in small):
        told.append("waiting for traffic: it never counts")
    return told


def _follows(start: EngineStart, earlier: EngineStart) -> bool:
    """Whether a start came after another one of the same engine; a log does not say which replica it is of."""
    same = start.replica == earlier.replica or not (start.replica and earlier.replica)
    return same and start.started_at > earlier.started_at


def _restarted(seen: Seen, near: list[EngineStart]) -> list[Finding]:
    """Starts that followed an earlier one. The first start of a service is no restart."""
    review = seen.review
    known = [s for s in near if s.basis is not None]
    earlier = [s for s in review.starts if s.basis is not None]
    several = sum(told.total for told in seen.started.values()) > max(1, len(seen.presence))
    again = [s for s in known if any(_follows(s, e) for e in earlier)]
    if not again and several:
        # the start before was never recorded, but the sidecar has counted it
        again = known[-1:]
    if not again:
        return []
    last = again[-1]
    evidence = [
        f"The engine's process started anew at {moment(s.started_at, review)}"
        + (f" and generated after {seconds(s.seconds)}." if s.seconds is not None else ".")
        for s in again
    ]
    length = middle(review.acceptance.request_length, review.axis.times >= last.started_at)
    if length is not None:
        evidence.append(f"Afterwards the acceptance length was {length:.2f}.")
    ruled_out = []
    for memory in review.memory[:1]:
        track = memory.target.capacity_tokens
        if track is not None and not np.isnan(track).all():
            low, high = float(np.nanmin(track)), float(np.nanmax(track))
            made = {s.target_tokens for s in review.starts if s.target_tokens is not None}
            if low == high and len(made) <= 1:
                ruled_out.append(f"a smaller pool: the target's holds {count(high)} tokens all along")
    for artifact in Artifact:
        values = list(dict.fromkeys(one for one in seen.held.get(artifact, ()) if one is not None))
        if len(values) == 1:
            ruled_out.append(f"another {artifact}: its checkpoint is {values[0][:8]} all along")
    return [
        Finding(
            id="staging.engine_restart",
            line="staging",
            cause=Cause.ENGINE_RESTART,
            title="The engine was started anew" + (f" {len(again)} times" if len(again) > 1 else ""),
            evidence=tuple(evidence),
            ruled_out=tuple(ruled_out),
            start=again[0].started_at,
            end=last.started_at + (last.seconds or 0.0),
        )
    ]
