"""Likely causes of a low or strange length, and the guards that keep them from guessing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specbudget.catalog import sets
from specbudget.domain.pair_change import Change, ModelChange
from specbudget.domain.suspects import RULES, Evidence, Suspect, Tally, TrendPoint, suspects

CHANGED = ModelChange(change=Change.CHANGED, parts=("headers",))


def tally(length: float, steps: float = 5000, requests: float = 100) -> Tally:
    """Steps that accepted this much."""
    return Tally(steps=steps, accepted=steps * (length - 1.0), requests=requests)


HEALTHY = Evidence(
    target_length=2.5,
    window=9,
    recent=tally(4.6),
    since_start=tally(4.6, steps=90_000),
    best_since_start=4.9,
    trend_points=[TrendPoint(hours=h / 10, length=4.6 + 0.05 * (h % 3), steps=5000) for h in range(20)],
    profiles={"default": tally(4.2), "code": tally(5.2)},
    earlier_profiles={"default": tally(4.2), "code": tally(5.3)},
    lengths=[0.0] * 30 + [500.0] * 10,
    earlier_lengths=[0.0] * 30 + [500.0] * 10,
    cached=tally(4.5),
    uncached=tally(4.6),
    long_prompts=tally(4.3),
    short_prompts=tally(4.6),
    retractions=0,
    used_ratio=0.6,
    high_water=0.9,
    cap_length=0.0,
    reports=500,
    lowest_report=3.9,
    highest_report=5.3,
    target_change=ModelChange(change=Change.SAME),
    drafter_change=ModelChange(change=Change.SAME),
)
BAD_BOOT = replace(HEALTHY, window=4, recent=tally(1.0), since_start=tally(1.0), best_since_start=1.0)
LEAK = [3.4, 3.36, 3.25, 3.1, 2.9, 2.7, 2.45, 2.2, 1.9]
LOW = replace(HEALTHY, recent=tally(1.9))

CASES: list[tuple[str, Evidence, Suspect, str]] = [
    ("nothing was ever accepted", BAD_BOOT, Suspect.FROM_BOOT, "1.00 over 5000 verify steps; the drafter contributes"),
    (
        "a fifth is accepted, from the start",
        replace(BAD_BOOT, recent=tally(1.6), since_start=tally(1.6), best_since_start=1.7),
        Suspect.FROM_BOOT,
        "never reached 2.5: 1.60",
    ),
    (
        "a bad start without a target",
        replace(BAD_BOOT, target_length=None, recent=tally(1.1), since_start=tally(1.1), best_since_start=1.2),
        Suspect.FROM_BOOT,
        "never reached 1.3",
    ),
    ("another drafter", replace(HEALTHY, drafter_change=CHANGED), Suspect.DRAFTER_CHANGED, "headers"),
    ("another target", replace(LOW, target_change=CHANGED), Suspect.TARGET_CHANGED, "target's checkpoint"),
    ("verification is capped", replace(LOW, cap_length=2.4, block_length=3.8), Suspect.CAPPED, "would reach 3.80"),
    (
        "the traffic moved to the hard profile",
        replace(
            HEALTHY,
            recent=tally(2.1),
            earlier_profiles={"en": tally(3.0, 9000), "zh": tally(1.5, 1000)},
            profiles={"en": tally(3.0, 4000), "zh": tally(1.5, 6000)},
        ),
        Suspect.MIX,
        "from 2.85 to 2.10; -0.75 of it comes from the traffic mix, +0.00",
    ),
    (
        "the same without profiles",
        replace(
            HEALTHY,
            profiles={"default": tally(2.2)},
            earlier_profiles={"default": tally(4.3)},
            earlier_lengths=[0.0] * 9 + [100.0] + [0.0] * 26 + [900.0],
            lengths=[0.0] * 9 + [900.0] + [0.0] * 26 + [100.0],
        ),
        Suspect.MIX,
        "from 10% to 90%",
    ),
    (
        "cached prefixes collapse",
        replace(HEALTHY, uncached=tally(3.1, requests=3), cached=tally(1.467, requests=3)),
        Suspect.PREFIX_HITS,
        "reach 1.47, those without 3.10, 0.47 of it",
    ),
    ("long prompts collapse", replace(HEALTHY, long_prompts=tally(2.0)), Suspect.LONG_CONTEXT, "reach 2.00"),
    ("requests are thrown back", replace(HEALTHY, retractions=7), Suspect.KV_PRESSURE, "7 requests"),
    ("the pool is nearly full", replace(HEALTHY, used_ratio=0.95), Suspect.KV_PRESSURE, "95%"),
    (
        "a leak, in its first hour",
        replace(
            HEALTHY,
            recent=tally(2.9),
            trend_points=[TrendPoint(hours=i / 4, length=at, steps=900) for i, at in enumerate(LEAK[:5])],
        ),
        Suspect.DECAY,
        "-0.504 an hour over 60 minutes",
    ),
    ("text that repeats itself", replace(HEALTHY, recent=tally(8.8)), Suspect.REPETITION, "8.80 in a window of 9"),
    ("a simulated length", replace(HEALTHY, simulated_length=3.5), Suspect.SIMULATED, "SGLANG_SIMULATE_ACC_LEN"),
    (
        "a constant length",
        replace(HEALTHY, lowest_report=3.50, highest_report=3.50),
        Suspect.SIMULATED,
        "500 batch reports in a row say 3.50",
    ),
]


@pytest.mark.parametrize(("evidence", "cause", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_evidence_names_its_cause_alone(evidence: Evidence, cause: Suspect, words: str) -> None:
    """One thing is wrong, one cause is named, and the sentence holds its numbers."""
    found = suspects(evidence)
    assert list(found) == [cause], found
    assert words in found[cause]


def test_a_healthy_service_has_no_suspects() -> None:
    """Nothing is suspected where nothing is strange."""
    assert suspects(HEALTHY) == {}


def test_nothing_known_is_nothing_suspected() -> None:
    """Without evidence there is no cause."""
    assert suspects(Evidence()) == {}


@pytest.mark.parametrize(
    "evidence",
    [
        replace(BAD_BOOT, best_since_start=3.0),
        replace(BAD_BOOT, since_start=None),
        replace(BAD_BOOT, since_start=tally(1.0, steps=400)),
        replace(BAD_BOOT, recent=tally(3.0)),
        replace(LOW, cap_length=2.4, block_length=2.2),
        replace(HEALTHY, cap_length=2.4, block_length=3.8),
        replace(HEALTHY, cached=tally(1.4, steps=100)),
        replace(HEALTHY, cached=tally(1.4, requests=2)),
        replace(HEALTHY, cached=tally(3.5)),
        replace(HEALTHY, long_prompts=tally(2.0, steps=100)),
        replace(HEALTHY, used_ratio=0.95, high_water=None),
        replace(HEALTHY, recent=tally(8.8, steps=100)),
        replace(HEALTHY, recent=tally(1.0, steps=600), window=1),
        replace(HEALTHY, reports=5, lowest_report=3.5, highest_report=3.5),
        replace(HEALTHY, lowest_report=9.0, highest_report=9.0),
        replace(HEALTHY, lowest_report=1.0, highest_report=1.0),
        replace(
            HEALTHY,
            earlier_profiles={"en": tally(3.0, 9000), "zh": tally(1.5, 1000)},
            profiles={"en": tally(2.0, 9000), "zh": tally(1.2, 1000)},
        ),
        replace(HEALTHY, target_change=ModelChange(change=Change.UNKNOWN)),
    ],
    ids=[
        "it was good before",
        "its start was not seen",
        "too few steps since the start",
        "it is good now",
        "capped, and the block is no better",
        "capped and still above the target",
        "few cached steps",
        "two cached requests",
        "cached requests are a little lower",
        "few steps of long prompts",
        "no mark for a full pool",
        "few steps near the window",
        "a window of one",
        "few reports",
        "reports at the window",
        "reports of nothing accepted",
        "every profile fell",
        "a checkpoint that cannot be compared",
    ],
)
def test_guards_keep_quiet(evidence: Evidence) -> None:
    """Too little evidence, or evidence against the cause, names none."""
    assert suspects(evidence) == {}


def test_a_dead_drafter_without_a_target_that_fell_later_is_not_from_boot() -> None:
    """A collapse after good hours is another cause than a bad start."""
    later = replace(HEALTHY, recent=tally(1.1), since_start=tally(4.0, 90_000), best_since_start=4.9)
    assert Suspect.FROM_BOOT not in suspects(later)


def test_every_cause_has_a_rule_and_the_labels_that_are_declared() -> None:
    """The series' closed set and the domain agree, and no cause is without evidence."""
    assert [cause.value for cause in Suspect] == [cause.value for cause in sets.Suspect]
    assert list(RULES) == list(Suspect)
    assert {cause for _, _, cause, _ in CASES} == set(Suspect)
