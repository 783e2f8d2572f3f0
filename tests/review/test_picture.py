"""The review as one picture."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.review.reviews import START, sample_review

from specbudget.assets import asset
from specbudget.domain.axis import Axis
from specbudget.review.model import Review
from specbudget.review.page.picture import COLOURS, picture

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_picture_is_made_and_is_the_same_each_time() -> None:
    """Two pictures of one review are equal, byte by byte."""
    first, second = picture(sample_review()), picture(sample_review())
    assert first.startswith(PNG)
    assert first == second


def test_a_review_without_tracks_is_a_picture_of_its_words() -> None:
    """Nothing to draw is no fault, and words with signs of formulas are words."""
    finding = replace(sample_review().findings[0], title="costs $1 and $2_x^", evidence=("$\\frac$",))
    axis = Axis(start=START, step=15.0, count=3)
    bare = Review(service="s_$", start=START, end=START + 30, axis=axis, sources=(), findings=(finding,))
    assert picture(bare).startswith(PNG)


def test_colours_are_those_of_the_pages() -> None:
    """The picture's colours are the light theme's."""
    theme = asset("theme.css").split("@media")[0]
    told = {name: re.search(rf"--chart-{name}: (#[0-9a-f]{{6}})", theme) for name in COLOURS}
    assert {name: found.group(1) for name, found in told.items() if found is not None} == COLOURS
