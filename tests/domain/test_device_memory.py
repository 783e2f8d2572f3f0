"""The split of a device's memory: what is unknown stays out, and so does a remainder that cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.device_memory import KNOWN_PARTS, MemoryPart, split_device_memory

EVERYTHING: dict[MemoryPart, int | None] = dict.fromkeys(KNOWN_PARTS, 10)
STATE = (MemoryPart.TARGET_STATE, MemoryPart.VERIFY_STATE)


def test_other_is_what_remains() -> None:
    """All nine parts known: the rest of the device is `other`, and the parts come in the engine's order."""
    memory = split_device_memory(total_bytes=100, parts_bytes=EVERYTHING)
    assert memory[MemoryPart.OTHER] == 10
    assert [part for part, _ in memory] == list(MemoryPart)


def test_without_the_total_there_is_no_other() -> None:
    """The engine does not say how large the device is."""
    memory = split_device_memory(total_bytes=None, parts_bytes=EVERYTHING)
    assert memory[MemoryPart.OTHER] is None
    assert memory[MemoryPart.FREE] == 10


@pytest.mark.parametrize("part", KNOWN_PARTS)
def test_one_unknown_part_leaves_other_unknown(part: MemoryPart) -> None:
    """A remainder over a part that is not known would count that part as unexplained."""
    for parts in ({**EVERYTHING, part: None}, {key: size for key, size in EVERYTHING.items() if key is not part}):
        memory = split_device_memory(total_bytes=100, parts_bytes=parts)
        assert memory[part] is None
        assert memory[MemoryPart.OTHER] is None
        assert len(list(memory)) == 8


def test_a_part_the_deployment_does_not_have_is_absent_and_not_missed() -> None:
    """A plain transformer keeps no recurrent state; absent is not zero."""
    parts = {part: size for part, size in EVERYTHING.items() if part not in STATE}
    memory = split_device_memory(total_bytes=100, parts_bytes=parts, not_applicable=STATE)
    assert memory[MemoryPart.OTHER] == 30
    assert memory[MemoryPart.TARGET_STATE] is None


def test_more_than_the_device_has_gives_no_remainder() -> None:
    """Parts from different moments can exceed the total; a negative remainder is no number."""
    assert split_device_memory(total_bytes=80, parts_bytes=EVERYTHING)[MemoryPart.OTHER] is None
    assert split_device_memory(total_bytes=90, parts_bytes=EVERYTHING)[MemoryPart.OTHER] == 0


def test_a_negative_part_is_unknown() -> None:
    """A difference of free memory can come out negative when a neighbour frees memory meanwhile."""
    memory = split_device_memory(total_bytes=100, parts_bytes={**EVERYTHING, MemoryPart.TARGET_GRAPHS: -1})
    assert memory[MemoryPart.TARGET_GRAPHS] is None
    assert memory[MemoryPart.OTHER] is None


@given(
    st.none() | st.integers(0, 1000),
    st.dictionaries(st.sampled_from(MemoryPart), st.none() | st.integers(-5, 200)),
    st.sets(st.sampled_from(KNOWN_PARTS)),
)
def test_with_other_the_parts_fill_the_device(
    total: int | None, parts: dict[MemoryPart, int | None], without: set[MemoryPart]
) -> None:
    """Where `other` is known all parts add up to the total, and no part is ever negative."""
    memory = split_device_memory(total_bytes=total, parts_bytes=parts, not_applicable=without)
    sizes = dict(memory)
    assert all(size >= 0 for size in sizes.values())
    assert without.isdisjoint(sizes)
    if MemoryPart.OTHER in sizes:
        assert sum(sizes.values()) == total
