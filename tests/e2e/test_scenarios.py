"""Every scenario of the stand-in, through real processes, against its exact totals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from e2e.deployment import Deployment, deployed, stop
from specbudget.catalog import series
from specbudget.demo.readings import Reading

pytestmark = pytest.mark.slow

COUNTERS = {
    "verify_steps": series.VERIFY_STEPS,
    "proposed_drafts": series.PROPOSED_DRAFTS,
    "accepted_drafts": series.ACCEPTED_DRAFTS,
}


def records(reading: Reading) -> float:
    """Records that were counted."""
    return reading.value(series.RECORDS, source="request_log", outcome="ok") or 0.0


def drained(deployment: Deployment, truth: dict[str, Any]) -> Reading:
    """The reading once every record of the ended engine is counted."""
    return deployment.wait_for("every record counted", lambda r: records(r) >= truth["total"]["records"])


def assert_exact(reading: Reading, truth: dict[str, Any]) -> None:
    """Counters by rank, positions and exclusions equal the stand-in's totals, to the last digit."""
    assert records(reading) == truth["total"]["records"]
    for rank, totals in truth["by_rank"].items():
        for name, counter in COUNTERS.items():
            assert reading.value(counter, rank=rank, profile="default") == totals[name], (rank, name)
    # of a request aborted in the queue SGLang records one output token, which nobody generated
    told = truth["total"]["completion_tokens"] + truth["total"]["never_ran"]
    assert reading.total(series.GENERATED_TOKENS) == told
    histogram = truth["total"]["histogram"]
    for position in range(1, len(histogram)):
        counted = reading.value(series.DRAFT_POSITION_ACCEPTED, position=str(position))
        assert counted == sum(histogram[position:]), position
    for outcome in ("malformed", "oversized", "duplicate", "skipped"):
        assert reading.value(series.RECORDS, source="request_log", outcome=outcome) == 0.0
    aborted = reading.value(series.SLO_EXCLUDED, reason="aborted", profile="default")
    assert aborted == truth["total"]["aborted"]
    assert reading.value(series.SLO_EXCLUDED, reason="invalid", profile="default") == 0.0
    events = sum(reading.all(series.SLO_EVENTS).values())
    excluded = sum(reading.all(series.SLO_EXCLUDED).values())
    assert events + excluded == truth["total"]["records"]


@pytest.mark.parametrize(
    ("scenario", "speed", "seconds"),
    [("steady", 1.0, 14.0), ("dp2", 1.0, 14.0), ("restart", 5.0, 14.0), ("log-rotation", 5.0, 14.0)],
)
def test_every_record_is_counted_once_and_exactly(scenario: str, speed: float, seconds: float, tmp_path: Path) -> None:
    """Whatever rotates or restarts, counters equal what the stand-in says that it did."""
    with deployed(scenario, tmp_path, speed=speed) as deployment:
        time.sleep(seconds)
        truth = deployment.end_engine()
        assert truth["total"]["records"] > 50
        assert_exact(drained(deployment, truth), truth)
        assert set(truth["health_calls"].values()) == {0}
        assert stop(deployment.sidecar) < 2.0


def test_ranks_are_shown_apart(tmp_path: Path) -> None:
    """With two data-parallel ranks every gauge has two children, and none is a mean or a sum."""
    with deployed("dp2", tmp_path) as deployment:
        # they come from different endpoints, so that a busy machine shows one before the other
        gauges = (series.ACCEPTANCE_WINDOW, series.ENGINE_QUEUED, series.KV_COST_TOKENS)
        reading = deployment.wait_for(
            "both ranks at work", lambda r: all(len(r.all(g)) == 2 for g in gauges) and records(r) > 20
        )
        for gauge in gauges:
            assert {dict(key)["rank"] for key in reading.all(gauge)} == {"0", "1"}, gauge.name
        for artifact in ("target", "drafter"):
            for rank in ("0", "1"):
                assert reading.value(series.KV_POOL_CAPACITY_TOKENS, artifact=artifact, rank=rank)


def test_an_engine_that_goes_idle_earns_no_credit_and_no_burn(tmp_path: Path) -> None:
    """Once traffic ended nothing is counted any more, and the state says idle."""
    with deployed("idle", tmp_path, speed=10.0) as deployment:
        reading = deployment.wait_for(
            "idle", lambda r: r.state_of(series.SPECULATION_STATE, rank="0") == "idle", seconds=60.0
        )
        later = time.monotonic() + 7.0
        while time.monotonic() < later:
            time.sleep(0.5)
        again = deployment.reading()
        assert again is not None
        assert again.all(series.SLO_EVENTS) == reading.all(series.SLO_EVENTS)
        assert again.all(series.VERIFY_STEPS) == reading.all(series.VERIFY_STEPS)
        assert again.all(series.BATCH_ACCEPTANCE_LENGTH, "_count") == reading.all(
            series.BATCH_ACCEPTANCE_LENGTH, "_count"
        )


def test_speculation_that_is_off_is_said_and_excluded(tmp_path: Path) -> None:
    """Requests without verify steps are excluded as no_speculation, and the state says off."""
    with deployed("speculation-off", tmp_path, speed=5.0) as deployment:
        reading = deployment.wait_for(
            "off", lambda r: r.state_of(series.SPECULATION_STATE, rank="0") == "off", seconds=40.0
        )
        reading = deployment.wait_for(
            "requests without speculation",
            lambda r: (r.value(series.SLO_EXCLUDED, reason="no_speculation", profile="default") or 0) > 20,
        )
        assert reading.state_of(series.LINE_STATE, line="acceptance") == "at_risk"
        bad = reading.value(series.SLO_EVENTS, sli="request", verdict="bad", profile="default")
        assert bad == 0.0


def test_a_drop_shows_in_the_rolling_length_and_breaches_the_line(tmp_path: Path) -> None:
    """From 4.6 to 1.9: the last minute falls under the target, bad events are counted, the line is in breach."""
    with deployed("acceptance-drop", tmp_path, speed=5.0) as deployment:
        reading = deployment.wait_for(
            "breach", lambda r: r.state_of(series.LINE_STATE, line="acceptance") == "breach", seconds=40.0
        )
        assert (reading.value(series.SLO_EVENTS, sli="request", verdict="bad", profile="default") or 0) > 0
        batch = deployment.wait_for(
            "batch length low",
            lambda r: (r.value(series.ROLLING_ACCEPTANCE_LENGTH, scope="batch", window="1m") or 9) < 3.0,
        )
        assert batch.state_of(series.SPECULATION_STATE, rank="0") == "active"
