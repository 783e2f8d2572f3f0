"""What people read for the parts of a device's memory, on every page and graph."""

from __future__ import annotations

from collections.abc import Mapping

from specbudget.domain.device_memory import MemoryPart

PART_NAMES: Mapping[MemoryPart, str] = {
    MemoryPart.TARGET_WEIGHTS: "target weights",
    MemoryPart.DRAFTER_WEIGHTS: "drafter weights",
    MemoryPart.TARGET_KV: "target KV",
    MemoryPart.DRAFTER_KV: "drafter KV",
    MemoryPart.TARGET_STATE: "target recurrent state",
    MemoryPart.VERIFY_STATE: "recurrent state for verification",
    MemoryPart.TARGET_GRAPHS: "target graphs",
    MemoryPart.DRAFTER_GRAPHS: "drafter graphs",
    MemoryPart.FREE: "free",
    MemoryPart.OTHER: "other: context, buffers, activations",
}
