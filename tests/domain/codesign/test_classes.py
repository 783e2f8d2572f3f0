"""The tables of model classes agree with one another."""

from __future__ import annotations

import pytest

from specbudget.domain.codesign.architectures import IN_BOTH, KIMI_DELTA_ATTENTION, ONLY_IN_LAST
from specbudget.domain.codesign.capture_classes import CAPTURES, MAY_CAPTURE


def test_a_class_is_new_or_old() -> None:
    """None stands in both tables, and those with a rule of their own stand in one."""
    assert IN_BOTH.isdisjoint(ONLY_IN_LAST)
    assert KIMI_DELTA_ATTENTION | MAY_CAPTURE <= IN_BOTH | ONLY_IN_LAST


@pytest.mark.parametrize("word", CAPTURES)
def test_only_known_classes_hand_out_layers(word: str) -> None:
    """A class that the older release lacks cannot do so there."""
    first, later = CAPTURES[word]
    assert first <= IN_BOTH
    assert later <= IN_BOTH | ONLY_IN_LAST
    assert first.isdisjoint(later)


def test_ling_is_new_and_reads_to_dspark_only() -> None:
    """The published pair needs the newer release."""
    assert {"BailingMoeV3ForCausalLM", "LingDSparkModel"} <= ONLY_IN_LAST
    assert {word for word, (_, later) in CAPTURES.items() if "BailingMoeV3ForCausalLM" in later} == {"dspark"}
