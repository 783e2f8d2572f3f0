"""The ring behind the curves: bounded, honest about gaps, and fillable from a history."""

from __future__ import annotations

import math

from specbudget.catalog.lines import LINES
from specbudget.serve.trends import NAMES, TrendRing, budget_name

NOW = 1_800_000_000.0


def told(ring: TrendRing, now: float = NOW) -> list[float | None]:
    """The column `a` as plain values."""
    return [None if math.isnan(value) else float(value) for value in ring.column("a", now)]


def small() -> TrendRing:
    """Six slots of five seconds."""
    return TrendRing(["a", "b"], slots=6, slot_seconds=5.0)


def test_every_budget_has_a_column() -> None:
    """A budget that is declared has its curve."""
    assert {budget_name(line.id, budget.id) for line in LINES for budget in line.budgets} < set(NAMES)


def test_the_newest_sample_of_a_slot_counts() -> None:
    """Several samples in five seconds are one value, the last; names that nobody declared are ignored."""
    ring = small()
    ring.note(NOW, {"a": 1.0})
    ring.note(NOW + 1, {"a": 2.0, "nobody": 3.0})
    assert told(ring, NOW + 2) == [None] * 5 + [2.0]


def test_a_sample_stands_until_the_next_for_a_while() -> None:
    """A sidecar that looks every few seconds leaves no holes; one that was gone for a minute does."""
    ring = small()
    ring.note(NOW, {"a": 1.0})
    ring.note(NOW + 10, {"a": 3.0})
    assert told(ring, NOW + 10)[-3:] == [1.0, 3.0, 3.0]
    ring = small()
    ring.note(NOW, {"a": 1.0})
    ring.note(NOW + 25, {"a": 3.0})
    assert told(ring, NOW + 25) == [1.0, None, None, None, None, 3.0]


def test_what_is_left_out_is_not_known() -> None:
    """A budget that cannot be computed any more leaves a gap and not its last value."""
    ring = small()
    ring.note(NOW, {"a": 1.0})
    ring.note(NOW + 5, {"a": None})
    assert told(ring, NOW + 5)[-2:] == [1.0, None]


def test_it_forgets_what_is_older_than_a_turn() -> None:
    """An hour later nothing of before is shown."""
    ring = small()
    ring.note(NOW, {"a": 1.0})
    assert told(ring, NOW + 30) == [None] * 6


def test_it_can_be_filled_from_a_history() -> None:
    """Samples of the past land in their slots in any order, and never over what is newer by a turn of the ring."""
    ring = small()
    ring.note(NOW, {"a": 9.0})
    for age in (20, 10, 15, 5):
        ring.note(NOW - age, {"a": float(age)})
    ring.note(NOW - 30, {"a": 99.0})
    assert told(ring) == [None, 20.0, 15.0, 10.0, 5.0, 9.0]
