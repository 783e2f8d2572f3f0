"""What length to expect of traffic, and whether a change came from its mix."""

from __future__ import annotations

import numpy as np
import pytest

from specbudget.domain.traffic_mix import LENGTH_BIN, Tally, expected_length, mix_and_rate, reweighted_groups

DAY_A = {"en": Tally(steps=9000, accepted=18000), "zh": Tally(steps=1000, accepted=500)}
DAY_B = {"en": Tally(steps=4000, accepted=8000), "zh": Tally(steps=6000, accepted=3000)}


def test_the_expected_length_is_weighted_by_verify_steps() -> None:
    """(9000 x 3.0 + 1000 x 1.5) / 10000 = 2.85; no mean of means."""
    lengths = {"en": 3.0, "zh": 1.5}
    assert expected_length({"en": 9000, "zh": 1000}, lengths) == pytest.approx(2.85)
    assert expected_length({"en": 0.4, "zh": 0.6}, lengths) == pytest.approx(2.10)


def test_a_profile_of_unknown_length_leaves_nothing_to_expect() -> None:
    """Unknown is no zero; a profile without steps does not matter."""
    assert expected_length({"en": 1, "ja": 1}, {"en": 3.0}) is None
    assert expected_length({"en": 1, "ja": 0}, {"en": 3.0}) == 3.0
    assert expected_length({}, {}) is None


def test_a_change_that_is_all_mix() -> None:
    """2.85 -> 2.10 with no language's own length moved: -0.75 from the mix, nothing from the rates."""
    found = mix_and_rate(DAY_A, DAY_B)
    assert found is not None
    assert (found.before, found.after) == (pytest.approx(2.85), pytest.approx(2.10))
    assert (found.mix, found.rate) == (pytest.approx(-0.75), pytest.approx(0.0))


def test_a_change_that_is_all_rate() -> None:
    """The same shares with every length lower: nothing from the mix."""
    lower = {name: Tally(steps=t.steps, accepted=t.accepted * 0.5) for name, t in DAY_A.items()}
    found = mix_and_rate(DAY_A, lower)
    assert found is not None
    assert (found.mix, found.rate) == (pytest.approx(0.0), pytest.approx(found.change))


def test_mix_and_rate_always_add_up() -> None:
    """A profile that is new or gone changes nothing of the sum."""
    found = mix_and_rate(DAY_A, {"en": Tally(steps=500, accepted=700), "ja": Tally(steps=500, accepted=100)})
    assert found is not None
    assert found.mix + found.rate == pytest.approx(found.change)


def test_one_profile_has_no_mix() -> None:
    """Without a second group there is nothing to shift."""
    assert mix_and_rate({"default": DAY_A["en"]}, {"default": DAY_B["en"]}) is None
    assert mix_and_rate(DAY_A, DAY_B, min_steps=10_001) is None


def histogram(parts: list[tuple[float, float, int]]) -> list[float]:
    """Requests by length: normal groups of (mean, deviation, requests)."""
    generator = np.random.default_rng(7)
    drawn = np.concatenate([generator.normal(mean, deviation, count) for mean, deviation, count in parts])
    bins = np.clip((drawn - 1.0) / LENGTH_BIN, 0, 159).astype(np.int64)
    return np.bincount(bins, minlength=160).astype(np.float64).tolist()


HARD_FEW, HARD_MANY = [(4.6, 0.4, 900), (1.9, 0.3, 100)], [(4.6, 0.4, 100), (1.9, 0.3, 900)]


def test_two_groups_in_other_shares() -> None:
    """The hard tenth of the traffic becomes nine tenths; both groups keep their lengths."""
    found = reweighted_groups(histogram(HARD_FEW), histogram(HARD_MANY))
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(1.9, abs=0.1), pytest.approx(4.6, abs=0.1))
    assert (found.share_before, found.share_after) == (pytest.approx(0.1, abs=0.01), pytest.approx(0.9, abs=0.01))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([(4.6, 0.4, 1000)], [(1.9, 0.3, 1000)]),
        (HARD_FEW, [(4.6, 0.4, 890), (1.9, 0.3, 110)]),
        (HARD_MANY, HARD_FEW),
        (HARD_FEW, [(3.0, 0.4, 100), (1.1, 0.05, 900)]),
        ([(4.0, 0.9, 1000)], [(3.4, 0.9, 1000)]),
        ([(4.6, 0.4, 980), (1.9, 0.3, 20)], [(4.6, 0.4, 200), (1.9, 0.3, 800)]),
        ([(4.6, 0.4, 9), (1.9, 0.3, 1)], [(4.6, 0.4, 1), (1.9, 0.3, 9)]),
    ],
    ids=[
        "everything fell",
        "the shares hardly moved",
        "the mix got better",
        "both groups fell as well",
        "one broad group",
        "a group that hardly existed",
        "ten requests",
    ],
)
def test_what_is_no_shift_of_the_mix(
    before: list[tuple[float, float, int]], after: list[tuple[float, float, int]]
) -> None:
    """A fall of the length itself is never explained away as traffic."""
    assert reweighted_groups(histogram(before), histogram(after)) is None


def test_histograms_of_different_length_and_empty_ones() -> None:
    """Missing bins are empty; nothing is found in nothing."""
    assert reweighted_groups([], []) is None
    assert reweighted_groups([100.0], [0.0, 50.0]) is None
    assert reweighted_groups([0.0, 100.0, 0.0], [0.0, 100.0]) is None
