"""The review of every scenario, from a history that holds what a real Prometheus recorded of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recordings import recording, write_history
from tests.review.planted import PLANTED

from specbudget.history.reader import HistorySamples
from specbudget.review.model import Cause, Review
from specbudget.review.whole import chosen_service, review_of
from specbudget.simulate.scenarios import SCENARIOS


def reviewed(scenario: str, folder: Path) -> Review:
    start, end = write_history(recording(scenario), folder)
    samples = HistorySamples(folder, start, end)
    return review_of(samples, chosen_service(samples, None), start, end)


def test_every_scenario_has_a_planted_cause() -> None:
    """A new scenario is also reviewed."""
    assert set(PLANTED) == set(SCENARIOS)


@pytest.mark.parametrize(("scenario", "cause"), sorted(PLANTED.items()))
def test_the_planted_cause_is_named_first(scenario: str, cause: Cause, tmp_path: Path) -> None:
    """Whoever reads one line reads the right one."""
    first = reviewed(scenario, tmp_path).findings[0]
    assert first.cause is cause, first.title
    assert first.evidence


@pytest.mark.parametrize("scenario", sorted(name for name, cause in PLANTED.items() if cause is Cause.NOTHING))
def test_nothing_else_is_found_where_nothing_happened(scenario: str, tmp_path: Path) -> None:
    """A healthy stretch has one finding, which says so and what was looked at."""
    (only,) = reviewed(scenario, tmp_path).findings
    assert only.cause is Cause.NOTHING
    assert only.ruled_out


@pytest.mark.parametrize("scenario", ["acceptance-drop", "collapse", "slow-decay", "mix-shift"])
def test_the_competing_explanations_of_a_fall_are_told(scenario: str, tmp_path: Path) -> None:
    """Pair, number format, window, cache, context, KV pressure and a restart are ruled out first."""
    first = reviewed(scenario, tmp_path).findings[0]
    told = "\n".join(first.ruled_out)
    for name in (
        "another target",
        "another drafter",
        "quantisation",
        "verify window",
        "prefix-cache",
        "context length",
        "KV pressure",
        "an engine restart",
    ):
        assert name in told


def test_a_mix_is_told_with_both_parts_of_the_change(tmp_path: Path) -> None:
    """The shares explain all of it: what no profile's own length does."""
    first = reviewed("mix-shift", tmp_path).findings[0]
    assert "no profile became worse" in first.title
    assert "default 6.1" in first.evidence[0]
    assert "hard 3.1" in first.evidence[0]


def test_memory_is_told_by_rank(tmp_path: Path) -> None:
    """Two data-parallel ranks are two tracks, with both models' pools and the split of the device."""
    memory = reviewed("dp2", tmp_path).memory
    assert [track.place.rank for track in memory] == ["0", "1"]
    for track in memory:
        assert track.device
        assert track.target.capacity_bytes is not None
        assert track.drafter.capacity_bytes is not None
        assert track.cost_tokens is not None
