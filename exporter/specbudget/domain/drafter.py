"""The drafter: its algorithm, and the numbers of its KV: block floor, need, allocated. All bytes are of one device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specbudget.domain.kv_geometry import (
    KvLayer,
    ModelGeometry,
    bytes_per_token,
    kv_layer_bytes,
    pool_bytes,
)


class DraftAlgorithm(StrEnum):
    """How drafts are proposed. The values are the words of the budget file."""

    DSPARK = "dspark"
    DFLASH = "dflash"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    STANDALONE = "standalone"
    NGRAM = "ngram"

    @property
    def is_block(self) -> bool:
        """DSpark and DFlash: one drafter pass proposes the whole block."""
        return self in (DraftAlgorithm.DSPARK, DraftAlgorithm.DFLASH)

    @property
    def is_chain(self) -> bool:
        """EAGLE, EAGLE3, MTP and standalone: one drafter pass per drafted position."""
        return self in (
            DraftAlgorithm.EAGLE,
            DraftAlgorithm.EAGLE3,
            DraftAlgorithm.MTP,
            DraftAlgorithm.STANDALONE,
        )


_ENGINE_WORDS = {algorithm.value: algorithm for algorithm in DraftAlgorithm} | {"nextn": DraftAlgorithm.MTP}


def parse_algorithm(word: str | None) -> DraftAlgorithm | None:
    """The algorithm behind an engine's or a user's word, in any case; None for none and for unknown ones.

    SGLang's `/server_info` says EAGLE for NEXTN and MTP too (spec_info.py, reserved aliases); their formulas
    are the same. UNO and FROZEN_KV_MTP have no drafter KV of their own and are not known here.
    """
    return None if word is None else _ENGINE_WORDS.get(word.strip().lower())


def verify_window(
    algorithm: DraftAlgorithm | None, *, num_steps: int | None, num_draft_tokens: int | None
) -> int | None:
    """The largest possible acceptance length, the target's own token included; None when not known.

    `num_draft_tokens` is as SGLang reports it: gamma + 1 for DSpark, the block for DFlash. A tree of EAGLE
    drafts still accepts one path of at most `num_steps` drafts, and no more than it
    verifies. Without an algorithm `num_steps` of 1 may be the forced value of a block drafter, so the draft tokens
    decide.
    """
    match algorithm:
        case DraftAlgorithm.DSPARK | DraftAlgorithm.DFLASH | DraftAlgorithm.NGRAM:
            return num_draft_tokens
        case None if num_steps is None or num_steps == 1:
            return num_draft_tokens
        case _:
            if num_steps is None:
                return None
            return num_steps + 1 if num_draft_tokens is None else min(num_steps + 1, num_draft_tokens)


def block_draft_tokens(algorithm: DraftAlgorithm, block_size: int | None) -> int | None:
    """`num_draft_tokens` of a block drafter whose checkpoint says `block_size`: gamma + 1, or the block
    itself.

    None for other algorithms and for an unknown block. Source: SGLang 0.5.23 dspark_config.py,
    dflash_utils.py.
    """
    if block_size is None:
        return None
    match algorithm:
        case DraftAlgorithm.DSPARK:
            return block_size + 1
        case DraftAlgorithm.DFLASH:
            return block_size
        case _:
            return None


def step_rows(
    algorithm: DraftAlgorithm, *, num_steps: int | None, topk: int | None, num_draft_tokens: int | None
) -> int | None:
    """Rows of drafter KV that one verify step of one request needs beyond the committed tokens.

    DSpark gamma + 1, DFlash the block, EAGLE, MTP and standalone max(topk x steps, draft tokens), n-gram
    none. Without `topk` a chain (1) is taken, without `num_draft_tokens` a chain's steps + 1. None when not
    known.
    """
    if algorithm is DraftAlgorithm.NGRAM:
        return 0
    if algorithm.is_block:
        return num_draft_tokens
    if num_steps is None:
        return None
    width = 1 if topk is None else topk
    if num_draft_tokens is None:
        return num_steps + 1 if width == 1 else None
    return max(width * num_steps, num_draft_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftKv:
    """What sizes a drafter's KV on one device, beside the load.

    `step_rows` is v of `step_rows()`; `tensor_parallel` the ranks that share the heads; `element_bytes` the
    size of one element of the drafter's KV. `draft_window` and `draft_sink` are SGLang's
    `--speculative-draft-window-size` and `--speculative-draft-sink-size` in tokens.
    """

    algorithm: DraftAlgorithm
    geometry: ModelGeometry
    step_rows: int
    tensor_parallel: int = 1
    element_bytes: int = 2
    page: int = 1
    draft_window: int | None = None
    draft_sink: int = 0

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one drafter token; 0 for n-gram, which keeps no KV."""
        if self.algorithm is DraftAlgorithm.NGRAM:
            return 0
        return bytes_per_token(self.geometry, tensor_parallel=self.tensor_parallel, element_bytes=self.element_bytes)

    def _layers(self) -> list[tuple[int | None, int]]:
        """Each layer as (committed tokens it can attend to, bytes per token); None: the whole context."""
        if self.algorithm is DraftAlgorithm.NGRAM:
            return []
        return [
            (self._reach(layer), size)
            for layer, size in kv_layer_bytes(
                self.geometry, tensor_parallel=self.tensor_parallel, element_bytes=self.element_bytes
            )
        ]

    def _reach(self, layer: KvLayer) -> int | None:
        own = None if layer.window is None else max(0, layer.window - 1)
        flag = self._flag_reach()
        if own is None or flag is None:
            return own if flag is None else flag
        return min(own, flag)

    def _flag_reach(self) -> int | None:
        """What the window argument allows; DSpark and standalone ignore it, so does an EAGLE drafter with
        windows.
        """
        if self.draft_window is None:
            return None
        match self.algorithm:
            case DraftAlgorithm.DFLASH:
                return self.draft_window + self.page - 1
            case DraftAlgorithm.EAGLE | DraftAlgorithm.EAGLE3 | DraftAlgorithm.MTP:
                return None if self.geometry.has_windows else self.draft_window + self.draft_sink
            case _:
                return None

    def block_floor_bytes(self, concurrency: int) -> int:
        """What the draft block alone would need for `concurrency` running requests."""
        return concurrency * self.step_rows * self.bytes_per_token

    def planned_need_bytes(self, *, concurrency: int, tokens_per_request: int) -> int:
        """Rows that `concurrency` requests of `tokens_per_request` tokens need, each layer within its own
        window.

        A block drafter keeps a row for every committed token too, projected from the target's hidden states
        (SGLang 0.5.23 dspark_kv_inject.py); the block only adds `step_rows` once.
        """
        rows = 0
        for reach, size in self._layers():
            committed = tokens_per_request if reach is None else min(tokens_per_request, reach)
            rows += size * (committed + self.step_rows)
        return concurrency * rows

    def live_need_bytes(self, *, used_tokens: int, running: int, step_allocation: int) -> NeedBounds:
        """Bounds of the need of the running requests, from the slots they hold.

        `used_tokens` counts a shared prefix once. Of them each request may hold up to twice `step_allocation`
        slots reserved ahead and a page not yet filled, so the committed tokens lie between. How they divide
        among the requests is not known, so a window is bounded by one request holding all and by an even
        spread.
        """
        reserved = running * (2 * step_allocation + self.page - 1)
        committed_low = max(0, used_tokens - reserved)
        step = running * self.step_rows
        lower = upper = 0
        for reach, size in self._layers():
            low, high = committed_low, used_tokens if running else 0
            if reach is not None:
                low, high = min(low, reach), min(high, running * reach)
            lower += size * (low + step if running else 0)
            upper += size * (high + step)
        return NeedBounds(lower_bytes=lower, upper_bytes=upper)

    def allocated_bytes(self, pool_tokens: int, *, decode_context_parallel: int = 1) -> int:
        """What SGLang allocates: as many slots as the target's pool has, and the padding page."""
        ranks = decode_context_parallel
        return pool_bytes(pool_tokens * ranks, self.page * ranks, self.bytes_per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedBounds:
    """The live need lies between these two."""

    lower_bytes: int
    upper_bytes: int
