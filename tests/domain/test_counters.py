"""Increases of another process's counters, across its restarts and ours."""

from __future__ import annotations

import json

import pytest

from specbudget.domain.counters import CounterReader, increase


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [(None, 7, 7), (3, 7, 4), (7, 7, 0), (7, 3, 3), (7, 0, 0)],
    ids=["it was not there", "it grew", "it stood still", "it restarted and grew", "it restarted"],
)
def test_increase(before: float | None, after: float, grown: float) -> None:
    """A counter only grows; one that fell began again at 0."""
    assert increase(before, after) == grown


def test_the_first_reading_counts_nothing() -> None:
    """What an engine did before anyone looked is not an increase."""
    reader: CounterReader[str] = CounterReader()
    assert reader.advance({"a": 1000}) == {"a": 0}
    assert reader.advance({"a": 1004}) == {"a": 4}


def test_a_child_that_appears_later_grew_from_zero() -> None:
    """Engines make a counter's child at its first increment, so its whole value is new."""
    reader: CounterReader[str] = CounterReader()
    reader.advance({})
    assert reader.advance({"a": 4}) == {"a": 4}
    assert reader.advance({"a": 4, "b": 2}) == {"a": 0, "b": 2}


def test_a_child_that_is_away_for_a_poll_is_not_new() -> None:
    """Its last value is remembered, so that its return counts the difference only."""
    reader: CounterReader[str] = CounterReader()
    reader.advance({"a": 10})
    assert reader.advance({}) == {}
    assert reader.advance({"a": 13}) == {"a": 3}


def test_growth_while_we_were_away_counts() -> None:
    """The state survives JSON; after it is taken up, the difference to the last reading is an increase."""
    before: CounterReader[str] = CounterReader()
    before.advance({"a": 10})
    kept = json.loads(json.dumps(before.dump()))
    after: CounterReader[str] = CounterReader()
    after.load(begun=kept["begun"], last=dict(kept["last"]))
    assert after.advance({"a": 25, "b": 2}) == {"a": 15, "b": 2}


def test_an_unbegun_state_stays_unbegun() -> None:
    """A reader that never read has no baseline, also after a restart."""
    kept = CounterReader[str]().dump()
    reader: CounterReader[str] = CounterReader()
    reader.load(begun=bool(kept["begun"]), last={})
    assert reader.advance({"a": 99}) == {"a": 0}


@pytest.mark.parametrize("wrong", [-500.0, float("nan"), float("inf"), 1.7e308])
def test_a_reading_that_is_no_count_changes_nothing(wrong: float) -> None:
    """The next true reading goes on from the last true one."""
    reader: CounterReader[str] = CounterReader()
    reader.advance({"a": 10})
    assert reader.advance({"a": wrong}) == {}
    assert reader.advance({"a": 13}) == {"a": 3}
