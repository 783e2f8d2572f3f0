"""The staging line's figures from the latest start, and the device memory that it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specbudget.catalog.sets import StartKind
from specbudget.domain.device_memory import DeviceMemory, MemoryPart, split_device_memory
from specbudget.domain.kv_geometry import RecurrentLayer
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.domain.stages import Stage, StageArtifact, StagingMode
from specbudget.domain.start_memory import RankMemory
from specbudget.domain.start_phases import GRAPH_OWNERS
from specbudget.pair.kv import Pair
from specbudget.serve.kv_figures import KvFigures
from specbudget.serve.start_view import StartView

WARM_MARGIN = 1.2
"""A load faster than the stated storage bandwidth by this factor was served by the page cache."""

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsRun:
    """How the artifacts were staged: words for labels, `unknown` where nothing tells."""

    mode: str
    order: str
    warmup: str


def as_run(view: StartView | None, facts: EngineFacts) -> AsRun | None:
    """From the start's log, else from what the engine says of its arguments; None where neither says anything."""
    start = None if view is None else view.start
    mode = None if start is None else start.mode
    if mode is None and facts.flags.startup_weight_load_mode == StagingMode.OVERLAP:
        mode = StagingMode.OVERLAP
    if mode is None and facts.prefetches is not None:
        mode = StagingMode.PREFETCH if facts.prefetches else StagingMode.SERIAL
    order = "" if start is None else ",".join(start.order)
    warmed = None if start is None else start.warm_up
    if warmed is None and facts.skips_warmup is not None:
        warmed = not facts.skips_warmup
    if mode is None and not order and warmed is None:
        return None
    words = {True: "done", False: "skipped", None: UNKNOWN}
    return AsRun(mode=mode or UNKNOWN, order=order or UNKNOWN, warmup=words[warmed])


def cold_start_seconds(view: StartView | None) -> float | None:
    """The latest start's cold start, or what it has taken so far; None where no start is known."""
    if view is None:
        return None
    return view.start.cold_start_seconds if view.start.cold_start_seconds is not None else view.running_seconds


def start_kind(view: StartView, disk_bytes: int | None, bandwidth: int | None) -> StartKind:
    """Whether the page cache held the target: warm when it loaded faster than storage can; cold is never guessed."""
    load = view.start.stage(Stage.LOAD, StageArtifact.TARGET)
    seconds = None if load is None else load.seconds
    if disk_bytes is None or bandwidth is None or not seconds:
        return StartKind.UNKNOWN
    return StartKind.WARM if disk_bytes / seconds > WARM_MARGIN * bandwidth else StartKind.UNKNOWN


def device_memory(
    pair: Pair,
    ranks: Mapping[str, RankReading],
    logged: Mapping[str, RankMemory],
    figures: KvFigures,
    drafter_weights: int | None,
) -> dict[str, DeviceMemory]:
    """The split of each rank's fullest device at engine start.

    Exact figures of metrics and checkpoints come before the log's, which are rounded to hundredths of a GiB.
    """
    has_drafter = pair.algorithm is not None
    geometry = pair.target.geometry
    recurrent = geometry is not None and any(isinstance(layer, RecurrentLayer) for layer in geometry.layers)
    return {
        rank: _split(
            pair.budget.engine.gpu_memory,
            reading,
            logged.get(rank, RankMemory()),
            drafter_kv=pool.capacity_bytes if (pool := figures.drafter_pools.get(rank)) is not None else None,
            drafter_weights=drafter_weights,
            has_drafter=has_drafter,
            recurrent=recurrent or geometry is None,
        )
        for rank, reading in ranks.items()
    }


def _split(
    total: int | None,
    reading: RankReading,
    log: RankMemory,
    *,
    drafter_kv: float | None,
    drafter_weights: float | None,
    has_drafter: bool,
    recurrent: bool,
) -> DeviceMemory:
    graphs = {owner: _graphs(reading, owner) for owner in (StageArtifact.TARGET, StageArtifact.DRAFTER)}
    parts = {
        MemoryPart.TARGET_WEIGHTS: _first(reading.target_weight_bytes, log.target_weights),
        MemoryPart.DRAFTER_WEIGHTS: _first(drafter_weights, log.drafter_weights),
        MemoryPart.TARGET_KV: _first(reading.target_kv_bytes, log.target_kv),
        MemoryPart.DRAFTER_KV: _first(drafter_kv, log.drafter_kv),
        MemoryPart.TARGET_STATE: log.target_state,
        MemoryPart.VERIFY_STATE: log.verify_state,
        MemoryPart.TARGET_GRAPHS: _first(graphs[StageArtifact.TARGET], log.target_graphs),
        MemoryPart.DRAFTER_GRAPHS: _first(graphs[StageArtifact.DRAFTER], log.drafter_graphs),
        MemoryPart.FREE: _first(reading.free_bytes, log.free),
    }
    absent: set[MemoryPart] = set()
    if not has_drafter:
        absent |= {MemoryPart.DRAFTER_WEIGHTS, MemoryPart.DRAFTER_KV, MemoryPart.DRAFTER_GRAPHS}
    if not recurrent:
        absent |= {MemoryPart.TARGET_STATE, MemoryPart.VERIFY_STATE}
    elif log.target_state is not None and log.verify_state is None:
        # the line that tells of the state would tell of its copies
        absent.add(MemoryPart.VERIFY_STATE)
    whole = {part: None if size is None else round(size) for part, size in parts.items()}
    return split_device_memory(total_bytes=total, parts_bytes=whole, not_applicable=absent)


def _graphs(reading: RankReading, owner: StageArtifact) -> float | None:
    own = [size for phase, size in reading.graph_bytes.items() if GRAPH_OWNERS.get(phase) is owner]
    return sum(own) if own else None


def _first(value: float | None, otherwise: float | None) -> float | None:
    return otherwise if value is None else value
