"""The state of speculation, told from movement."""

from __future__ import annotations

from typing import Any

import pytest

from specbudget.domain.speculation import SpeculationReading, SpeculationState, SpeculationWatch

S = SpeculationState


def reading(at: float, **values: Any) -> SpeculationReading:
    """A reading of a busy, well-speculating rank, but for what is given."""
    usual: dict[str, Any] = {
        "running": 4,
        "tokens": 100 * at,
        "decode_passes": 10 * at,
        "length": 2.5,
        "window": 8,
        "cap": 0,
        "enabled": True,
    }
    return SpeculationReading(at=at, **(usual | values))


def states(*readings: SpeculationReading) -> list[SpeculationState]:
    """The states that one watch tells after each reading."""
    watch = SpeculationWatch(report_passes=40)
    return [watch.see(one) for one in readings]


def test_work_with_a_length_is_active() -> None:
    """Moving counters and a possible length."""
    assert states(reading(0), reading(5), reading(10)) == [S.ACTIVE] * 3


@pytest.mark.parametrize("length", [None, 0.0])
def test_without_length_and_counters_there_is_no_data(length: float | None) -> None:
    """A gauge of 0 is no length."""
    assert states(reading(0, tokens=None, length=length)) == [S.NO_DATA]


@pytest.mark.parametrize("length", [0.75, 8.001, 1e9])
def test_an_impossible_length_is_invalid(length: float) -> None:
    """Below 1 or above the verify window; the engine miscounts, and no other state hides it."""
    assert states(reading(0, length=length)) == [S.INVALID]


@pytest.mark.parametrize("length", [1.0, 8.0])
def test_the_bounds_themselves_are_possible(length: float) -> None:
    """Nothing accepted, and everything accepted."""
    assert states(reading(0, length=length)) == [S.ACTIVE]


def test_without_a_window_only_the_lower_bound_is_known() -> None:
    """A long length is not judged by a window that nobody said."""
    assert states(reading(0, length=30.0, window=None)) == [S.ACTIVE]


def test_flat_counters_are_idle_and_later_frozen_while_requests_run() -> None:
    """Flat for 30 s: idle. Flat for 60 s with requests in the batch: frozen. Any movement ends both."""
    flat = {"tokens": 7, "decode_passes": 7}
    ats = [0, 29.9, 30, 59.9, 60, 300]
    assert states(*(reading(at, **flat) for at in ats)) == [
        S.ACTIVE,
        S.ACTIVE,
        S.IDLE,
        S.IDLE,
        S.FROZEN,
        S.FROZEN,
    ]
    assert states(*(reading(at, **flat) for at in ats), reading(305))[-1] is S.ACTIVE


@pytest.mark.parametrize("running", [0, None])
def test_nothing_running_is_idle_however_long(running: float | None) -> None:
    """An empty engine freezes nothing, and an unknown batch is no accusation."""
    flat = {"tokens": 7, "decode_passes": 7, "running": running}
    assert states(*(reading(at, **flat) for at in (0, 60, 3600)))[1:] == [S.IDLE, S.IDLE]


def test_prefill_alone_keeps_an_engine_from_being_frozen() -> None:
    """A long prefill decodes nothing for minutes; its tokens are movement."""
    long_prefill = [reading(at, tokens=1000 + at, decode_passes=7) for at in range(0, 200, 5)]
    assert set(states(*long_prefill)) == {S.ACTIVE}


def test_a_restart_is_movement() -> None:
    """Counters that fell were reset by a new process, which works."""
    assert states(reading(0, tokens=900), reading(70, tokens=3))[-1] is S.ACTIVE


def test_the_first_token_counter_is_movement() -> None:
    """A fresh engine has no counters until its first request; that first value is work, not a freeze."""
    silent = {"tokens": None, "decode_passes": None, "running": 0, "length": 0.0}
    first = reading(600, tokens=50, decode_passes=1, running=3, length=0.0)
    assert states(reading(0, **silent), reading(300, **silent), first)[-1] is S.NO_DATA


def test_frozen_comes_before_off_and_capped() -> None:
    """The states are ordered: a frozen engine is frozen, whatever else its gauges say."""
    flat = {"tokens": 7, "decode_passes": 7}
    assert states(reading(0, **flat), reading(60, **flat, enabled=False, cap=2))[-1] is S.FROZEN


def test_an_engine_that_says_so_is_off() -> None:
    """No algorithm in the engine's arguments: off, with work or without."""
    assert states(reading(0, enabled=False, length=0.0), reading(5, enabled=False, length=0.0)) == [
        S.OFF,
        S.OFF,
    ]


def test_passes_without_a_length_are_off() -> None:
    """A gauge that stays 0 over a report's worth of decode passes is not wired or speculation is off."""
    quiet = {"length": 0.0, "enabled": None}
    found = states(reading(0, **quiet), reading(3.9, **quiet), reading(4, **quiet), reading(5, length=2.0))
    assert found == [S.NO_DATA, S.NO_DATA, S.OFF, S.ACTIVE]


def test_tokens_without_a_length_are_off_where_passes_are_not_told() -> None:
    """+250000 tokens under a gauge of 0: not reported or off; before any token: nothing is known."""
    quiet = {"length": 0.0, "decode_passes": None, "enabled": None, "running": None}
    assert states(reading(0, **quiet, tokens=0), reading(15, **quiet, tokens=250000)) == [S.NO_DATA, S.OFF]


def test_decode_passes_that_appear_count_from_zero() -> None:
    """Engines make the counter at its first pass: fifty passes that were not there before are fifty."""
    quiet = {"length": 0.0, "enabled": None}
    assert states(reading(0, **quiet, decode_passes=None), reading(5, **quiet, decode_passes=50))[-1] is S.OFF


@pytest.mark.parametrize("passes", [None, 0])
def test_a_prefill_only_engine_is_idle(passes: float | None) -> None:
    """It works without ever decoding, and that is not speculation switched off."""
    prefill = {"prefill_only": True, "length": 0.0, "decode_passes": passes}
    assert states(*(reading(at, **prefill) for at in (0, 5, 10, 100))) == [S.IDLE] * 4


@pytest.mark.parametrize(
    ("cap", "window", "state"),
    [(3.2, 8, S.CAPPED), (3.2, None, S.CAPPED), (0, 8, S.ACTIVE), (None, 8, S.ACTIVE), (8, 8, S.ACTIVE)],
    ids=["a cap", "a cap without a known window", "0 is no cap", "none told", "a cap of the whole window"],
)
def test_a_cap_below_the_window(cap: float | None, window: float | None, state: SpeculationState) -> None:
    """The scheduler verifies less than the drafter proposes: a short length is then not the drafter's."""
    assert states(reading(0, length=3.0, cap=cap, window=window)) == [state]
