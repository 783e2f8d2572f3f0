"""What is quickened is every duration of the generated files, and nothing else in them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from e2e.pace import PRODUCTION, QUICK, Pace, seconds_of
from generate.rule_cases import SETTINGS, settings_of
from specbudget.generate import alertmanager
from specbudget.generate.rules import alerting_rules, recording_rules

HALF = Pace(factor=2.0, scrape=1.0, evaluation=1.0)
DURATION = re.compile(r"(?<![\w.:])(?:\d+(?:ms|[smhdwy]))+(?!\w)")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')


@pytest.mark.parametrize(
    ("written", "paced"),
    [
        ("increase(a[5m])", "increase(a[150000ms])"),
        ("max_over_time(a[2h14m24s])", "max_over_time(a[4032000ms])"),
        ("a offset 1d", "a offset 43200000ms"),
        ("a offset -30s", "a offset -15000ms"),
        ("rate(a[1h:]) + rate(b[1h:5m])", "rate(a[1800000ms:]) + rate(b[1800000ms:150000ms])"),
        ("replica:specbudget_slo_events:increase5m > 300", "replica:specbudget_slo_events:increase5m > 300"),
        ('a{b="[5m] offset 1h", c="\\"[5m]"}[1m]', 'a{b="[5m] offset 1h", c="\\"[5m]"}[30000ms]'),
        ("a{b='[5m]'}", "a{b='[5m]'}"),
        ("my_offset 5", "my_offset 5"),
    ],
)
def test_ranges_offsets_and_steps_of_subqueries_are_quickened(written: str, paced: str) -> None:
    """Not what a string holds, not a name that ends in a duration, not a number."""
    assert HALF.expression(written) == paced


def leaves(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """Every plain value by where it stands."""
    if not isinstance(value, dict | list):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {place: leaf for key, each in items for place, leaf in leaves(each, (*path, key)).items()}


@pytest.mark.parametrize("settings", [SETTINGS, settings_of(objective=0.9)], ids=["usual", "odd windows"])
def test_every_duration_of_the_rules_is_divided_and_nothing_else_changes(settings: Any) -> None:
    """With the durations taken out both files are the same, and each duration is half of what it was."""
    seen = 0
    for build in (recording_rules, alerting_rules):
        written = build(settings)
        before, after = leaves(written), leaves(HALF.rules(written))
        assert list(before) == list(after)
        for place, text in before.items():
            if place[-1] not in ("expr", "for", "interval"):
                assert after[place] == text
                continue
            old, new = (STRING.sub('""', each) for each in (text, after[place]))
            assert DURATION.sub("", old) == DURATION.sub("", new)
            halves = [seconds_of(each) / 2 for each in DURATION.findall(old)]
            assert [seconds_of(each) for each in DURATION.findall(new)] == pytest.approx(halves)
            seen += len(halves)
    assert seen > 100


def test_every_wait_of_the_routes_is_divided_and_nothing_else_changes() -> None:
    """All routes, at any depth; receivers and inhibitions stay as they are generated."""
    written = yaml.safe_load(alertmanager.config())
    before, after = leaves(written), leaves(HALF.routes(written))
    assert list(before) == list(after)
    changed = {place for place in before if before[place] != after[place]}
    assert changed == {place for place, value in before.items() if DURATION.fullmatch(str(value))}
    assert {place[-1] for place in changed} == {"group_wait", "group_interval", "repeat_interval"}
    for place in changed:
        assert seconds_of(after[place]) == seconds_of(before[place]) / 2


def test_at_production_pace_the_rules_are_those_that_were_written() -> None:
    """Every duration is as long as it was; the quick pace scrapes as often in a window."""
    for before, after in ((a, PRODUCTION.rules(a)) for a in (recording_rules(SETTINGS), alerting_rules(SETTINGS))):
        for old, new in zip(leaves(before).values(), leaves(after).values(), strict=True):
            assert DURATION.sub(lambda m: str(seconds_of(m[0])), new) == DURATION.sub(
                lambda m: str(seconds_of(m[0])), old
            )
    assert (QUICK.scrape * QUICK.factor, QUICK.evaluation * QUICK.factor) == pytest.approx((16.0, 16.0))
