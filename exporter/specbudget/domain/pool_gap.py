"""Why an engine's KV pool is smaller than its memory would allow.

Sources: SGLang issues 36452 and 32468 (embedding and head of an EAGLE or MTP drafter are held while the pool is sized
and freed afterwards), 29857 (memory of a hybrid target that the pool never got).
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.kv_geometry import floor_to_page

_TOLERANCE = 0.02
RESERVE_BYTES = 4 * 2**30
_NOTABLE_SHARE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateVocabulary:
    """Copies of embedding and head that were charged to the pool and are free now."""

    freed_bytes: int
    ideal_tokens: int
    reduced_tokens: int

    @property
    def lost_tokens(self) -> int:
        """Tokens that the pool does not have because of the copies."""
        return self.ideal_tokens - self.reduced_tokens

    @property
    def lost_share(self) -> float:
        """Of the pool as it could be."""
        return self.lost_tokens / self.ideal_tokens

    def sentence(self) -> str:
        """The cause with its arithmetic."""
        return (
            f"duplicate embedding and head were charged while the pool was sized: {self.freed_bytes} bytes, freed "
            f"since, cost {self.lost_tokens} tokens; the pool has {self.reduced_tokens} of {self.ideal_tokens} "
            f"({self.lost_share:.1%} missing)"
        )


def duplicate_vocabulary(
    *, pool_tokens: int, available_bytes: int, freed_bytes: int, token_bytes: int, page: int = 1
) -> DuplicateVocabulary | None:
    """Whether the copies explain the pool's size to within 2 %; None when they do not.

    All bytes are of one device. `available_bytes` is what the engine would have had for KV beside the real weights,
    `freed_bytes` what `weights_per_device` charges and does not keep: with tensor parallelism each rank's share.
    """
    if freed_bytes <= 0 or token_bytes <= 0 or available_bytes <= freed_bytes:
        return None
    ideal = floor_to_page(available_bytes // token_bytes, page)
    reduced = floor_to_page((available_bytes - freed_bytes) // token_bytes, page)
    # copies that cost less than twice the tolerance could be anything
    if ideal <= 0 or ideal - reduced <= 2 * _TOLERANCE * ideal or abs(pool_tokens - reduced) > _TOLERANCE * reduced:
        return None
    return DuplicateVocabulary(freed_bytes=freed_bytes, ideal_tokens=ideal, reduced_tokens=pool_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedMemory:
    """Free memory that would hold KV: tokens the pool has, and tokens that would fit beside them."""

    pool_tokens: int
    unallocated_tokens: int
    reserve_bytes: int

    @property
    def used_share(self) -> float:
        """The pool's tokens of all that fit."""
        return self.pool_tokens / (self.pool_tokens + self.unallocated_tokens)

    def sentence(self) -> str:
        """What lies idle and where to look."""
        total = self.pool_tokens + self.unallocated_tokens
        return (
            f"the pool has {self.pool_tokens} tokens and free memory would hold {self.unallocated_tokens} more: "
            f"{self.used_share:.1%} of the {total} that fit; raise --mem-fraction-static, keeping "
            f"{self.reserve_bytes / 2**30:g} GiB"
        )


def unused_memory(
    *, pool_tokens: int, free_bytes: int, token_bytes: int, reserve_bytes: int = RESERVE_BYTES
) -> UnusedMemory | None:
    """Whether more than `reserve_bytes` are free and the pool has less than 90 % of what fits; None when not.

    `free_bytes` is free device memory after start-up; `token_bytes` what one token takes of both pools.
    """
    if free_bytes <= reserve_bytes or token_bytes <= 0 or pool_tokens <= 0:
        return None
    found = UnusedMemory(
        pool_tokens=pool_tokens, unallocated_tokens=free_bytes // token_bytes, reserve_bytes=reserve_bytes
    )
    return found if found.used_share < _NOTABLE_SHARE else None
