"""The verdict on each finished request, and the order of the reasons that exclude it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specbudget.domain.requests import UNKNOWN, RequestBatch, RequestSlo, Verdict, judge

SLO = RequestSlo(targets=np.array([2.6, np.nan]), min_output_tokens=np.array([84, 1]))


def one(**changes: Any) -> RequestBatch:
    """One request of 100 tokens over 30 steps that accepted 60 drafts: length 3.0 of at most 8."""
    values: dict[str, Any] = {
        "finished_at": 0.0,
        "output_tokens": 100,
        "prompt_tokens": 600,
        "cached_tokens": 0,
        "aborted": False,
        "steps": 30,
        "accepted": 60,
        "proposed": 210,
        "window": 8,
        "rank": 0,
        "profile": 0,
        "histogram": [5, 5, 10, 5, 5],
    } | changes
    histogram = values.pop("histogram")
    values.setdefault("bound", values["window"])
    return RequestBatch(
        histogram=np.array([histogram], dtype=np.int64), **{k: np.array([v]) for k, v in values.items()}
    )


def verdict(batch: RequestBatch) -> Verdict:
    """The verdict on the only request."""
    return Verdict(int(judge(batch, SLO, batch.inconsistent())[0]))


NOTHING: dict[str, Any] = {
    "steps": UNKNOWN,
    "accepted": UNKNOWN,
    "proposed": UNKNOWN,
    "window": UNKNOWN,
    "histogram": [],
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Verdict.GOOD),
        ({"accepted": 40, "histogram": [10, 5, 10, 5, 0]}, Verdict.BAD),
        ({"accepted": 48, "histogram": [6, 6, 12, 6, 0], "steps": 30}, Verdict.GOOD),
        ({"aborted": True}, Verdict.ABORTED),
        ({"aborted": True, "accepted": 61}, Verdict.ABORTED),
        ({"accepted": 61}, Verdict.INVALID),
        ({"steps": 31}, Verdict.INVALID),
        ({"histogram": [5, 5, 10, 5, -5]}, Verdict.INVALID),
        ({"window": 4}, Verdict.INVALID),
        ({"accepted": 400, "histogram": []}, Verdict.INVALID),
        (NOTHING, Verdict.NO_SPECULATION),
        ({**NOTHING, "output_tokens": 50}, Verdict.NO_SPECULATION),
        ({**NOTHING, "output_tokens": 1}, Verdict.FEW_TOKENS),
        ({"output_tokens": 83}, Verdict.FEW_TOKENS),
        ({"output_tokens": 84}, Verdict.GOOD),
        ({"output_tokens": UNKNOWN}, Verdict.FEW_TOKENS),
        ({"histogram": [30], "accepted": 0, "window": 2}, Verdict.WINDOW_BELOW_TARGET),
        ({"histogram": []}, Verdict.GOOD),
    ],
    ids=[
        "good",
        "bad",
        "exactly at the target",
        "aborted",
        "aborted before invalid",
        "accepted disagrees with the histogram",
        "steps disagree with the histogram",
        "negative count",
        "a step accepted more than the window holds",
        "length above the window without a histogram",
        "no speculation",
        "no speculation before few tokens",
        "one token is few tokens",
        "one token short of enough",
        "just enough tokens",
        "output tokens unknown",
        "target out of the window's reach",
        "totals without a histogram",
    ],
)
def test_the_first_reason_that_holds_decides(changes: dict[str, Any], expected: Verdict) -> None:
    """aborted, invalid, no_speculation, few_tokens, window_below_target, in this order; else good or bad."""
    assert verdict(one(**changes)) is expected


def test_validity_does_not_look_at_the_drafter() -> None:
    """Two requests of the same output are both valid, however many steps each took."""
    assert verdict(one(steps=90, accepted=9, histogram=[81, 9])) is Verdict.BAD
    assert verdict(one(steps=13, accepted=87, histogram=[0, 0, 0, 0, 0, 2, 0, 11], proposed=91)) is Verdict.GOOD


def test_length_is_not_the_engines_own_ratio() -> None:
    """100 tokens over 30 steps would be 3.33; the steps themselves say 3.0."""
    assert one().lengths().tolist() == [3.0]


def test_length_without_a_histogram_comes_from_totals() -> None:
    """1 + accepted / steps."""
    assert one(histogram=[]).lengths().tolist() == [3.0]
    assert np.isnan(one(**NOTHING).lengths()[0])


def test_an_empty_batch_is_judged_without_complaint() -> None:
    """No request, no verdict."""
    empty = np.array([], dtype=np.int64)
    batch = RequestBatch(
        finished_at=empty.astype(np.float64),
        output_tokens=empty,
        prompt_tokens=empty,
        cached_tokens=empty,
        aborted=empty.astype(np.bool_),
        steps=empty,
        accepted=empty,
        proposed=empty,
        window=empty,
        bound=empty,
        rank=empty,
        profile=empty,
        histogram=empty.reshape(0, 0),
    )
    assert judge(batch, SLO, batch.inconsistent()).tolist() == []
