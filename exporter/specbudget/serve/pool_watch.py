"""Looks after each start for a reason why the KV pool is smaller than its memory would allow, and says it once.

The figures themselves are on /metrics: capacity, bytes per token, weights, free memory. This is the sentence that
puts them together, for the log. It is no verdict, and no line's state depends on it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from specbudget.domain.kv_geometry import RecurrentLayer
from specbudget.domain.observation import RankReading
from specbudget.domain.pool_gap import RESERVE_BYTES, duplicate_vocabulary, unused_memory
from specbudget.domain.start_memory import RankMemory
from specbudget.pair.kv import Pair
from specbudget.serve.kv_figures import KvFigures
from specbudget.sources.checkpoint import DeviceWeights

log = logging.getLogger(__name__)


def pool_gaps(
    pair: Pair,
    ranks: Mapping[str, RankReading],
    logged: Mapping[str, RankMemory],
    figures: KvFigures,
    weights: DeviceWeights | None,
) -> tuple[str, ...]:
    """One sentence per reason, of the rank with the smallest pool. `weights` are the drafter's on each device."""
    pools = {rank: int(r.capacity_tokens) for rank, r in ranks.items() if r.capacity_tokens}
    if not pools or not figures.target_token_bytes:
        return ()
    rank = min(pools, key=lambda name: pools[name])
    device = _Device(pair, ranks[rank], logged.get(rank, RankMemory()))
    return tuple(
        sentence
        for sentence in (
            _duplicates(device, pools[rank], figures.target_token_bytes, figures, weights),
            _unused(device, pools[rank], figures.target_token_bytes, figures),
        )
        if sentence is not None
    )


@dataclass(frozen=True, slots=True)
class _Device:
    """The fullest device of a rank: what it had and what is left of it."""

    pair: Pair
    reading: RankReading
    log: RankMemory

    @property
    def before(self) -> float | None:
        """Free memory before any weight was loaded."""
        told = self.pair.budget.engine.free_before_load
        return self.log.free_before_load if told is None else float(told)

    @property
    def kept_free(self) -> float | None:
        """What the engine leaves free by its own --mem-fraction-static."""
        share = self.pair.facts.mem_fraction_static
        return None if self.before is None or share is None else self.before * (1.0 - share)

    @property
    def free(self) -> float | None:
        """What was free when everything was allocated."""
        return self.log.free if self.reading.free_bytes is None else self.reading.free_bytes


def _duplicates(
    device: _Device, pool_tokens: int, target_token: int, figures: KvFigures, weights: DeviceWeights | None
) -> str | None:
    """Copies of embedding and head that were held while the pool was sized."""
    pair = device.pair
    charged = None if figures.drafter_token_bytes is None else pair.charged_token_bytes(figures.drafter_token_bytes)
    geometry = pair.target.geometry
    if weights is None or charged is None or device.kept_free is None or device.before is None or geometry is None:
        return None
    if any(isinstance(layer, RecurrentLayer) for layer in geometry.layers):
        # recurrent state takes a share of the same memory, so that the pool does not tell what the copies cost
        return None
    loaded, own = device.log.free_loaded, device.reading.target_weight_bytes
    if loaded is None and own is not None:
        loaded = device.before - own - weights.charged_bytes
    if loaded is None:
        return None
    freed = weights.charged_bytes - weights.resident_bytes
    found = duplicate_vocabulary(
        pool_tokens=pool_tokens,
        available_bytes=int(loaded - device.kept_free) + freed,
        freed_bytes=freed,
        token_bytes=target_token + charged,
        page=int(device.reading.page_tokens or pair.facts.page_tokens or 1),
    )
    return None if found is None else found.sentence()


def _unused(device: _Device, pool_tokens: int, target_token: int, figures: KvFigures) -> str | None:
    """Memory that the pool never got, beyond what the engine means to leave free."""
    if device.free is None:
        return None
    if device.pair.algorithm is not None and figures.drafter_token_bytes is None:
        # what a token takes of the drafter's pool is not known
        return None
    found = unused_memory(
        pool_tokens=pool_tokens,
        free_bytes=int(device.free),
        token_bytes=target_token + (figures.drafter_token_bytes or 0),
        reserve_bytes=max(RESERVE_BYTES, int(device.kept_free or 0)),
    )
    return None if found is None else found.sentence()


class PoolWatch:
    """Says each reason once, and again when its numbers change."""

    def __init__(self) -> None:
        self._told: frozenset[str] = frozenset()

    def tell(self, sentences: tuple[str, ...]) -> None:
        """Logs what was not said before; nothing known now says nothing of what was."""
        if not sentences:
            return
        for sentence in sentences:
            if sentence not in self._told:
                log.warning("kv pool: %s", sentence)
        self._told = frozenset(sentences)
