"""Memory, acceptance and traffic as tracks on the axis."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from specbudget.catalog import series
from specbudget.catalog.kept import BATCH_LENGTH
from specbudget.catalog.lines import KV, Unit
from specbudget.catalog.sets import Artifact, EventVerdict, NeedBasis
from specbudget.domain.acceptance import Floats
from specbudget.domain.device_memory import MemoryPart
from specbudget.review.model import AcceptanceTrack, MemoryTrack, Place, PoolTrack, ProfileTrack, TrafficTrack
from specbudget.review.reading import SeriesReader, extreme, only, replica_of, total

HIGH_WATER = KV.budget("high_water").id


def memory_tracks(reader: SeriesReader) -> tuple[MemoryTrack, ...]:
    """A track for each rank that has a pool or a split of its device."""
    told = (series.KV_POOL_CAPACITY_BYTES, series.KV_POOL_CAPACITY_TOKENS, series.DEVICE_MEMORY_BYTES)
    places = {(replica_of(row), row.labels.get("rank", "0")) for one in told for row in reader.rows(one)}
    return tuple(_memory(reader, replica, rank) for replica, rank in sorted(places))


def _memory(reader: SeriesReader, replica: str, rank: str) -> MemoryTrack:
    def own(wanted: series.SeriesDef, **labels: str) -> Floats | None:
        return only(row for row in reader.rows(wanted, **labels) if replica_of(row) == replica)

    def pool(artifact: Artifact) -> PoolTrack:
        needs = {basis: own(series.KV_NEED_BYTES, artifact=artifact, basis=basis) for basis in NeedBasis}
        return PoolTrack(
            capacity_bytes=own(series.KV_POOL_CAPACITY_BYTES, artifact=artifact, rank=rank),
            used_bytes=own(series.KV_POOL_USED_BYTES, artifact=artifact, rank=rank),
            resident_bytes=own(series.KV_POOL_RESIDENT_BYTES, artifact=artifact, rank=rank),
            capacity_tokens=own(series.KV_POOL_CAPACITY_TOKENS, artifact=artifact, rank=rank),
            used_tokens=own(series.KV_POOL_USED_TOKENS, artifact=artifact, rank=rank),
            need_bytes=MappingProxyType({basis: track for basis, track in needs.items() if track is not None}),
        )

    parts = {part: own(series.DEVICE_MEMORY_BYTES, rank=rank, use=part) for part in MemoryPart}
    retracted = (row for row in reader.rows(series.KV_RETRACTIONS, rank=rank) if replica_of(row) == replica)
    return MemoryTrack(
        place=Place(replica=replica, rank=rank),
        device=MappingProxyType({part: track for part, track in parts.items() if track is not None}),
        target=pool(Artifact.TARGET),
        drafter=pool(Artifact.DRAFTER),
        cost_tokens=own(series.KV_COST_TOKENS, rank=rank),
        high_water=own(series.BUDGET_LIMIT[Unit.RATIO], line=KV.id, budget=HIGH_WATER),
        retractions=reader.grown_sum(retracted),
    )


def acceptance_track(reader: SeriesReader) -> AcceptanceTrack:
    """Acceptance of the service, all replicas and ranks together."""
    steps = reader.grown_sum(reader.rows(series.VERIFY_STEPS))
    accepted = reader.grown_sum(reader.rows(series.ACCEPTED_DRAFTS))
    good, bad = (reader.grown_sum(reader.rows(series.SLO_EVENTS, verdict=verdict)) for verdict in EventVerdict)
    objective = only(reader.rows(series.SLO_OBJECTIVE))
    positions = {}
    if steps is not None:
        for place in sorted({int(row.labels["position"]) for row in reader.rows(series.DRAFT_POSITION_ACCEPTED)}):
            reached = reader.grown_sum(reader.rows(series.DRAFT_POSITION_ACCEPTED, position=str(place)))
            if reached is not None:
                positions[place] = _share(reached, steps)
    return AcceptanceTrack(
        request_length=None if steps is None or accepted is None else _length(steps, accepted),
        batch_length=_mean(reader),
        steps=steps,
        accepted=accepted,
        target_length=_target(reader),
        objective=objective,
        break_even=extreme(row.values for row in reader.rows(series.BREAK_EVEN)),
        expected=only(reader.rows(series.ACCEPTANCE_EXPECTED)),
        window=extreme(row.values for row in reader.rows(series.ACCEPTANCE_WINDOW)),
        positions=MappingProxyType(positions),
        profiles=_profiles(reader),
        bad_share=None if good is None or bad is None else _share(bad, good + bad),
        budget_spent=_budget_spent(good, bad, objective),
    )


def traffic_track(reader: SeriesReader) -> TrafficTrack:
    """What ran, all replicas together."""
    requests = {
        name: track
        for wanted, label, names in (
            (series.SLO_EVENTS, "verdict", tuple(EventVerdict)),
            (series.SLO_EXCLUDED, "reason", series.SETS_OF_SERIES[(series.SLO_EXCLUDED.name, "reason")]),
        )
        for name in map(str, names)
        if (track := reader.per_second(reader.rows(wanted, **{label: name}))) is not None
    }
    return TrafficTrack(
        running=total(row.values for row in reader.rows(series.ENGINE_RUNNING)),
        queued=total(row.values for row in reader.rows(series.ENGINE_QUEUED)),
        tokens_per_second=reader.per_second(reader.rows(series.GENERATED_TOKENS)),
        requests=MappingProxyType(requests),
        retractions=reader.grown_sum(reader.rows(series.KV_RETRACTIONS)),
    )


def _profiles(reader: SeriesReader) -> tuple[ProfileTrack, ...]:
    names = sorted({row.labels.get("profile", "") for row in reader.rows(series.VERIFY_STEPS)})
    found = []
    for name in names:
        steps = reader.grown_sum(reader.rows(series.VERIFY_STEPS, profile=name))
        accepted = reader.grown_sum(reader.rows(series.ACCEPTED_DRAFTS, profile=name))
        if steps is None or accepted is None:
            continue
        found.append(
            ProfileTrack(
                name=name,
                steps=steps,
                accepted=accepted,
                length=_length(steps, accepted),
                good=reader.grown_sum(reader.rows(series.SLO_EVENTS, profile=name, verdict=EventVerdict.GOOD)),
                bad=reader.grown_sum(reader.rows(series.SLO_EVENTS, profile=name, verdict=EventVerdict.BAD)),
                target_length=only(reader.rows(series.ACCEPTANCE_TARGET, profile=name)),
            )
        )
    return tuple(found)


def _target(reader: SeriesReader) -> Floats | None:
    """The default profile's target; where there is none, the lowest of all."""
    own = only(reader.rows(series.ACCEPTANCE_TARGET, profile="default"))
    return (
        own if own is not None else extreme((row.values for row in reader.rows(series.ACCEPTANCE_TARGET)), lowest=True)
    )


def _mean(reader: SeriesReader) -> Floats | None:
    """The batch length over replicas; replicas are alike, and batch reports have no steps to weigh them by."""
    rows = reader.rows(BATCH_LENGTH.series)
    if not rows:
        return None
    whole = np.stack([row.values for row in rows])
    known = ~np.isnan(whole)
    count = known.sum(axis=0)
    found: Floats = np.where(count > 0, np.where(known, whole, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
    return found


def _length(steps: Floats, accepted: Floats) -> Floats:
    found: Floats = np.where(steps > 0, 1.0 + accepted / np.where(steps > 0, steps, 1.0), np.nan)
    return found


def _share(part: Floats, whole: Floats) -> Floats:
    found: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)
    return found


def _budget_spent(good: Floats | None, bad: Floats | None, objective: Floats | None) -> Floats | None:
    if good is None or bad is None or objective is None:
        return None
    bad_so_far, all_so_far = np.nancumsum(bad), np.nancumsum(good + bad)
    allowed = (1.0 - objective) * all_so_far
    found: Floats = np.where((allowed > 0) & ~np.isnan(bad), bad_so_far / np.where(allowed > 0, allowed, 1.0), np.nan)
    return found
