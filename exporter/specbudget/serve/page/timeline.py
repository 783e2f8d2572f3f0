"""The latest start as a timeline: one row per artifact, in seconds from the start of the process."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog.lines import STAGING
from specbudget.domain.stages import StageArtifact, StartBasis
from specbudget.serve.page.words import plain
from specbudget.serve.status_model import StageStatus, StartStatus, Status
from specbudget.words import seconds

NARROW = 7.0
"""Per cent of the width below which a stage's name does not fit into it."""

SLIVER = 0.6
"""Per cent that a stage shows at least: one of no length is there all the same."""

ROW_NAMES = {StageArtifact.TARGET: "target", StageArtifact.DRAFTER: "drafter", StageArtifact.BOTH: "engine"}

BASES = {
    StartBasis.PID_NAMESPACE: "counted from the start of the process",
    StartBasis.LAUNCH: "counted from the launch that the log tells of",
    StartBasis.FIRST_LOG_LINE: "counted from the first line of the log: what came before it is not known",
    StartBasis.OBSERVED: "as the engine measured it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One stage: place and width in per cent of the whole, its name where it fits."""

    stage: str
    words: str
    left: float
    width: float
    fits: bool
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment: ready, first generation, the limit. `late` puts its name on the left of it."""

    name: str
    at: str
    left: float
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one artifact went through."""

    artifact: str
    name: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The rows, the marks, and the head in words."""

    head: str
    basis: str
    rows: tuple[Row, ...]
    marks: tuple[Mark, ...]
    words: str
    whole: str
    facts: tuple[str, ...]


def timeline(status: Status) -> Timeline | None:
    """None where no start was seen."""
    start = status.start
    if start is None:
        return None
    limit = next(
        (b.limit for line in status.lines if line.line == STAGING.id for b in line.budgets if b.limit is not None), None
    )
    placed = [stage for stage in start.stages if stage.offset is not None and stage.seconds is not None]
    moments = [stage for stage in start.stages if stage.offset is not None and stage.seconds is None]
    ends = [(stage.offset or 0.0) + (stage.seconds or 0.0) for stage in (*placed, *moments)]
    whole = max([*ends, *([] if limit is None or not ends else [limit])], default=0.0)
    marks = [_mark(plain(m.stage), m.offset or 0.0, whole) for m in moments if whole > 0]
    if limit is not None and whole > 0:
        marks.append(_mark("limit", limit, whole))
    return Timeline(
        head=_head(start),
        basis="" if start.basis is None else BASES[StartBasis(start.basis)],
        rows=tuple(
            Row(artifact=artifact, name=ROW_NAMES[artifact], blocks=blocks)
            for artifact in StageArtifact
            if whole > 0 and (blocks := tuple(_block(s, whole) for s in placed if s.artifact == artifact))
        ),
        marks=tuple(_merged(marks)),
        words=", ".join(f"{ROW_NAMES[StageArtifact(s.artifact)]} {_words(s)}" for s in placed),
        whole=seconds(whole),
        facts=tuple(_facts(start)),
    )


def _head(start: StartStatus) -> str:
    took = start.cold_start_seconds
    if start.stuck:
        return "Stuck: the log tells nothing new of this start."
    if not start.ready:
        return "Starting" + ("." if took is None else f" for {seconds(took)}.")
    if took is None:
        return "Ready; how long the cold start took is not known."
    return f"Cold start {seconds(took)}, over its budget." if start.over_budget else f"Cold start {seconds(took)}."


def _facts(start: StartStatus) -> list[str]:
    told = []
    if start.mode is not None:
        told.append(f"staging {plain(start.mode)}")
    if start.order is not None and start.order != "unknown":
        told.append(f"order {start.order.replace(',', ', then ')}")
    if start.warmup is not None:
        told.append(f"warm-up {plain(start.warmup)}")
    if start.unexplained_seconds:
        told.append(f"{seconds(start.unexplained_seconds)} in no phase that the engine names")
    if start.attempts > 1:
        told.append(f"attempt {start.attempts} since the last start that came to a generation")
    return told


def _block(stage: StageStatus, whole: float) -> Block:
    left = (stage.offset or 0.0) / whole * 100
    width = max(SLIVER, (stage.seconds or 0.0) / whole * 100)
    return Block(
        stage=plain(stage.stage),
        words=_words(stage),
        left=round(min(left, 100 - SLIVER), 2),
        width=round(min(width, 100 - min(left, 100 - SLIVER)), 2),
        fits=width >= NARROW,
        open=stage.open,
    )


def _words(stage: StageStatus) -> str:
    going = " so far" if stage.open else ""
    return f"{plain(stage.stage)} {seconds(stage.seconds)}{going}, from {seconds(stage.offset)} on"


def _mark(name: str, at: float, whole: float) -> Mark:
    left = at / whole * 100
    return Mark(name=name, at=seconds(at), left=round(min(left, 100.0), 2), late=left > 60)


def _merged(marks: list[Mark]) -> list[Mark]:
    """Moments at the same place share one line and one label."""
    merged: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: mark.left):
        if merged and merged[-1].at == mark.at and abs(merged[-1].left - mark.left) < 0.01:
            last = merged.pop()
            mark = Mark(name=f"{last.name}, {mark.name}", at=mark.at, left=mark.left, late=mark.late)
        merged.append(mark)
    return merged
