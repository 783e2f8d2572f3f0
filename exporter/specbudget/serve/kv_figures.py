"""The KV line's figures: the two pools of each rank, what the drafter needs, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specbudget.domain.drafter import DraftKv
from specbudget.domain.drafter_cost import cost_in_target_tokens
from specbudget.domain.kv_geometry import (
    ModelGeometry,
    RecurrentLayer,
    bytes_per_token,
    floor_to_page,
    pool_bytes,
)
from specbudget.domain.observation import RankReading
from specbudget.pair.kv import Pair

DEFAULT_CONCURRENCY = 48
"""SGLang sets max_running_requests to 48 when it is not given and speculation is on."""

MAMBA_FULL_MEMORY_RATIO = 0.9
"""SGLang's --mamba-full-memory-ratio unless said otherwise: recurrent state to attention KV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFigures:
    """One model's pool on one rank, per device."""

    capacity_tokens: float | None = None
    used_tokens: float | None = None
    capacity_bytes: float | None = None
    used_bytes: float | None = None
    resident_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KvFigures:
    """All that the KV line shows. Pools by rank; needs by basis, per device, of the fullest rank.

    `charged_token_bytes` is what the engine takes off the KV budget per token for the drafter.
    """

    target_token_bytes: int | None = None
    drafter_token_bytes: int | None = None
    charged_token_bytes: int | None = None
    target_pools: Mapping[str, PoolFigures] = field(default_factory=dict)
    drafter_pools: Mapping[str, PoolFigures] = field(default_factory=dict)
    target_needs: Mapping[str, int] = field(default_factory=dict)
    drafter_needs: Mapping[str, int] = field(default_factory=dict)
    cost_tokens: Mapping[str, int] = field(default_factory=dict)


def kv_figures(pair: Pair, ranks: Mapping[str, RankReading], window: int | None) -> KvFigures:
    """The figures of all ranks that are shown. A figure whose inputs are not known is left out."""
    first = next(iter(ranks.values()), RankReading())
    page = int(first.page_tokens or pair.facts.page_tokens or 1)
    draft = pair.draft_kv(page, window)
    target_token, drafter_token = pair.target_token_bytes, None if draft is None else draft.bytes_per_token
    derived = target_token
    if derived is None and first.target_kv_bytes and first.capacity_tokens:
        derived = round(first.target_kv_bytes / (first.capacity_tokens + page))
    return KvFigures(
        target_token_bytes=derived,
        drafter_token_bytes=drafter_token,
        charged_token_bytes=None if drafter_token is None else pair.charged_token_bytes(drafter_token),
        target_pools={rank: _pool(r, derived, page, r.target_kv_bytes) for rank, r in ranks.items()},
        drafter_pools={}
        if not drafter_token
        else {rank: _pool(r, drafter_token, page, None) for rank, r in ranks.items()},
        target_needs=_target_needs(pair, ranks, target_token, window),
        drafter_needs={} if draft is None else _drafter_needs(pair, draft, ranks),
        cost_tokens={}
        if target_token is None or drafter_token is None
        else _costs(pair, ranks, target_token, drafter_token, page),
    )


def _pool(reading: RankReading, token_bytes: int | None, page: int, told_bytes: float | None) -> PoolFigures:
    """A pool from its slots; both models' pools have the same slots, the drafter has no allocator of its own."""

    def times(tokens: float | None) -> float | None:
        return None if tokens is None or token_bytes is None else tokens * token_bytes

    capacity, used, evictable = reading.capacity_tokens, reading.used_tokens, reading.evictable_tokens
    computed = None if capacity is None or token_bytes is None else float(pool_bytes(int(capacity), page, token_bytes))
    return PoolFigures(
        capacity_tokens=capacity,
        used_tokens=used,
        capacity_bytes=told_bytes if told_bytes is not None else computed,
        used_bytes=times(used),
        resident_bytes=None if used is None or evictable is None else times(used + evictable),
    )


def _concurrency(pair: Pair) -> int:
    line = pair.budget.budget.kv
    planned = line.concurrency if line is not None else None
    return planned or pair.facts.max_running_requests or DEFAULT_CONCURRENCY


def _planned_tokens(pair: Pair) -> int | None:
    line = pair.budget.budget.kv
    return line.tokens_per_request if line is not None else None


def _target_needs(
    pair: Pair, ranks: Mapping[str, RankReading], token_bytes: int | None, window: int | None
) -> dict[str, int]:
    if token_bytes is None or pair.target.geometry is None:
        return {}
    planned, used = _planned_tokens(pair), [r.used_tokens for r in ranks.values() if r.used_tokens is not None]
    needs = {}
    if planned is not None:
        rows = 0
        for layer in pair.target.geometry.kv_layers:
            reach = None if layer.window is None else max(0, layer.window - 1)
            share = bytes_per_token(
                ModelGeometry(layers=(layer,)),
                tensor_parallel=pair.target_ranks,
                element_bytes=pair.target_element_bytes or 0,
            )
            rows += share * ((planned if reach is None else min(planned, reach)) + (window or 1))
        needs["planned"] = _concurrency(pair) * rows
    if used:
        needs["live_upper"] = int(max(used)) * token_bytes
    return needs


def _drafter_needs(pair: Pair, draft: DraftKv, ranks: Mapping[str, RankReading]) -> dict[str, int]:
    concurrency, planned = _concurrency(pair), _planned_tokens(pair)
    needs = {"block_floor": draft.block_floor_bytes(concurrency)}
    if planned is not None:
        needs["planned"] = draft.planned_need_bytes(concurrency=concurrency, tokens_per_request=planned)
    live = [
        draft.live_need_bytes(
            used_tokens=int(r.used_tokens), running=int(r.running), step_allocation=draft.step_rows
        ).upper_bytes
        for r in ranks.values()
        if r.used_tokens is not None and r.running is not None
    ]
    if live:
        needs["live_upper"] = max(live)
    return needs


def _costs(
    pair: Pair, ranks: Mapping[str, RankReading], target_token: int, drafter_token: int, page: int
) -> dict[str, int]:
    charged = pair.charged_token_bytes(drafter_token)
    if charged is None or target_token <= 0:
        return {}
    # the engine does not say how many bytes it had for KV, only how many whole pages they made
    return {
        rank: cost_in_target_tokens(
            available_bytes=int(r.capacity_tokens) * (target_token + charged),
            drafter_weights_bytes=_weights_for_kv(pair),
            target_token_bytes=target_token,
            charged_token_bytes=charged,
            page=page,
        ).cost_tokens
        for rank, r in ranks.items()
        if r.capacity_tokens is not None and r.capacity_tokens == floor_to_page(int(r.capacity_tokens), page)
    }


def _weights_for_kv(pair: Pair) -> int:
    """Bytes of the drafter's weights that would become attention KV without it.

    With recurrent layers the engine splits what is left between their state and attention KV by a ratio, so
    only that share would.
    """
    weights = pair.drafter.charged_weight_bytes or 0
    geometry = pair.target.geometry
    if geometry is not None and any(isinstance(layer, RecurrentLayer) for layer in geometry.layers):
        ratio = pair.facts.mamba_full_memory_ratio or MAMBA_FULL_MEMORY_RATIO
        return int(weights / (1.0 + ratio))
    return weights
