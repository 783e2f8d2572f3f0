"""Was the KV memory enough: pressure and what made it, a pool that shrank, the drafter's part of the room."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from specbudget.catalog.alerts.memory import KEPT_CAPACITY
from specbudget.domain.acceptance import Bools, Floats
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.findings.explanations import fullest
from specbudget.review.findings.phrases import highest, lasting, middle, moment, stretch
from specbudget.review.model import Cause, Finding, MemoryTrack
from specbudget.review.seen import Seen
from specbudget.words import count, seconds, size

DEFAULT_HIGH_WATER = 0.9
QUEUE_GREW = 1.5
"""A queue that is so many times as long in the second half as in the first has grown."""
LEAST_QUEUE = 5.0
MOVED = 64 << 20
"""Bytes by which a part of the memory must differ to be worth a word."""


def find(seen: Seen) -> list[Finding]:
    """Shrunken pools and pressure; each once for the service."""
    return [*(_shrank(seen) or _shrank_at_start(seen)), *_pressure(seen)]


def _above(memory: MemoryTrack) -> Bools | None:
    """Where the fuller of a rank's pools is above the budget's mark."""
    shares = []
    for pool in (memory.target, memory.drafter):
        if pool.used_tokens is not None and pool.capacity_tokens is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                shares.append(pool.used_tokens / pool.capacity_tokens)
    if not shares:
        return None
    mark = memory.high_water if memory.high_water is not None else np.full(len(shares[0]), np.nan)
    above: Bools = np.fmax.reduce(np.stack(shares), axis=0) > np.where(np.isnan(mark), DEFAULT_HIGH_WATER, mark)
    return above


def _pressure(seen: Seen) -> list[Finding]:
    review = seen.review
    above = np.zeros(review.axis.count, dtype=np.bool_)
    for memory in review.memory:
        own = _above(memory)
        above |= own if own is not None else False
    lost = review.traffic.retractions
    retracted = 0.0 if lost is None else float(np.nansum(lost))
    if not above.any() or not (retracted > 0 or _queue_grew(review.traffic.queued, above)):
        return []
    held: Bools = above | (np.nan_to_num(lost) > 0 if lost is not None else False)
    span = stretch(held, review)
    assert span is not None
    part = fullest(seen, held)
    evidence = [
        f"The fuller KV pool was {part or 0.0:.0%} used at most, and above its mark for "
        f"{seconds(float(above.sum()) * review.step)}, {lasting(*span, review)}.",
        f"{count(retracted)} requests lost their KV to others and had to start again.",
    ]
    queue = highest(review.traffic.queued)
    if queue:
        evidence.append(f"Up to {queue:.0f} requests were waiting.")
    evidence += _per_request(seen, held)
    found = [
        Finding(
            id="kv.pressure",
            line="kv",
            cause=Cause.KV_PRESSURE,
            title=f"The KV pools were too small for the traffic: {count(retracted)} requests were retracted",
            evidence=tuple(evidence),
            ruled_out=tuple(_other_than_traffic(seen)),
            start=span[0],
            end=span[1],
        )
    ]
    return [*found, *_drafter_takes_room(seen, held, span)]


def _queue_grew(queued: Floats | None, held: Bools) -> bool:
    if queued is None:
        return False
    places = np.flatnonzero(held & ~np.isnan(queued))
    if len(places) < 4:
        return False
    early, late = np.array_split(queued[places], 2)
    return bool(late.mean() >= LEAST_QUEUE and late.mean() > QUEUE_GREW * max(1.0, float(early.mean())))


def _waiting_tokens(seen: Seen, held: Bools) -> float:
    """What the longest queue would have held, had each of its requests held as much as one that ran."""
    queued, running = highest_of(seen.review.traffic.queued, held), seen.review.traffic.running
    used = [memory.target.used_tokens for memory in seen.review.memory if memory.target.used_tokens is not None]
    if queued is None or running is None or not used:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.sum(used, axis=0) / np.where(running > 0, running, np.nan)
    return queued * (middle(each, held) or 0.0)


def highest_of(track: Floats | None, held: Bools) -> float | None:
    """The highest known value where something holds."""
    return None if track is None else highest(track[held])


def _per_request(seen: Seen, held: Bools) -> list[str]:
    """How many tokens a running request held, and how many ran: which of the two filled the pool."""
    running = seen.review.traffic.running
    used = [memory.target.used_tokens for memory in seen.review.memory if memory.target.used_tokens is not None]
    if running is None or not used:
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.sum(used, axis=0) / np.where(running > 0, running, np.nan)
    inside, outside = middle(each, held), middle(each, ~held)
    ran, before = middle(running, held), middle(running, ~held)
    if inside is None or ran is None:
        return []
    earlier = "" if outside is None or before is None else f"; otherwise {before:.0f} with {count(outside)} each"
    return [f"{ran:.0f} requests ran, with {count(inside)} tokens of KV each{earlier}."]


def _other_than_traffic(seen: Seen) -> list[str]:
    told = []
    capacities = [m.target.capacity_tokens for m in seen.review.memory if m.target.capacity_tokens is not None]
    known = [values[~np.isnan(values)] for values in capacities]
    if known and all(len(values) for values in known):
        steady = all(values.min() >= KEPT_CAPACITY * values.max() for values in known)
        if steady:
            told.append(f"a smaller pool: the target's kept its {count(float(known[0][-1]))} tokens")
    track = seen.review.acceptance.request_length
    length = middle(track)
    target = middle(seen.review.acceptance.target_length)
    if length is not None and target is not None and length >= target:
        told.append(f"a low acceptance length, which would keep requests longer: it was {length:.2f}")
    if seen.started and not any(start.started_at > seen.review.axis.start for start in seen.review.starts):
        told.append("an engine restart: none in the stretch")
    return told


def _drafter_takes_room(seen: Seen, held: Bools, span: tuple[float, float]) -> list[Finding]:
    """Whether what ran would have fitted without the drafter's KV."""
    for memory in seen.review.memory:
        cost, capacity = middle(memory.cost_tokens, held), middle(memory.target.capacity_tokens, held)
        used = highest(None if memory.target.used_tokens is None else memory.target.used_tokens[held])
        if not cost or capacity is None or used is None:
            continue
        share = cost / (capacity + cost)
        own, need = (
            middle(memory.drafter.capacity_bytes, held),
            [middle(track, held) for track in memory.drafter.need_bytes.values()],
        )
        needs = [value for value in need if value is not None]
        evidence = [
            f"The target's pool holds {count(capacity)} tokens; without the drafter it would hold {count(cost)} more: "
            f"the drafter's KV and weights take {share:.1%} of the token budget.",
            f"At the peak {count(used)} tokens were in use.",
        ]
        if own is not None and needs:
            evidence.append(f"The engine gave the drafter {size(own)}; it needs {size(max(needs))} at most.")
        wanted = used + _waiting_tokens(seen, held)
        fits = wanted < DEFAULT_HIGH_WATER * (capacity + cost)
        asked = f"what ran and waited, about {count(wanted)} tokens"
        return [
            Finding(
                id="kv.drafter_crowds_out",
                line="kv",
                cause=Cause.DRAFTER_KV,
                title=f"The drafter took {share:.1%} of the token budget of a pool that was too small",
                evidence=(
                    *evidence,
                    f"Without the drafter {asked}, would {'fit' if fits else 'still not fit'} into "
                    f"{count(capacity + cost)}.",
                ),
                ruled_out=(f"too little memory for the target alone: {asked}, would fit without the drafter",)
                if fits
                else (),
                start=span[0],
                end=span[1],
            )
        ]
    return []


def _shrank(seen: Seen) -> list[Finding]:
    review, times = seen.review, seen.review.axis.times
    for memory in review.memory:
        track = memory.target.capacity_tokens
        if track is None:
            continue
        known = np.flatnonzero(~np.isnan(track))
        values = track[known]
        best = np.maximum.accumulate(values) if len(values) else values
        smaller = np.flatnonzero(values < KEPT_CAPACITY * best)
        if not len(smaller):
            continue
        place = int(smaller[0])
        at, old, new = float(times[known[place]]), float(best[place]), float(values[place])
        before: Bools = times < at
        after: Bools = times >= at
        lost = float(times[known[-1]])
        end = lost if values[-1] < KEPT_CAPACITY * best[-1] else float(times[known[smaller[-1]]])
        restarted = [s for s in review.starts if s.basis is not None and s.started_at <= at + review.step]
        evidence = [
            f"The target's pool went from {count(old)} to {count(new)} tokens ({new / old - 1:+.0%}) "
            f"at {moment(at, review)}.",
            *_moved_parts(memory, before, after),
        ]
        if restarted:
            evidence.append(f"The engine had started at {moment(restarted[-1].started_at, review)}.")
        return [
            Finding(
                id="kv.capacity_shrank",
                line="kv",
                cause=Cause.CAPACITY_SHRANK,
                title=f"The engine came up with a smaller KV pool: {count(old)} → {count(new)} tokens",
                evidence=tuple(evidence),
                ruled_out=tuple(_other_than_shrinking(seen, memory, before, after)),
                start=at,
                end=end,
            )
        ]
    return []


def _shrank_at_start(seen: Seen) -> list[Finding]:
    """The same told by two starts, where the pool of the first was never read or only a log tells of it."""
    review = seen.review
    known = [start for start in review.starts if start.target_tokens is not None]
    for before, after in pairwise(known):
        old, new = before.target_tokens or 0.0, after.target_tokens or 0.0
        if new >= KEPT_CAPACITY * old or (before.replica and after.replica and before.replica != after.replica):
            continue
        return [
            Finding(
                id="kv.capacity_shrank",
                line="kv",
                cause=Cause.CAPACITY_SHRANK,
                title=f"The engine came up with a smaller KV pool: {count(old)} → {count(new)} tokens",
                evidence=(
                    f"The start at {moment(before.started_at, review)} made a target's pool of {count(old)} tokens, "
                    f"the one at {moment(after.started_at, review)} one of {count(new)} ({new / old - 1:+.0%}).",
                    f"Told by: {before.seen_from}, {after.seen_from}.",
                ),
                ruled_out=tuple(_other_pairs(seen)),
                start=after.started_at,
                end=review.axis.end,
            )
        ]
    return []


def _other_pairs(seen: Seen) -> list[str]:
    told = []
    for artifact, held in seen.held.items():
        known = list(dict.fromkeys(one for one in held if one is not None))
        if len(known) == 1:
            told.append(f"another {artifact}: its checkpoint is {known[0][:8]} before and after")
    return told


def _moved_parts(memory: MemoryTrack, before: Bools, after: Bools) -> list[str]:
    """Parts of the device's memory that are not what they were."""
    told = []
    for part, track in memory.device.items():
        old, new = middle(track, before), middle(track, after)
        if old is not None and new is not None and abs(new - old) >= MOVED:
            told.append(f"{part.value.replace('_', ' ')} {size(old)} → {size(new)}")
    return [f"Of one device: {', '.join(told)}."] if told else []


def _other_than_shrinking(seen: Seen, memory: MemoryTrack, before: Bools, after: Bools) -> list[str]:
    told = []
    for part in (MemoryPart.TARGET_WEIGHTS, MemoryPart.DRAFTER_WEIGHTS):
        old, new = middle(memory.device.get(part), before), middle(memory.device.get(part), after)
        if old is not None and new is not None and abs(new - old) < MOVED:
            told.append(f"larger weights: {part.value.replace('_', ' ')} stayed {size(new)}")
    told += _other_pairs(seen)
    used = fullest(seen, after)
    if used is not None:
        told.append(f"traffic: the fuller pool is {used:.0%} used at most")
    return told
