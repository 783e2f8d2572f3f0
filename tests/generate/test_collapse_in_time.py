"""A collapse pages in under ten minutes: the worst case, from the windows and waits of the generated files."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from e2e.pace import seconds_of
from generate.rule_cases import SETTINGS, settings_of
from specbudget.budget.engine import Engine
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.domain.time_to_page import Cadence
from specbudget.generate import alertmanager
from specbudget.generate.rules import alerting_rules, recording_rules

PROMISED = 600.0
TAIL = 1.0
"""Seconds between looks at the engine's log files."""
REQUEST = 20.0
"""Seconds of a usual request."""

WITHOUT_SLO = RuleSettings(service="plain")
LENIENT = settings_of(objective=0.9, window=7 * 86400.0)
EACH = pytest.mark.parametrize("s", [SETTINGS, LENIENT, WITHOUT_SLO], ids=["usual", "lenient", "without an SLO"])


@dataclass(frozen=True)
class Chain:
    """The rules between a counter and the page of a collapse: their windows, and how often evaluation passes it on."""

    windows: list[float]
    groups: list[dict[str, Any]]
    waits: float

    def evaluations(self, usual: float) -> float:
        """The most seconds that what is scraped takes through the groups: they are evaluated independently."""
        return sum(seconds_of(group["interval"]) if "interval" in group else usual for group in self.groups)


def chain_of(s: RuleSettings) -> Chain:
    """Follows the recorded series that the alert compares back to counters.

    Within a group rules are evaluated in their order, so what is read must be recorded before it is read. What only
    leaves replicas out, behind `unless`, passes nothing on.
    """
    recording = recording_rules(s)["groups"]
    recorded = {
        rule["record"]: (group, place, rule) for group in recording for place, rule in enumerate(group["rules"])
    }
    (group, alert) = next(
        (group, rule)
        for group in alerting_rules(s)["groups"]
        for rule in group["rules"]
        if rule["alert"] == COLLAPSED.name
    )
    groups, windows, todo, seen = [group], [], [(None, math.inf, alert["expr"])], set[str]()
    while todo:
        reader, at, text = todo.pop()
        text = re.sub(r"unless on \([^)]*\) \S+", "", text)
        windows += [seconds_of(each) for each in re.findall(r"\[(\w+)\]", text)]
        for name in set(re.findall(r"\b\w+:specbudget_\w+:\w+", text)) - seen:
            seen.add(name)
            own, place, rule = recorded[name]
            if own not in groups:
                groups.append(own)
            elif own is reader:
                assert place < at, f"{name} is read before it is recorded"
            todo.append((own, place, rule["expr"]))
    return Chain(windows, groups, seconds_of(alert.get("for", "0s")))


def routed_wait() -> tuple[float, float]:
    """How long the generated routes let a page wait: alone, and where the service has paged before."""
    (ours,) = yaml.safe_load(alertmanager.config())["route"]["routes"]
    (page,) = (route for route in ours["routes"] if route["matchers"] == ['severity="page"'])
    return seconds_of(page["group_wait"]), seconds_of(page["group_interval"])


@EACH
@pytest.mark.parametrize(("scrape", "evaluation"), [(15.0, 15.0), (15.0, 30.0), (30.0, 30.0)])
def test_a_collapse_pages_in_under_ten_minutes(s: RuleSettings, scrape: float, evaluation: float) -> None:
    """With every wait at its longest, and time left for the request whose end is the first to tell.

    Also where a page of the service is there already, so that this one joins it.
    """
    chain = chain_of(s)
    read = max(TAIL, Engine.model_fields["poll_interval"].default)
    pending = math.ceil(chain.waits / evaluation) * evaluation
    alone, joining = routed_wait()
    until_firing = read + scrape + max(chain.windows) + chain.evaluations(evaluation) + pending
    assert until_firing + max(alone, joining) + REQUEST <= PROMISED
    # the arithmetic of the runbook, which leaves reading and the request to the reader
    cadence = Cadence(scrape=scrape, evaluation=evaluation, notification=alone)
    assert max(chain.windows) + cadence.longest_wait(COLLAPSED.for_seconds) == until_firing - read + alone


@EACH
def test_no_other_window_delays_a_collapse(s: RuleSettings) -> None:
    """The length, the guards and what holds a replica back are all over the five minutes of the alert."""
    assert set(chain_of(s).windows) == {300.0}
