"""What a start-up's log says that each device holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from specbudget.domain.rank_start import Pools, RankStart
from specbudget.domain.stages import StageArtifact


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Bytes on one device, None where the log does not say; the engine prints hundredths of a GiB.

    `target_state` is recurrent state, `verify_state` its copies per step of a verify window. `free_before_load`
    and `free_loaded` are free memory around the loads of both models, `free` what was left after the latest line
    that says so.
    """

    target_weights: float | None = None
    drafter_weights: float | None = None
    target_kv: float | None = None
    drafter_kv: float | None = None
    target_state: float | None = None
    verify_state: float | None = None
    target_graphs: float | None = None
    drafter_graphs: float | None = None
    free: float | None = None
    free_before_load: float | None = None
    free_loaded: float | None = None


_SMALLEST = ("free", "free_before_load", "free_loaded")


def rank_memory(rank: RankStart) -> RankMemory:
    """One rank's figures."""
    pools = rank.settled_pools
    target, drafters = pools[:1], pools[1:]
    return RankMemory(
        target_weights=_sum(load.size_bytes for load in rank.loads if load.role is StageArtifact.TARGET),
        drafter_weights=_sum(load.size_bytes for load in rank.loads if load.role is StageArtifact.DRAFTER),
        target_kv=rank.resized.get(StageArtifact.TARGET, _kv(target)),
        drafter_kv=rank.resized.get(StageArtifact.DRAFTER, _kv(drafters)),
        target_state=_sum(p.state_bytes for p in pools if p.state_bytes is not None),
        verify_state=_sum(p.verify_bytes for p in pools if p.verify_bytes is not None),
        target_graphs=_sum(c.size_bytes for c in rank.captures if c.role is StageArtifact.TARGET),
        drafter_graphs=_sum(c.size_bytes for c in rank.captures if c.role is StageArtifact.DRAFTER),
        free=rank.free_bytes,
        free_before_load=rank.free_before,
        free_loaded=rank.free_loaded,
    )


def by_data_rank(memories: Mapping[str, RankMemory]) -> dict[str, RankMemory]:
    """By data-parallel rank ("0" where there is one) the fullest device: the largest of each part, the least free."""
    groups: dict[str, list[RankMemory]] = {}
    for prefix, memory in memories.items():
        groups.setdefault(data_rank(prefix), []).append(memory)
    return {rank: _fullest(group) for rank, group in groups.items()}


def data_rank(prefix: str) -> str:
    """The data-parallel rank of a line's rank prefix: `DP1 TP0` is of rank 1."""
    of_data = (part.removeprefix("DP") for part in prefix.split() if part.startswith("DP"))
    return next((rank for rank in of_data if rank.isdecimal()), "0")


def _fullest(memories: Sequence[RankMemory]) -> RankMemory:
    largest: dict[str, float | None] = {}
    for part in fields(RankMemory):
        told = [value for memory in memories if (value := getattr(memory, part.name)) is not None]
        largest[part.name] = (min if part.name in _SMALLEST else max)(told, default=None)
    return RankMemory(**largest)


def _kv(pools: Sequence[Pools]) -> float | None:
    return _sum(size for pool in pools for size in pool.kv_bytes.values())


def _sum(sizes: Iterable[float | None]) -> float | None:
    """The sum; None where there is nothing or a part is not known."""
    total, some = 0.0, False
    for size in sizes:
        if size is None:
            return None
        total, some = total + size, True
    return total if some else None
