"""Batch reports from the acceptance gauge, which holds its last value and is sampled too often or too rarely."""

from __future__ import annotations

import pytest

from specbudget.serve.gauge_batches import GaugeBatches, GaugeReport


def reports(*seen: tuple[float | None, float | None, float | None], rank: str = "0") -> list[GaugeReport | None]:
    """What each reading of (length, decode passes, emitted tokens) reports; a report is 40 passes."""
    batches = GaugeBatches()
    return [batches.see(rank, length=at, passes=p, tokens=t, report_passes=40) for at, p, t in seen]


def test_the_first_reading_reports_nothing() -> None:
    """Nobody knows for how long the gauge has held it."""
    assert reports((2.5, 1000, 9000)) == [None]


def test_a_report_needs_its_passes() -> None:
    """39 passes later the gauge may still be the last report's; at 40 it is a new one, with the tokens since then."""
    assert reports((2.5, 0, 0), (2.5, 39, 390), (2.0, 40, 400)) == [
        None,
        None,
        GaugeReport(length=2.0, steps=200),
    ]


def test_a_report_is_taken_once() -> None:
    """Polling faster than the engine reports adds nothing."""
    found = reports((2.5, 0, 0), (2.0, 40, 400), (2.0, 45, 450), (2.0, 79, 790), (4.0, 80, 800))
    assert [report is not None for report in found] == [False, True, False, False, True]
    assert found[-1] == GaugeReport(length=4.0, steps=100)


def test_missed_reports_weigh_with_all_their_tokens() -> None:
    """A poll that comes after five reports sees the last length; it stands for all tokens since the last one."""
    assert reports((2.5, 0, 0), (2.5, 200, 5000))[-1] == GaugeReport(length=2.5, steps=2000)


def test_counters_that_appear_later_grew_from_zero() -> None:
    """A fresh engine has neither counter before its first request, and must not be deaf for ever after."""
    found = reports((None, None, None), (None, None, None), (2.5, 40, 100), (2.0, 80, 200))
    assert found == [None, None, GaugeReport(length=2.5, steps=40), GaugeReport(length=2.0, steps=50)]


def test_without_passes_moved_tokens_report() -> None:
    """Where an engine does not count passes, tokens since the last reading are the sign of work."""
    found = reports((1.6, None, 1000), (1.6, None, 1400), (1.6, None, 1400), (3.1, None, 4400))
    assert found == [
        None,
        GaugeReport(length=1.6, steps=pytest.approx(250)),
        None,
        GaugeReport(length=3.1, steps=pytest.approx(3000 / 3.1)),
    ]


def test_without_tokens_a_report_weighs_its_passes() -> None:
    """One request's worth of steps at least: 40 passes."""
    assert reports((2.5, 0, None), (2.5, 40, None))[-1] == GaugeReport(length=2.5, steps=40)


def test_with_neither_there_is_no_report() -> None:
    """A gauge alone is no evidence of work."""
    assert reports((2.5, None, None), (3.0, None, None), (2.0, None, None)) == [None] * 3


@pytest.mark.parametrize("length", [None, 0.0, 0.99])
def test_no_length_reports_nothing_but_uses_up_its_passes(length: float | None) -> None:
    """A missing or impossible gauge ends its interval: the next report does not inherit its tokens."""
    found = reports((2.5, 0, 0), (length, 40, 4000), (2.0, 80, 4400))
    assert found == [None, None, GaugeReport(length=2.0, steps=200)]


def test_a_restart_goes_on_from_zero() -> None:
    """Counters that fell are a new process: its own 40 passes and 100 tokens count."""
    assert reports((2.5, 9000, 90000), (2.0, 40, 100))[-1] == GaugeReport(length=2.0, steps=50)


def test_a_counter_that_is_away_once_is_not_new() -> None:
    """Passes that a body leaves out once are remembered, so that their return is no jump from zero."""
    found = reports((2.0, 1000, 1000), (2.0, None, 1100), (2.0, 1041, 1300))
    assert found == [None, GaugeReport(length=2.0, steps=50), GaugeReport(length=2.0, steps=100)]


def test_ranks_do_not_mix_and_can_be_forgotten() -> None:
    """Each rank has its own passes; one that left begins anew when it is back."""
    batches = GaugeBatches()
    for rank in ("0", "1"):
        assert batches.see(rank, length=2.0, passes=0, tokens=0, report_passes=40) is None
    assert batches.see("0", length=2.0, passes=40, tokens=80, report_passes=40) is not None
    assert batches.see("1", length=2.0, passes=39, tokens=80, report_passes=40) is None
    batches.forget({"0"})
    assert batches.see("1", length=2.0, passes=900, tokens=9000, report_passes=40) is None
    assert batches.see("0", length=2.0, passes=80, tokens=160, report_passes=40) is not None
