"""The memory that a start-up's log tells of."""

from __future__ import annotations

import pytest

from domain.pool_sizing.deployments import GIB
from specbudget.domain.pool_sizing import Certainty, memory_from_start
from specbudget.domain.start_events import Mark, StartEvent


def event(mark: Mark, rank: str, *, free: float | None = None, size: float | None = None) -> StartEvent:
    """A line of a rank, in GiB."""
    return StartEvent(
        mark=mark,
        at=0.0,
        rank=rank,
        free_bytes=None if free is None else free * GIB,
        size_bytes=None if size is None else size * GIB,
    )


def start(*drafters: float) -> list[StartEvent]:
    """Two ranks that load a target and these drafters, the second with a little less memory."""
    events = []
    for rank, free in (("TP0", 78.42), ("TP1", 78.4)):
        for size in (58.0, *drafters):
            events.append(event(Mark.LOAD_BEGIN, rank, free=free))
            free -= size
            events.append(event(Mark.LOAD_END, rank, free=free, size=size))
    return [*events, event(Mark.KV_POOL, "TP0", size=9.0), event(Mark.KV_POOL, "TP1", size=9.0)]


def test_the_rank_with_the_least_memory_counts() -> None:
    """The engine takes the least of all ranks, before and after."""
    memory = memory_from_start(start(0.42))
    assert memory is not None
    assert memory.certainty is Certainty.FROM_LOG
    assert memory.before_load.point == pytest.approx(78.4 * GIB)
    assert memory.free().point == pytest.approx((78.4 - 58.42) * GIB)
    assert memory.target_weights.point == 58.0 * GIB
    assert memory.drafter_weights is not None
    assert memory.drafter_weights.point == pytest.approx(0.42 * GIB)
    assert memory.drafter_weights.high - memory.drafter_weights.point == pytest.approx(0.005 * GIB)


def test_each_load_adds_its_rounding() -> None:
    """Three drafters are known to 0.015 GiB, none to the byte."""
    several, alone = memory_from_start(start(0.4, 0.4, 0.4)), memory_from_start(start())
    assert several is not None
    assert several.drafter_weights is not None
    assert several.drafter_weights.high - several.drafter_weights.point == pytest.approx(0.015 * GIB)
    assert alone is not None
    assert alone.drafter_weights is not None
    assert (alone.drafter_weights.point, alone.drafter_weights.is_exact) == (0.0, True)


def test_what_comes_after_the_pools_is_no_load_of_this_start() -> None:
    """A later update of the weights changes nothing."""
    later = [event(Mark.LOAD_BEGIN, "TP0", free=5.0), event(Mark.LOAD_END, "TP0", free=4.0, size=1.0)]
    assert memory_from_start([*start(0.42), *later]) == memory_from_start(start(0.42))


@pytest.mark.parametrize("missing", range(10))
def test_a_missing_line_leaves_it_unknown(missing: int) -> None:
    """Without one of the begins that count, an end or a pool, there is no figure; a drafter's begin is not needed."""
    events = start(0.42)
    del events[missing]
    found = memory_from_start(events)
    assert (found is None) == (missing not in (2, 6))


def test_no_lines_no_memory() -> None:
    """Nothing is made up."""
    assert memory_from_start([]) is None
