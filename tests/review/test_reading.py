"""Several replicas, resets, holes: what is summed, what is told apart, and what stays unknown."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from specbudget.catalog import series
from specbudget.catalog.series import SERVICE_LABEL, SeriesDef
from specbudget.domain.axis import Axis, Row
from specbudget.domain.reduction import Reduction
from specbudget.review.model import Cause
from specbudget.review.reading import chosen_step
from specbudget.review.whole import review_of

START, STEP, POINTS = 1_796_000_010.0, 15.0, 80
ALONG = np.arange(POINTS, dtype=np.float64)


class Told:
    """Samples that are given by hand; each value lies on a point of the axis."""

    kind, place, keeps_alerts = "test", "here", False

    def __init__(self, told: Mapping[str, list[tuple[dict[str, str], np.ndarray]]]) -> None:
        self._told = told

    def services(self) -> tuple[str, ...]:
        return ("chat",)

    def interval(self, service: str) -> float | None:
        return STEP

    def extent(self, service: str) -> tuple[float, float] | None:
        return START, START + STEP * POINTS

    def rows(
        self, name: str, matchers: Mapping[str, str], axis: Axis, reduction: Reduction, lookback: float
    ) -> list[Row]:
        assert axis.count == POINTS
        return [
            Row(labels={SERVICE_LABEL: "chat", **labels}, values=values)
            for labels, values in self._told.get(name, [])
            if all({SERVICE_LABEL: "chat", **labels}.get(key) == value for key, value in matchers.items())
        ]


def of(
    wanted: SeriesDef, *rows: tuple[dict[str, str], np.ndarray]
) -> dict[str, list[tuple[dict[str, str], np.ndarray]]]:
    return {wanted.full_name: list(rows)}


A, B = {"instance": "a"}, {"instance": "b"}


def two_replicas(*, b_from: int = 0, reset_at: int | None = None) -> Told:
    """Each replica makes 1,000 verify steps between points, a with 3.0 and b with 2.0 accepted drafts a step."""
    there = np.where(b_from <= ALONG, 1.0, np.nan)
    steps_a = 1000.0 * ALONG
    if reset_at is not None:
        steps_a = np.where(reset_at <= ALONG, 1000.0 * (ALONG - reset_at + 1), steps_a)
    steps_b = 1000.0 * (ALONG - b_from) * there
    counted = {"rank": "0", "profile": "default"}
    return Told(
        of(series.BUILD_INFO, (A, ALONG * 0 + 1), (B, there))
        | of(series.VERIFY_STEPS, ({**A, **counted}, steps_a), ({**B, **counted}, steps_b))
        | of(series.ACCEPTED_DRAFTS, ({**A, **counted}, 3 * steps_a), ({**B, **counted}, 2 * steps_b))
        | of(series.ENGINE_RUNNING, ({**A, "rank": "0"}, ALONG * 0 + 4), ({**B, "rank": "0"}, there * 6))
    )


def reviewed(told: Told):
    return review_of(told, "chat", START, START + STEP * (POINTS - 1))


def test_a_length_is_a_ratio_of_sums_over_replicas() -> None:
    """3.0 and 2.0 accepted drafts a step at equal work are a length of 3.5, and no mean of means."""
    review = reviewed(two_replicas())
    assert review.acceptance.request_length is not None
    np.testing.assert_allclose(review.acceptance.request_length[1:], 3.5)
    assert review.traffic.running is not None
    assert set(review.traffic.running) == {10.0}


def test_a_reset_of_one_replica_is_neither_negative_nor_counted_twice() -> None:
    """A counter that fell grew from 0, whatever the others did."""
    review = reviewed(two_replicas(reset_at=40))
    assert review.acceptance.steps is not None
    np.testing.assert_allclose(review.acceptance.steps[1:], 2000.0)


def test_a_replica_that_was_not_recorded_is_a_gap_of_its_own() -> None:
    """Named where there are several; the service is known meanwhile."""
    gaps = reviewed(two_replicas(b_from=30)).gaps
    assert [(gap.replica, gap.reason) for gap in gaps] == [("b", "this replica was not recorded")]
    assert gaps[0].end == START + 29 * STEP


def test_nothing_at_all_is_unknown_and_not_quiet() -> None:
    """A stretch without samples has no finding that all was well."""
    review = reviewed(Told({}))
    assert [finding.cause for finding in review.findings] == [Cause.UNKNOWN]
    assert review.acceptance.request_length is None
    assert review.memory == ()


def test_a_hole_in_the_middle_is_told() -> None:
    """Between two recorded points; before the first and after the last nobody expects anything."""
    there = np.where((ALONG >= 30) & (ALONG < 50), np.nan, 1.0)
    there[:5] = np.nan
    review = reviewed(Told(of(series.BUILD_INFO, (A, there))))
    (found,) = review.findings
    assert found.cause is Cause.SIDECAR_BLIND
    assert found.id == "sidecar.unrecorded"
    assert found.start == START + 30 * STEP


@pytest.mark.parametrize(
    ("hours", "interval", "step"), [(0.3, 15, 15), (6, 15, 15), (24 * 30, 15, 240), (24 * 7, 60, 60), (1, 60, 60)]
)
def test_the_step_follows_from_stretch_and_samples(hours: float, interval: float, step: float) -> None:
    """Never finer than the samples, and never more points than a storage gives."""
    assert chosen_step(0.0, hours * 3600, interval) == step


def test_a_profile_that_appears_later_grew_from_nothing() -> None:
    """Its first requests count: its sidecar was read before and did not have it."""
    late = np.where(ALONG >= 10, 500.0 + 1000.0 * (ALONG - 10), np.nan)
    told = Told(
        of(series.BUILD_INFO, (A, ALONG * 0 + 1))
        | of(
            series.VERIFY_STEPS,
            ({**A, "rank": "0", "profile": "default"}, 1000.0 * ALONG),
            ({**A, "rank": "0", "profile": "hard"}, late),
        )
        | of(series.ACCEPTED_DRAFTS, ({**A, "rank": "0", "profile": "default"}, 3000.0 * ALONG))
    )
    steps = reviewed(told).acceptance.steps
    assert steps is not None
    assert steps[10] == 1500.0
