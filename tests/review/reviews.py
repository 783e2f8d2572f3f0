"""A small review that has something in every field, for tests of what is made from a review."""

from __future__ import annotations

import numpy as np

from specbudget.catalog.sets import NeedBasis, StageArtifact, StartBasis, StartKind
from specbudget.domain.axis import Axis
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.model import (
    AcceptanceTrack,
    Cause,
    EngineStart,
    Finding,
    FiredAlert,
    Gap,
    Mark,
    MarkKind,
    MemoryTrack,
    Place,
    PoolTrack,
    ProfileTrack,
    Review,
    ReviewSource,
    StartStage,
    TrafficTrack,
)

GIB = float(1 << 30)
START = 1_796_095_740.0


def sample_review(points: int = 40) -> Review:
    """A drop of the length in the middle, with a gap of five points near the end."""
    axis = Axis(start=START, step=15.0, count=points)
    along = np.arange(points, dtype=np.float64)
    unknown = (along >= points - 8) & (along < points - 3)

    def track(values: object) -> np.ndarray:
        whole = np.broadcast_to(np.asarray(values, dtype=np.float64), (points,)).copy()
        whole[unknown] = np.nan
        return whole

    length = track(np.where(along < points // 2, 4.6, 1.9))
    steps = track(1500.0 * 15)
    accepted = steps * (length - 1)
    drop = float(axis.times[points // 2])
    target_kv, drafter_kv = 16.9 * GIB, 42.9 * GIB
    memory = MemoryTrack(
        place=Place(replica="replica-0:9877", rank="0"),
        device={
            MemoryPart.TARGET_WEIGHTS: track(66.2 * GIB),
            MemoryPart.DRAFTER_WEIGHTS: track(0.9 * GIB),
            MemoryPart.TARGET_KV: track(target_kv),
            MemoryPart.DRAFTER_KV: track(drafter_kv),
            MemoryPart.FREE: track(26.0 * GIB),
        },
        target=PoolTrack(
            capacity_bytes=track(target_kv),
            used_bytes=track(0.1 * target_kv + along * 1e7),
            resident_bytes=track(0.4 * target_kv),
            capacity_tokens=track(2_250_000),
            used_tokens=track(220_000 + along * 1000),
            need_bytes={NeedBasis.PLANNED: track(0.6 * target_kv)},
        ),
        drafter=PoolTrack(
            capacity_bytes=track(drafter_kv),
            used_bytes=track(0.1 * drafter_kv),
            resident_bytes=None,
            capacity_tokens=track(2_250_000),
            used_tokens=track(220_000),
            need_bytes={NeedBasis.BLOCK_FLOOR: track(1e7), NeedBasis.PLANNED: track(0.2 * drafter_kv)},
        ),
        cost_tokens=track(5_700_000),
        high_water=track(0.9),
        retractions=track(0.0),
    )
    return Review(
        service="ling-flash-chat",
        start=START,
        end=axis.end,
        axis=axis,
        sources=(ReviewSource(kind="prometheus", place="http://127.0.0.1:9090", told="61 series, every 15 s"),),
        memory=(memory,),
        acceptance=AcceptanceTrack(
            request_length=length,
            batch_length=length + 0.05,
            steps=steps,
            accepted=accepted,
            target_length=track(2.6),
            objective=track(0.95),
            break_even=track(2.1 + along * 0.005),
            expected=track(4.6),
            window=track(9),
            positions={place: (length - 1) / 8 * (0.9**place) for place in range(1, 9)},
            profiles=(
                ProfileTrack(
                    name="default", steps=steps, accepted=accepted, length=length, good=steps * 0.01, bad=steps * 0
                ),
            ),
            bad_share=track(np.where(along < points // 2, 0.01, 0.97)),
            budget_spent=track(along * 0.4),
        ),
        traffic=TrafficTrack(
            running=track(20.0),
            queued=track(0.0),
            tokens_per_second=track(5000.0),
            requests={"good": track(20.0), "bad": track(1.0), "few_tokens": track(0.2)},
            retractions=track(0.0),
        ),
        starts=(
            EngineStart(
                replica="replica-0:9877",
                started_at=START - 20,
                basis=StartBasis.LAUNCH,
                stages=(
                    StartStage(artifact=StageArtifact.TARGET, stage="load", offset=0.3, seconds=0.8),
                    StartStage(artifact=StageArtifact.DRAFTER, stage="load", offset=1.1, seconds=1.2),
                    StartStage(artifact=StageArtifact.BOTH, stage="warmup", offset=2.9, seconds=None),
                ),
                seconds=3.8,
                kind=StartKind.UNKNOWN,
                budget_seconds=6.0,
                outcome="ok",
                mode="prefetch",
                order="target,drafter",
                warmup="done",
                overlap_ratio=0.0,
            ),
        ),
        alerts=(
            FiredAlert(
                name="SpecbudgetAcceptanceBurnFast",
                severity="page",
                line="acceptance",
                start=drop + 60,
                end=axis.end,
                labels={"sli": "request"},
            ),
        ),
        marks=(
            Mark(at=START - 20, kind=MarkKind.ENGINE_START, text="the engine started", replica="replica-0:9877"),
            Mark(at=START, kind=MarkKind.CONFIG, text="a budget was loaded"),
        ),
        gaps=(
            Gap(start=float(axis.times[points - 8]), end=float(axis.times[points - 4]), reason="nothing was recorded"),
        ),
        findings=(
            Finding(
                id="acceptance.drop",
                line="acceptance",
                cause=Cause.ACCEPTANCE_DROP,
                title="The acceptance length fell from 4.60 to 1.90 and stayed there",
                evidence=("4.60 over 450,000 verify steps before, 1.90 over 285,000 after",),
                ruled_out=("traffic mix: one profile only; it cannot be told",),
                start=drop,
                end=axis.end,
            ),
        ),
    )
