"""What is left for KV, from bytes, from a log and from a GPU's label."""

from __future__ import annotations

import pytest

from domain.pool_sizing.deployments import GIB
from specbudget.domain.pool_sizing import (
    Certainty,
    LimitVerdict,
    Span,
    TokenSpan,
    at_least,
    at_most,
    memory_from_bytes,
    memory_from_label,
    memory_from_log,
)


def test_bytes_leave_nothing_open() -> None:
    """85 % of 80 GiB less 40, 2 and 1 GiB, and 1.5 GiB kept for multimodal inputs."""
    memory = memory_from_bytes(before_load=80 * GIB, target_weights=40 * GIB, drafter_weights=2 * GIB, other=GIB)
    rest = memory.rest(0.85, reserved_gib=1.5)
    assert rest.is_exact
    assert rest.point == pytest.approx(80 * 0.85 - 43 - 1.5)
    assert memory.rest(0.85, without_drafter=True).point == pytest.approx(80 * 0.85 - 41)
    assert memory.certainty is Certainty.EXACT


def test_weights_laid_out_anew_are_an_estimate() -> None:
    """A share of error on 40 GiB goes both ways."""
    memory = memory_from_bytes(before_load=80 * GIB, target_weights=40 * GIB, drafter_weights=0, weights_error=0.05)
    rest = memory.rest(0.85)
    assert (rest.high - rest.low) == pytest.approx(4.0)
    assert memory.certainty is Certainty.ESTIMATE


def test_a_log_is_known_to_hundredths() -> None:
    """Both free amounts are within 0.005 GiB: 0.005 x (2 - f) of what is left."""
    memory = memory_from_log(
        before_load=78.42 * GIB, after_load=17.99 * GIB, target_weights=58.0 * GIB, drafter_weights=0.42 * GIB
    )
    rest = memory.rest(0.85)
    assert rest.point == pytest.approx(17.99 - 78.42 * 0.15)
    assert rest.high - rest.point == pytest.approx(0.005 * (2 - 0.85))
    assert rest.point - rest.low == pytest.approx(0.005 * (2 - 0.85))
    freed = memory.rest(0.85, without_drafter=True)
    assert freed.point - rest.point == pytest.approx(0.42)
    assert memory.certainty is Certainty.FROM_LOG


def test_a_label_promises_one_to_three_gib_too_much() -> None:
    """What is free before loading counts with the fraction."""
    memory = memory_from_label(gpu_memory=80 * GIB, target_weights=40 * GIB, drafter_weights=None)
    rest = memory.rest(0.85)
    assert (rest.low, rest.point, rest.high) == pytest.approx((0.85 * 77 - 40, 0.85 * 78 - 40, 0.85 * 79 - 40))
    assert memory.certainty is Certainty.ESTIMATE


def test_bounds_out_of_order_are_refused() -> None:
    """They would turn every verdict around."""
    with pytest.raises(ValueError, match="not in order"):
        Span(low=2.0, point=1.0, high=3.0)


@pytest.mark.parametrize(
    ("limit", "floor", "ceiling"),
    [
        (90, LimitVerdict.MET, LimitVerdict.BROKEN),
        (95, LimitVerdict.MET, LimitVerdict.UNDECIDED),
        (100, LimitVerdict.UNDECIDED, LimitVerdict.UNDECIDED),
        (105, LimitVerdict.UNDECIDED, LimitVerdict.MET),
        (106, LimitVerdict.BROKEN, LimitVerdict.MET),
    ],
)
def test_a_limit_is_settled_only_by_the_whole_span(limit: int, floor: LimitVerdict, ceiling: LimitVerdict) -> None:
    """95 to 105 tokens against a floor and a ceiling."""
    tokens = TokenSpan(low=95, point=100, high=105)
    assert at_least(tokens, limit) is floor
    assert at_most(tokens, limit) is ceiling
