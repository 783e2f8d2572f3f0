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


def with_settings(whole: str, **settings: str) -> Fingerprints:
    """A model whose config holds these."""
    return Fingerprints(whole=whole, config=whole, settings=settings)


BEFORE = with_settings("dddd2222", block_size="8", target_layer_ids="[1, 4]", note="sha256:aa", torch_dtype='"bf16"')
CHANGED = with_settings("eeee4444", block_size="16", target_layer_ids="[1, 5]", note="sha256:bb", mask_token_id="7")


def test_the_settings_that_changed_are_named() -> None:
    """Each with its old and new value; one that is known by its digest is another, one may be new or gone."""
    found = pair_change(target_before=TARGET, drafter_before=BEFORE, target=TARGET, drafter=CHANGED)
    assert (
        "drafter changed (config: block_size 8 → 16, mask_token_id is new, 7, note is another, "
        "target_layer_ids [1, 4] → [1, 5], torch_dtype is gone)"
    ) in found.sentence()


def test_a_drafter_of_other_taps_touches_acceptance_in_words() -> None:
    """The KV budget is due, as ever, and the sentence says that acceptance is touched as well, and by what."""
    found = pair_change(target_before=TARGET, drafter_before=BEFORE, target=TARGET, drafter=CHANGED)
    assert found.plan is RecheckPlan.KV
    assert "block_size, mask_token_id, note, target_layer_ids may change what is accepted too" in found.sentence()
    assert "another drafter changes what is accepted too" in change(TARGET, OTHER_DRAFTER).sentence()


def test_a_target_of_other_heads_touches_the_pools_in_words() -> None:
    """The acceptance check is due, and the pools are to be judged anew where a setting sizes them."""
    before = with_settings("aaaa1111", **{"text_config.num_key_value_heads": "8", "rope_theta": "1e6"})
    now = with_settings("bbbb3333", **{"text_config.num_key_value_heads": "4", "rope_theta": "1e6"})
    found = pair_change(target_before=before, drafter_before=DRAFTER, target=now, drafter=DRAFTER)
    assert found.plan is RecheckPlan.ACCEPTANCE
    assert "text_config.num_key_value_heads sizes its KV too: judge the pools anew" in found.sentence()
    assert "sizes its KV" not in change(OTHER, DRAFTER).sentence()


def test_settings_alone_decide_nothing() -> None:
    """They name what a digest found; a model whose digests are equal is the same."""
    before = Fingerprints(whole="aaaa1111", config="c1", settings={"a": "1"})
    now = Fingerprints(whole="aaaa1111", config="c1", settings={"a": "2"})
    assert compare(before, now).change is Change.SAME
    assert compare(before, Fingerprints(whole="bbbb3333", config="c2")).settings == ()


def test_many_changes_are_counted() -> None:
    """A drafter of another family differs in nearly everything: six are named."""
    before = with_settings("dddd2222", **{f"k{number:02}": "1" for number in range(20)})
    now = with_settings("eeee4444", **{f"k{number:02}": "2" for number in range(20)})
    sentence = pair_change(target_before=TARGET, drafter_before=before, target=TARGET, drafter=now).sentence()
    assert "k05 1 → 2 and 14 more)" in sentence
    assert "k06" not in sentence
