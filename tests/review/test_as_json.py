"""The JSON that users read, made from a review that has something in every field."""

from __future__ import annotations

import json
import math
from pathlib import Path

from tests.review.reviews import START, sample_review

from specbudget.review.as_json import as_json

SAMPLE = Path(__file__).parent / "sample.json"


def test_the_json_is_the_one_that_is_documented() -> None:
    """The keys and values are those of the committed sample: scripts that people wrote go on working."""
    assert as_json(sample_review()) == SAMPLE.read_text(encoding="utf-8")


def test_a_finding_has_the_stretch_it_is_about() -> None:
    """Times are plain seconds since the epoch, inside the review."""
    document = json.loads(as_json(sample_review()))
    finding = document["findings"][0]
    assert START <= document["start"] <= finding["start"] < finding["end"] <= document["end"]
    assert finding["cause"] == "acceptance_drop"


def test_unknown_is_no_number() -> None:
    """What is not known stands as NaN in a track, and never as 0."""
    review = sample_review()
    gap = review.gaps[0]
    inside = (review.axis.times >= gap.start) & (review.axis.times <= gap.end)
    assert review.acceptance.request_length is not None
    assert all(math.isnan(value) for value in review.acceptance.request_length[inside])
