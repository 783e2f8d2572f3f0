"""The memory before the pool, read from whole start-up logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbudget.domain.pool_sizing import memory_from_start
from specbudget.sources.sglang.start_log import read_start_lines

FIXTURES = Path(__file__).parents[2] / "fixtures"
GIB = 2**30


def test_two_ranks_with_a_drafter() -> None:
    """138.40 GiB before, 65.00 GiB after, of which the drafter took 2.12; the later graphs and lines do not count."""
    log = FIXTURES / "sglang" / "0.5.23" / "log_v0.5.23_dspark_tp2_startup.handfilled.log"
    memory = memory_from_start(read_start_lines(log.read_bytes()).events)
    assert memory is not None
    assert memory.before_load.point == pytest.approx(138.40 * GIB)
    assert memory.free().point == pytest.approx(65.00 * GIB)
    assert memory.drafter_weights is not None
    assert memory.drafter_weights.point == pytest.approx(2.12 * GIB)
    rest = memory.rest(0.9)
    assert rest.point == pytest.approx(65.00 - 13.84)
    assert rest.high - rest.low == pytest.approx(2 * 0.005 * 1.1)


def test_a_log_that_ends_before_the_pools() -> None:
    """A further load may be to come, so nothing is said."""
    log = FIXTURES / "starts" / "interleaved_ranks.log"
    assert memory_from_start(read_start_lines(log.read_bytes()).events) is None
