"""Why a length is low, one cause at a time: each is named when it holds and ruled out when it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.review.made import START, made

from specbudget.catalog.sets import Artifact, StartBasis, Suspect
from specbudget.review.findings import findings
from specbudget.review.model import Cause, EngineStart
from specbudget.review.seen import Seen

FELL = {"default": [3.5] * 20 + [2.0] * 20}
STEPS = {"default": [1000.0] * 40}
AFTER = np.arange(40) >= 20
SAME = {Artifact.TARGET: ["aaaa1111"] * 40, Artifact.DRAFTER: ["dddd2222"] * 40}


def fell() -> Seen:
    return made(lengths=FELL, steps=STEPS, fingerprints=SAME, target=2.6)


def with_dtype(seen: Seen) -> Seen:
    held = {**seen.held, Artifact.DRAFTER: ("dddd2222",) * 20 + ("eeee3333",) * 20}
    return replace(seen, held=held, dtypes={Artifact.DRAFTER: ("bfloat16",) * 20 + ("fp8",) * 20})


def with_window(seen: Seen) -> Seen:
    window = np.where(AFTER, 4.0, 9.0)
    return replace(seen, review=replace(seen.review, acceptance=replace(seen.review.acceptance, window=window)))


def with_retractions(seen: Seen) -> Seen:
    lost = np.where(AFTER, 3.0, 0.0)
    return replace(seen, review=replace(seen.review, traffic=replace(seen.review.traffic, retractions=lost)))


def with_restart(seen: Seen) -> Seen:
    begun = EngineStart(replica="", started_at=START + 20 * 60 - 5, basis=StartBasis.LAUNCH, stages=(), seconds=30.0)
    return replace(seen, review=replace(seen.review, starts=(begun,)))


def suspected(cause: Suspect) -> Callable[[Seen], Seen]:
    return lambda seen: replace(seen, suspects={cause: AFTER}, source="request_log")


CASES: dict[Cause, Callable[[Seen], Seen]] = {
    Cause.ACCEPTANCE_DROP: lambda seen: seen,
    Cause.QUANTISATION: with_dtype,
    Cause.ADAPTIVE_WINDOW: with_window,
    Cause.KV_PRESSURE: with_retractions,
    Cause.ENGINE_RESTART: with_restart,
    Cause.CAPPED: suspected(Suspect.CAPPED),
    Cause.PREFIX_HITS: suspected(Suspect.PREFIX_HITS),
    Cause.LONG_CONTEXT: suspected(Suspect.LONG_CONTEXT),
    Cause.MIX: suspected(Suspect.MIX),
}


@pytest.mark.parametrize(("cause", "change"), CASES.items())
def test_the_cause_that_holds_is_named(cause: Cause, change: Callable[[Seen], Seen]) -> None:
    """And only it; the title says the length before and in the fall."""
    first = findings(change(fell()))[0]
    assert first.cause is cause, first.title
    assert "3.50 to 2.00" in first.title
    assert first.start == START + 20 * 60


def test_what_cannot_be_told_is_said_and_not_ruled_out() -> None:
    """Without records, fingerprints and pools these explanations stay open."""
    (found,) = findings(made(lengths=FELL, steps=STEPS, target=2.6))
    open_ones = [told for told in found.ruled_out if "cannot be told" in told]
    assert {told.partition(":")[0] for told in open_ones} >= {
        "another target",
        "quantisation",
        "prefix-cache hits",
        "context length",
        "KV pressure",
        "an engine restart",
    }


def test_a_length_that_was_low_from_the_start_is_no_fall() -> None:
    """The pair is looked at, and the co-design rule that fails is named with it."""
    low = made(lengths={"default": [1.1] * 40}, steps=STEPS, fingerprints=SAME, target=2.6)
    (found,) = findings(low)
    assert found.cause is Cause.FROM_BOOT
    (found,) = findings(replace(low, failing={"taps_range": np.ones(40, dtype=np.bool_)}))
    assert found.cause is Cause.PAIR_UNFIT
    assert "taps_range" in "\n".join(found.evidence)


def test_a_length_that_breathes_is_no_incident() -> None:
    """15 % lower at night, above target and break-even: nothing happened."""
    (found,) = findings(made(lengths={"default": [3.5] * 20 + [3.0] * 20}, steps=STEPS, target=2.6))
    assert found.cause is Cause.NOTHING


def test_a_small_fall_below_the_target_is_one() -> None:
    """The same 15 % from just above the target to below it."""
    (found,) = findings(made(lengths={"default": [2.8] * 20 + [2.4] * 20}, steps=STEPS, target=2.6))
    assert found.cause is Cause.ACCEPTANCE_DROP
