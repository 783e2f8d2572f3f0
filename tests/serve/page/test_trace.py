"""The acceptance trace: ratios of sums by slot, only what is over, and changes that put together give the whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.page.statuses import NOW, a_desk

from specbudget.catalog.sets import Scope
from specbudget.serve.page.spark import HEIGHT, POINTS, spark
from specbudget.serve.page.trace import KEPT, Trace, acceptance_trace, picture
from specbudget.serve.trends import BREAK_EVEN, SLOT_SECONDS

Column = list[float | None]


def test_each_point_is_the_minute_before_it(tmp_path: Path) -> None:
    """Steps count in the points of the minute after them and in no other; the present slot is left out."""
    desk = a_desk(tmp_path)
    for age, steps, length in ((600.0, 100.0, 3.0), (10.0, 100.0, 2.0), (0.0, 100.0, 9.0)):
        desk.book.count_batch("0", length, steps, window=None, at=NOW - age, now=NOW)
    told = acceptance_trace(desk, NOW)
    batch = told.values[Scope.BATCH]
    assert len(batch) == KEPT
    assert batch[-1] == 2.0
    assert (told.first + KEPT) * SLOT_SECONDS == NOW
    early = [value for value in batch[:-13] if value is not None]
    assert early == [3.0] * 12
    assert set(told.values[Scope.REQUEST]) == {None}


def test_break_even_is_kept_as_it_was(tmp_path: Path) -> None:
    """It moves with the batch, so that the past cannot be computed anew."""
    desk = a_desk(tmp_path)
    for age, value in ((20.0, 2.1), (15.0, 2.2), (10.0, 2.4), (5.0, None)):
        desk.trends.note(NOW - age, {BREAK_EVEN: value})
    assert acceptance_trace(desk, NOW).values[BREAK_EVEN][-4:] == [2.1, 2.2, 2.4, None]


@given(
    st.lists(st.sampled_from([None, 1.5, 2.0]), min_size=4, max_size=12),
    st.lists(st.sampled_from([None, 1.5, 2.0]), min_size=4, max_size=12),
    st.integers(min_value=0, max_value=15),
)
def test_changes_put_together_give_the_whole(old: Column, new: Column, shift: int) -> None:
    """However a trace changes and moves on, an open page that takes up the change holds the new one."""
    size = min(len(old), len(new))
    before = Trace(first=100, values={"request": old[:size]}, target=2.6)
    after = Trace(first=100 + shift, values={"request": new[:size]}, target=2.6)
    patch = after.since(before)
    held = {100 + i: value for i, value in enumerate(old[:size])}
    if patch is not None:
        held = {slot: value for slot, value in held.items() if patch["first"] <= slot < patch["from"]}
        held |= {patch["from"] + i: value for i, value in enumerate(patch["values"]["request"])}
    else:
        assert shift == 0
    assert [held.get(after.first + i) for i in range(size)] == new[:size]


def test_the_picture_says_what_it_draws() -> None:
    """A gap breaks the line, the target is in the picture, and the words name range and last value."""
    column: Column = [None] * 200 + [4.0, 3.0, None, 2.0]
    drawn = picture(
        Trace(first=0, values={"request": column, "batch": [None] * 204, BREAK_EVEN: [None] * 204}, target=2.6)
    )
    paths = dict(drawn.paths)
    assert paths["request"].count("M") == 2
    assert paths["batch"] == ""
    assert drawn.target_y is not None
    assert drawn.words == "per request between 2.00 and 4.00, at last 2.00; target at 2.60"
    nothing = picture(Trace(first=0, values={"request": [None] * 10}, target=None))
    assert nothing.words == "no verify step in the last hour"


def test_a_spark_keeps_the_limit_in_sight() -> None:
    """The limit is in the box, one wild value does not leave it, and the words say range and present."""
    ratios = np.full(721, np.nan, dtype=np.float32)
    assert spark(ratios).path == ""
    assert spark(ratios).words == "no value in the last hour"
    ratios[-120:] = 0.5
    ratios[-60] = np.inf
    drawn = spark(ratios)
    assert 0 < drawn.limit_y < HEIGHT
    assert drawn.last is not None
    assert all(0 <= float(y) <= HEIGHT for y in drawn.path.replace("M", " ").replace("L", " ").split()[1::2])
    assert drawn.path.count("L") + drawn.path.count("M") == POINTS
    assert "now 50" in drawn.words
