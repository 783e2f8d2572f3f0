"""Starts as timelines: one row per artifact, in seconds from the start of the process."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog.sets import StageArtifact
from specbudget.review.model import EngineStart, StartStage
from specbudget.words import seconds

MOST_STARTS = 12
"""So many starts are drawn, the latest ones; the table has them all."""

NARROW = 8.0
"""Per cent of the width below which a stage's name does not fit into it."""

SLIVER = 0.5
"""Per cent that a stage shows at least."""

ROW_NAMES = {StageArtifact.TARGET: "target", StageArtifact.DRAFTER: "drafter", StageArtifact.BOTH: "engine"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One stage in per cent of the whole, and its words."""

    name: str
    words: str
    left: float
    width: float
    fits: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The stages of one artifact."""

    artifact: str
    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One start. `limit` is where the budget ends, in per cent of the width, None where none is known."""

    start: EngineStart
    head: str
    facts: tuple[str, ...]
    lanes: tuple[Lane, ...]
    limit: float | None
    whole: str


def timelines(starts: tuple[EngineStart, ...]) -> tuple[Timeline, ...]:
    """All on one scale, so that a slow start is seen beside the others."""
    drawn = sorted(starts, key=lambda start: start.started_at)[-MOST_STARTS:]
    whole = max((_extent(start) for start in drawn), default=0.0)
    return tuple(_timeline(start, whole) for start in drawn)


def _extent(start: EngineStart) -> float:
    ends = [stage.offset + (stage.seconds or 0.0) for stage in start.stages]
    return max([*ends, start.seconds or 0.0, start.budget_seconds or 0.0])


def _timeline(start: EngineStart, whole: float) -> Timeline:
    lanes = []
    for artifact, name in ROW_NAMES.items():
        blocks = tuple(_block(stage, start, whole) for stage in start.stages if stage.artifact == artifact)
        if blocks and whole > 0:
            lanes.append(Lane(artifact=artifact, name=name, blocks=blocks))
    limit = start.budget_seconds
    return Timeline(
        start=start,
        head=_head(start),
        facts=tuple(_facts(start)),
        lanes=tuple(lanes),
        limit=None if limit is None or whole <= 0 else round(100 * limit / whole, 2),
        whole=seconds(whole),
    )


def _head(start: EngineStart) -> str:
    if start.seconds is None:
        return "did not come to its first generation" if start.outcome else "no end was seen"
    limit = start.budget_seconds
    against = "" if limit is None else f", budget {seconds(limit)}"
    over = limit is not None and start.seconds > limit
    return f"{seconds(start.seconds)} to the first generation{against}{': over budget' if over else ''}"


def _facts(start: EngineStart) -> list[str]:
    told = []
    for name, value in (("staging", start.mode), ("order", start.order), ("warm-up", start.warmup)):
        if value and value != "unknown":
            told.append(f"{name} {value.replace(',', ', then ').replace('_', ' ')}")
    if start.overlap_ratio is not None:
        told.append(f"overlap of the loads {start.overlap_ratio:.0%}")
    told.append(f"read from {start.seen_from}")
    return told


def _block(stage: StartStage, start: EngineStart, whole: float) -> Block:
    took = stage.seconds
    length = took if took is not None else max(0.0, (start.seconds or 0.0) - stage.offset)
    name = stage.stage.replace("_", " ")
    left = min(100 - SLIVER, 100 * stage.offset / whole) if whole > 0 else 0.0
    width = max(SLIVER, min(100 - left, 100 * length / whole)) if whole > 0 else 0.0
    lasted = "no end seen" if took is None else seconds(took)
    return Block(
        name=name,
        words=f"{name} {lasted}, from {seconds(stage.offset)} on",
        left=round(left, 2),
        width=round(width, 2),
        fits=width >= NARROW,
        open=took is None,
    )
