"""What a review says of a stretch that shows only a part of what happened."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recordings import recording, write_history

from specbudget.history.reader import HistorySamples
from specbudget.review.model import Cause, Review
from specbudget.review.whole import chosen_service, review_of


def reviewed(scenario: str, folder: Path, begin: float, end: float) -> Review:
    """The review from `begin` seconds after the first sample to `end` seconds after it."""
    first, _ = write_history(recording(scenario), folder)
    samples = HistorySamples(folder, first + begin, first + end)
    return review_of(samples, chosen_service(samples, None), first + begin, first + end)


def test_a_fall_before_the_stretch_is_not_laid_on_the_start(tmp_path: Path) -> None:
    """Ten minutes after the drop the length is low all the time; that the pair was bad from its start nobody saw."""
    first = reviewed("acceptance-drop", tmp_path, 600, 900).findings[0]
    assert first.cause is Cause.LOW_THROUGHOUT
    assert "before this review" in first.title
    assert any("begin the review earlier" in said for said in first.evidence)


@pytest.mark.parametrize("scenario", ["steady", "acceptance-drop"])
def test_one_point_is_not_enough_to_call_it_uneventful(tmp_path: Path, scenario: str) -> None:
    """Within a second nothing can be seen to happen, whatever happens: that is unknown and no all-clear."""
    (only,) = reviewed(scenario, tmp_path, 404.5, 405.5).findings
    assert only.cause is Cause.UNKNOWN
    assert "Too little is known" in only.title


def test_a_stretch_that_was_hardly_recorded_is_not_called_uneventful(tmp_path: Path) -> None:
    """Seventeen healthy minutes of three hours say nothing of the rest, and the title says how much was seen."""
    (only,) = reviewed("steady", tmp_path, 0, 3 * 3600).findings
    assert only.cause is Cause.UNKNOWN
    assert "17 min of 180 min" in only.title or "of 3.0 h" in only.title


def test_a_healthy_stretch_with_a_short_hole_is_uneventful(tmp_path: Path) -> None:
    """A review that begins a few minutes before the first sample still knows most of what it is about."""
    (only,) = reviewed("steady", tmp_path, -300, 1000).findings
    assert only.cause is Cause.NOTHING
