"""Device memory by use, pool use, and what the drafter's KV costs the target."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog.memory_names import PART_NAMES
from specbudget.catalog.sets import Artifact
from specbudget.domain.device_memory import MemoryPart
from specbudget.serve.page.words import percent
from specbudget.serve.status_model import MemoryStatus, ModelStatus, Status
from specbudget.words import count, size


@dataclass(frozen=True, slots=True, kw_only=True)
class PartBar:
    """One use of memory: place and width in per cent of the bar."""

    id: str
    name: str
    size: str
    share: str
    left: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBar:
    """One rank's fullest device. `missing` names what nobody tells, `rest` what follows from that."""

    rank: str
    total: str
    parts: tuple[PartBar, ...]
    words: str
    missing: tuple[str, ...]
    has_total: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolBar:
    """How full the pool of one rank is; both models' pools have the same slots."""

    rank: str
    words: str
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the drafter's KV costs: the sentence, and how a token's bytes divide; or why that is not known."""

    share: str
    target_width: float
    target_bytes: str
    drafter_bytes: str
    details: tuple[str, ...]
    why: str


def rank_bars(memory: list[MemoryStatus]) -> tuple[RankBar, ...]:
    """One bar per rank; the known parts fill it where the total is not known."""
    return tuple(_rank_bar(rank) for rank in memory if rank.parts)


def _rank_bar(memory: MemoryStatus) -> RankBar:
    whole = memory.total_bytes or sum(memory.parts.values()) or 1
    bars, left = [], 0.0
    for part in MemoryPart:
        bytes_ = memory.parts.get(part)
        if bytes_ is None:
            continue
        width = bytes_ / whole * 100
        bars.append(
            PartBar(
                id=part,
                name=PART_NAMES[part],
                size=size(bytes_),
                share=percent(bytes_ / whole),
                left=round(left, 3),
                width=round(width, 3),
            )
        )
        left += width
    total = "total not known" if memory.total_bytes is None else size(memory.total_bytes)
    return RankBar(
        rank=memory.rank,
        total=total,
        parts=tuple(bars),
        words=f"Rank {memory.rank}, {total}: " + ", ".join(f"{bar.name} {bar.size}" for bar in bars),
        missing=tuple(PART_NAMES[MemoryPart(part)] for part in memory.missing),
        has_total=memory.total_bytes is not None,
    )


def pool_bars(status: Status) -> tuple[PoolBar, ...]:
    """The target's pool of each rank that tells how full it is."""
    return tuple(
        PoolBar(
            rank=pool.rank,
            words=f"{count(pool.used_tokens)} of {count(pool.capacity_tokens)} tokens, "
            f"{percent(pool.used_tokens / pool.capacity_tokens)}",
            width=round(min(1.0, pool.used_tokens / pool.capacity_tokens) * 100, 1),
        )
        for pool in status.kv.pools
        if pool.artifact == Artifact.TARGET and pool.used_tokens is not None and pool.capacity_tokens
    )


def cost(status: Status) -> Cost:
    """The sentence that the product exists to say, for this pair."""
    share, models = status.kv.drafter_share, {model.artifact: model for model in status.models}
    target, drafter = models[Artifact.TARGET].token_bytes, models[Artifact.DRAFTER].token_bytes
    details = []
    if target is not None and drafter is not None:
        details.append(
            f"A token costs {target:,} B of KV for the target and {drafter:,} B for the drafter, on each device."
        )
    details.extend(_cost_in_tokens(status))
    return Cost(
        share="" if share is None else percent(share),
        target_width=0.0 if share is None else round((1 - share) * 100, 2),
        target_bytes=_token(models[Artifact.TARGET]),
        drafter_bytes=_token(models[Artifact.DRAFTER]),
        details=tuple(details),
        why=status.kv.why,
    )


def _cost_in_tokens(status: Status) -> list[str]:
    """Of the rank that pays most."""
    if not status.kv.cost_tokens:
        return []
    rank, tokens = max(status.kv.cost_tokens.items(), key=lambda item: item[1])
    holds = next((p.capacity_tokens for p in status.kv.pools if p.artifact == Artifact.TARGET and p.rank == rank), None)
    now = "" if holds is None else f" than the {holds:,.0f} that it holds"
    several = f" on rank {rank}" if len(status.kv.cost_tokens) > 1 else ""
    return [f"Without the drafter the target's pool would hold {tokens:,} tokens more{now}{several}."]


def _token(model: ModelStatus) -> str:
    return "" if model.token_bytes is None else f"{model.token_bytes:,} B"
