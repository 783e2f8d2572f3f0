"""What one device's memory holds once the engine has started."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class MemoryPart(StrEnum):
    """The parts, in the order in which the engine takes them; `other` is what remains unexplained."""

    TARGET_WEIGHTS = "target_weights"
    DRAFTER_WEIGHTS = "drafter_weights"
    TARGET_KV = "target_kv"
    DRAFTER_KV = "drafter_kv"
    TARGET_STATE = "target_state"
    """Recurrent state of the target's linear layers."""
    VERIFY_STATE = "verify_state"
    """Per-step copies of that state, kept until a verify step is decided."""
    TARGET_GRAPHS = "target_graphs"
    DRAFTER_GRAPHS = "drafter_graphs"
    FREE = "free"
    OTHER = "other"


KNOWN_PARTS = tuple(part for part in MemoryPart if part is not MemoryPart.OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """The split of one device: `parts_bytes` has the known parts only, an unknown one is absent.

    `missing` are the parts that the deployment has and nobody tells the size of.
    """

    total_bytes: int | None
    parts_bytes: Mapping[MemoryPart, int]
    missing: tuple[MemoryPart, ...] = ()

    def __getitem__(self, part: MemoryPart) -> int | None:
        return self.parts_bytes.get(part)

    def __iter__(self) -> Iterator[tuple[MemoryPart, int]]:
        """The known parts in order."""
        return ((part, self.parts_bytes[part]) for part in MemoryPart if part in self.parts_bytes)


def split_device_memory(
    *,
    total_bytes: int | None,
    parts_bytes: Mapping[MemoryPart, int | None],
    not_applicable: Collection[MemoryPart] = (),
) -> DeviceMemory:
    """Lay out the known parts and, where they allow it, the remainder.

    `other` (CUDA context, NCCL, activations, allocator cache) is total minus all known parts. It is absent
    unless the total and every part are known and the remainder is not negative: a part the deployment does
    not have, such as recurrent state of a plain transformer, is named in `not_applicable` and stays absent
    too. A negative part cannot be a reading of memory and counts as unknown; `other` is never taken from the
    input.
    """
    known: dict[MemoryPart, int] = {
        part: size
        for part in KNOWN_PARTS
        if (size := parts_bytes.get(part)) is not None and size >= 0 and part not in not_applicable
    }
    missing = tuple(part for part in KNOWN_PARTS if part not in known and part not in not_applicable)
    if total_bytes is not None and not missing:
        remainder = total_bytes - sum(known.values())
        if remainder >= 0:
            known[MemoryPart.OTHER] = remainder
    return DeviceMemory(total_bytes=total_bytes, parts_bytes=MappingProxyType(known), missing=missing)
