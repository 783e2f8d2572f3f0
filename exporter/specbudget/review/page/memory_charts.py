"""The memory graph: weights and KV of both models against the device, and how full the pools are, by rank."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specbudget.catalog.memory_names import PART_NAMES
from specbudget.catalog.sets import NeedBasis
from specbudget.domain.acceptance import Floats
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.model import MemoryTrack, PoolTrack, Review
from specbudget.review.page.parts import Chart, Line
from specbudget.review.page.thinned import Thinned, known

FIXED = (
    (MemoryPart.TARGET_WEIGHTS, 1),
    (MemoryPart.DRAFTER_WEIGHTS, 2),
    (MemoryPart.TARGET_STATE, 4),
    (MemoryPart.VERIFY_STATE, 4),
    (MemoryPart.TARGET_GRAPHS, 6),
    (MemoryPart.DRAFTER_GRAPHS, 6),
    (MemoryPart.OTHER, 7),
)
"""Parts that stay as they are while the engine runs, from the bottom on; the second of a colour is hatched."""

NEEDS = {
    NeedBasis.BLOCK_FLOOR: "block floor",
    NeedBasis.PLANNED: "need, as planned",
    NeedBasis.LIVE_UPPER: "need, at most now",
}


def memory_charts(review: Review, thin: Thinned) -> Iterator[Chart]:
    """The device of the fullest rank, the fill of all pools, then each rank's pools and the other devices."""
    named = len(review.memory) > 1
    devices = [tuple(_device(track, number, thin, named=named)) for number, track in enumerate(review.memory)]
    fullest = max(range(len(devices)), key=lambda number: _fullest(review.memory[number]), default=None)
    if fullest is not None:
        yield from devices[fullest]
    yield from _fill(review, thin)
    for number, track in enumerate(review.memory):
        if number != fullest:
            yield from devices[number]
        yield from _pools(track, number, thin, named=named)


def _fullest(track: MemoryTrack) -> float:
    ratio = _ratio(track.target)
    return float(np.nanmax(ratio)) if ratio is not None and known(ratio) else -1.0


def place_name(track: MemoryTrack) -> str:
    """The rank, and the replica where there is a name for it."""
    return f"rank {track.place.rank}" + (f" of {track.place.replica}" if track.place.replica else "")


def _fill(review: Review, thin: Thinned) -> Iterator[Chart]:
    lines, marks = [], []
    for place, track in enumerate(review.memory[:4]):
        for model, pool, dash in (("target", track.target, ()), ("drafter", track.drafter, (2, 3))):
            ratio = _ratio(pool)
            if ratio is not None and known(ratio):
                label = f"{model}, {place_name(track)}" if len(review.memory) > 1 else model
                colour = place * 2 + (1 if model == "target" else 2)
                lines.append(Line(f"{model}{place}", label, thin.peak(ratio), colour=colour, dash=dash))
        if track.high_water is not None and known(track.high_water):
            marks.append(track.high_water)
    if marks:
        line = Line("high_water", "high water", thin.mean(marks[0]), colour="limit", dash=(8, 3, 2, 3))
        lines.append(line)
    if lines:
        rest = f" {len(review.memory) - 4} more ranks are shown below." if len(review.memory) > 4 else ""
        yield Chart(
            id="fill",
            title="How full the KV pools are",
            note="Held by running requests, of what the pool can hold. Above high water requests are retracted." + rest,
            format="ratio",
            lines=tuple(lines),
            low=0.0,
        )


def _ratio(pool: PoolTrack) -> Floats | None:
    for used, capacity in (
        (pool.used_tokens, pool.capacity_tokens),
        (pool.used_bytes, pool.capacity_bytes),
    ):
        if used is not None and capacity is not None:
            ratio: Floats = np.full(used.shape, np.nan)
            np.divide(used, capacity, out=ratio, where=capacity > 0)
            return ratio
    return None


def _device(track: MemoryTrack, number: int, thin: Thinned, *, named: bool) -> Iterator[Chart]:
    lines, colours = [], set()
    for part, colour in FIXED:
        values = thin.mean(track.device.get(part))
        if known(values):
            lines.append(Line(part, PART_NAMES[part], values, colour=colour, shape="area", hatch=colour in colours))
            colours.add(colour)
    lines += _kv_areas(MemoryPart.TARGET_KV, track, track.target, 3, thin)
    lines += _kv_areas(MemoryPart.DRAFTER_KV, track, track.drafter, 5, thin)
    if not lines:
        return
    total = _total(track)
    whole = "" if total is not None else " The device's total is not known."
    yield Chart(
        id=f"device-{number}",
        title="Device memory" + (f", {place_name(track)}" if named else ""),
        note="The fullest device of the rank. Weights and pools are taken at start; what is empty in a pool "
        "nothing else can use." + whole,
        format="bytes",
        lines=tuple(lines),
        low=0.0,
        stack=True,
        marked=True,
        rules=() if total is None else (("device", total),),
        height=320,
    )


def _kv_areas(part: MemoryPart, track: MemoryTrack, pool: PoolTrack, colour: int, thin: Thinned) -> list[Line]:
    """A pool as what is held and what is empty; whole where its use is not known."""
    taken = track.device.get(part)
    whole = taken if taken is not None else pool.capacity_bytes
    if not known(whole):
        return []
    assert whole is not None
    held = pool.resident_bytes if known(pool.resident_bytes) else pool.used_bytes
    if held is None or not known(held):
        return [Line(part, PART_NAMES[part], thin.mean(whole), colour=colour, shape="area")]
    within = np.minimum(held, whole)
    filled, allocated = thin.peak(within), thin.mean(whole)
    assert filled is not None
    assert allocated is not None
    what = "held and kept for reuse" if known(pool.resident_bytes) else "held"
    return [
        Line(f"{part}_held", f"{PART_NAMES[part]}, {what}", filled, colour=colour, shape="area"),
        Line(
            f"{part}_empty", f"{PART_NAMES[part]}, empty", allocated - filled, colour=colour, shape="area", hatch=True
        ),
    ]


def _total(track: MemoryTrack) -> float | None:
    """The device's bytes: all parts together, which are known to be all only where the remainder is known too."""
    if MemoryPart.OTHER not in track.device:
        return None
    whole = np.sum(np.vstack(list(track.device.values())), axis=0)
    there = whole[np.isfinite(whole)]
    return float(there[-1]) if there.size else None


def _pools(track: MemoryTrack, number: int, thin: Thinned, *, named: bool) -> Iterator[Chart]:
    lines = []
    for model, pool, colour in (("target", track.target, 1), ("drafter", track.drafter, 2)):
        lines += [
            Line(f"{model}_used", f"{model}, used", thin.peak(pool.used_bytes), colour=colour),
            Line(f"{model}_kept", f"{model}, resident", thin.peak(pool.resident_bytes), colour=colour, dash=(2, 3)),
            Line(f"{model}_pool", f"{model}, allocated", thin.mean(pool.capacity_bytes), colour=colour, dash=(10, 4)),
        ]
        for basis, words in NEEDS.items():
            need = thin.mean(pool.need_bytes.get(basis))
            shown = model == "drafter" and basis is NeedBasis.PLANNED
            line = Line(f"{model}_{basis}", f"{model}, {words}", need, colour=6, dash=(5, 2), shown=shown)
            lines.append(line)
    there = tuple(line for line in lines if known(line.values))
    if there:
        yield Chart(
            id=f"pools-{number}",
            title="KV of both models" + (f", {place_name(track)}" if named else ""),
            note="Per device. Used is held by running requests; resident adds the prefix cache that can be evicted; "
            "need is what the drafter's own layers ask for; allocated is what it got.",
            format="bytes",
            lines=there,
            low=0.0,
        )
