"""A week of a fleet of three replicas, judged by the committed rules in real rule engines, with every `for`."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from specbudget.catalog.alerts.burn import FAST_BURN
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.alerts.memory import SHRANK
from specbudget.catalog.series import CODESIGN_CHECK, SERIES
from specbudget.domain.requests import Verdict
from week.calendar import DAY, DAYS, HOUR, MINUTE
from week.conftest import RULES, Drawn, replayed
from week.expected import Firing, Span, clock, complaints

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("week")]


def test_every_series_that_a_rule_reads_is_generated(healthy: Drawn) -> None:
    """With the labels of its declaration: an alert on a series that nobody generates could not fire."""
    text = "".join(file.read_text() for file in RULES)
    read = set(re.findall(r"(?<![:\w])(specbudget_[a-z_]+|up)(?=\{| ==)", text))
    # named in texts of alerts only
    asked = {CODESIGN_CHECK.full_name}
    assert len(read) > 25
    assert read - asked <= {one.name for one in healthy.fleet.samples}
    declared = {one.full_name: {*one.labels} for one in SERIES}
    target = {"cluster", "namespace", "pod", "instance", "job", "specbudget_service", "le"}
    for one in healthy.fleet.samples:
        name = re.sub(r"_(bucket|count)$", "", one.name)
        assert name == "up" or {*one.labels} - target == declared[name], one.name


def test_the_week_is_what_it_claims_to_be(healthy: Drawn) -> None:
    """Nights without a request, restarts that take counters back to 0, a backlog of more than five minutes, few bad."""
    verdicts = np.concatenate([one.verdict for one in healthy.fleet.requests])
    bad, good = (verdicts == Verdict.BAD).sum(), (verdicts == Verdict.GOOD).sum()
    assert bad + good > 500_000
    assert bad / (bad + good) < 0.2 * (1 - healthy.settings.objective)
    finished = healthy.fleet.requests[0].batch.finished_at
    assert np.diff(finished).max() > 4 * HOUR
    steps = [one for one in healthy.fleet.samples if one.name == "specbudget_verify_steps_total"]
    known = [one.values[~np.isnan(one.values)] for one in steps]
    assert sum(int((np.diff(values) < 0).sum()) for values in known) >= 2 * 5
    lag = [one.values for one in healthy.fleet.samples if one.name == "specbudget_source_lag_seconds"]
    assert max(np.nanmax(values) for values in lag) > 5 * MINUTE
    assert all(one.lengths for one in healthy.week.phases if one.extra)
    assert len({one.labels["pod"] for one in healthy.fleet.samples}) == 6


def test_a_healthy_week_raises_nothing(healthy: Drawn, tmp_path: Path) -> None:
    """Not one page, ticket or note in seven days of mixed traffic, deploys, restarts, backlogs and idle nights."""
    assert replayed(healthy, tmp_path) == {}


def test_each_planted_incident_is_told_in_time(troubled: Drawn, raised: Firing) -> None:
    """By the moment that the arithmetic of its alerts gives, and nothing else fires but burns that are there."""
    for one in troubled.planted:
        for span in one.spans():
            first = next((a for a, _ in raised.get(span.alert.name, ()) if a >= span.start), None)
            assert span.by is not None
            shown = "never" if first is None else clock(first)
            print(f"{one.name}: {span.alert.name} from {clock(one.start)}, at {shown}, due {clock(span.by)}")
    assert complaints(troubled.spans, raised) == []


def test_a_collapse_pages_within_ten_minutes(troubled: Drawn, raised: Firing) -> None:
    """What the product promises, by arithmetic and in fact."""
    collapse = next(one for one in troubled.planted if any(told.alert is COLLAPSED for told in one.told))
    due = next(span.by for span in collapse.spans() if span.alert is COLLAPSED)
    assert due is not None
    assert due - collapse.start <= 10 * MINUTE
    assert any(collapse.start < first <= collapse.start + 10 * MINUTE for first, _ in raised[COLLAPSED.name])


def test_incidents_are_told_apart(troubled: Drawn) -> None:
    """Ten and more, each begins when the one before is over, and each is told by an alert that no other has."""
    told = [{one.alert.name for one in incident.told} for incident in troubled.planted]
    assert len(told) >= 10
    assert len(set().union(*told)) >= len(told)
    # a pool that came out small stays so until the next deploy, and that is told by one alert alone
    short = [one for one in troubled.planted if one.told[0].alert is not SHRANK]
    assert all(before.end <= after.start for before, after in pairwise(short))
    assert short[-1].end < DAYS * DAY


def _span(start: float, end: float, by: float | None = None) -> Span:
    return Span(alert=FAST_BURN, start=start, end=end, by=by, why="tested")


@pytest.mark.parametrize(
    ("spans", "fired", "said"),
    [
        ((), [(0.0, 60.0)], ["nothing allows it"]),
        ((_span(0, 600),), [(60.0, 540.0)], []),
        ((_span(0, 600),), [(60.0, 900.0)], ["from Mon 00:10 nothing allows it"]),
        ((_span(0, 600), _span(300, 1200)), [(60.0, 900.0)], []),
        ((_span(0, 600, 300),), [], ["did not fire by Mon 00:05"]),
        ((_span(0, 600, 300),), [(360.0, 540.0)], ["did not fire by Mon 00:05"]),
        ((_span(0, 600, 300),), [(300.0, 540.0)], []),
    ],
    ids=["out of the blue", "within", "too long", "two spans that meet", "never", "too late", "just in time"],
)
def test_complaints_are_about_what_fired_and_what_did_not(
    spans: tuple[Span, ...], fired: list[tuple[float, float]], said: list[str]
) -> None:
    """The judge of the other tests: what fires too late, too long or out of the blue is told, and nothing else."""
    found = complaints(spans, {FAST_BURN.name: fired})
    assert len(found) == len(said)
    assert all(part in one for part, one in zip(said, found, strict=True))
