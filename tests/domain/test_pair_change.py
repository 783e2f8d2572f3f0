"""What changed since the pair was approved, and which plan is due."""

from __future__ import annotations

import pytest

from specbudget.catalog import sets
from specbudget.domain.pair_change import Change, Fingerprints, PairChange, RecheckPlan, compare, pair_change

TARGET = Fingerprints(whole="aaaa1111", config="c1", tokenizer="t1", index="i1", headers="h1")
DRAFTER = Fingerprints(whole="dddd2222", config="c2", headers="h2")
OTHER = Fingerprints(whole="bbbb3333", config="c1", tokenizer="t1", index="i1", headers="h3")
OTHER_DRAFTER = Fingerprints(whole="eeee4444", config="c2", headers="h4")


def change(target: Fingerprints | None, drafter: Fingerprints | None) -> PairChange:
    """The pair of TARGET and DRAFTER, now with these."""
    return pair_change(target_before=TARGET, drafter_before=DRAFTER, target=target, drafter=drafter)


@pytest.mark.parametrize(
    ("target", "drafter", "plan", "words"),
    [
        (TARGET, DRAFTER, None, "the pair that was approved"),
        (OTHER, DRAFTER, RecheckPlan.ACCEPTANCE, "target changed (headers), drafter unchanged: pair not validated"),
        (TARGET, OTHER_DRAFTER, RecheckPlan.KV, "KV budget due"),
        (OTHER, OTHER_DRAFTER, RecheckPlan.TWO_MODEL, "whole two-model plan due"),
        (None, DRAFTER, None, "target unknown"),
        (OTHER, None, RecheckPlan.ACCEPTANCE, "drafter unknown"),
    ],
    ids=[
        "nothing changed",
        "the target changed while the drafter stayed",
        "the drafter changed",
        "both changed",
        "the target cannot be read",
        "the target changed and the drafter cannot be read",
    ],
)
def test_the_change_names_the_plan(
    target: Fingerprints | None, drafter: Fingerprints | None, plan: RecheckPlan | None, words: str
) -> None:
    """Each kind of change has its plan, and the sentence says what changed and what to do."""
    found = change(target, drafter)
    assert found.plan is plan
    assert words in found.sentence()


def test_both_changed_sets_one_plan_alone() -> None:
    """The two-model plan covers the other two, which are not due beside it."""
    assert change(OTHER, OTHER_DRAFTER).due == {
        RecheckPlan.ACCEPTANCE: False,
        RecheckPlan.KV: False,
        RecheckPlan.TWO_MODEL: True,
    }


def test_the_same_pair_has_nothing_due() -> None:
    """Every plan is answered with no."""
    assert change(TARGET, DRAFTER).due == dict.fromkeys(RecheckPlan, False)


@pytest.mark.parametrize(
    "now",
    [None, Fingerprints(), Fingerprints(whole="aaaa1111", config="c1", index="i1", headers="h1")],
    ids=["unread", "unreadable", "the tokenizer is gone"],
)
def test_an_unknown_fingerprint_is_never_unchanged(now: Fingerprints | None) -> None:
    """What cannot be compared answers no plan with no."""
    found = change(now, DRAFTER)
    assert found.target.change is Change.UNKNOWN
    assert (found.is_known, found.due) == (False, {})


def test_without_an_earlier_pair_nothing_is_known() -> None:
    """A service without a lock has neither a recheck due nor a clean record."""
    found = pair_change(target_before=None, drafter_before=None, target=TARGET, drafter=DRAFTER)
    assert (found.is_known, found.plan) == (False, None)


def test_a_part_that_was_not_recorded_says_nothing() -> None:
    """A tokenizer that appears beside the same weights is no change."""
    before = Fingerprints(whole="aaaa1111", config="c1")
    assert compare(before, TARGET).change is Change.SAME


def test_another_tokenizer_is_another_model() -> None:
    """The tokenizer is in no other digest and counts by itself."""
    found = compare(TARGET, Fingerprints(whole="aaaa1111", config="c1", tokenizer="t2", index="i1", headers="h1"))
    assert (found.change, found.parts) == (Change.CHANGED, ("tokenizer",))


def test_only_the_whole_digest_is_known_and_differs() -> None:
    """A lock that recorded one digest per model still tells a change."""
    found = compare(Fingerprints(whole="aaaa1111"), Fingerprints(whole="bbbb3333"))
    assert (found.change, found.parts) == (Change.CHANGED, ("whole",))


def test_the_plans_are_the_labels_that_are_declared() -> None:
    """The series' closed set and the domain agree."""
    assert [plan.value for plan in RecheckPlan] == [plan.value for plan in sets.RecheckPlan]
