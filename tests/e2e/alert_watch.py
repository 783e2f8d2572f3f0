"""Waits until people were told of what a run is to raise, and long enough to see that nothing else comes."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from e2e.alert_runs import AlertRun, settings_of, stand_ins_budget
from e2e.alerting import Alerting, Message
from e2e.deployment import Deployment
from specbudget.catalog.alerts import ALERTS, AlertDef, Severity
from specbudget.catalog.alerts.burn import BURN_DAY, FAST_BURN
from specbudget.catalog.alerts.length import BELOW_BREAK_EVEN, COLLAPSED
from specbudget.catalog.rule_settings import BREAK_EVEN_SECONDS, COLLAPSE_SECONDS, RuleSettings
from specbudget.generate.alertmanager import PAGE_JOIN_SECONDS, receiver
from specbudget.simulate.scenarios import SCENARIOS

BUSY = 30.0
"""Seconds by which everything may be late on a machine that runs other tests beside this."""
REQUEST = 15.0
"""Seconds that a request of the stand-in takes at most: it is an event when it ends."""
BETWEEN_LOOKS = 1.0

QUIET = 900.0
"""For so long, as rules are written, people are to hear of nothing else: a quarter of an hour. What waits for longer is
pending meanwhile, which is looked at, too."""

SAYS = {
    FAST_BURN.name: r"(\d+(\.\d+)?)% of events are bad",
    COLLAPSED.name: r"acceptance length 1\.[0-3]\d",
    BELOW_BREAK_EVEN.name: r"acceptance length [12]\.\d\d",
}
"""The number in the summary of each page."""


@dataclass(frozen=True, slots=True)
class TimeToPage:
    """How long a page took from the change, and what arithmetic says; in seconds at the pace of the run."""

    run: str
    alert: str
    took: float
    soonest: float
    latest: float
    factor: float

    def __str__(self) -> str:
        production = "" if self.factor == 1 else f", as written at most {self.latest * self.factor / 60:.0f} min"
        return (
            f"{self.run}: {self.alert} {self.took:.0f} s after the change; "
            f"arithmetic: {self.soonest:.0f} to {self.latest:.0f} s{production}"
        )


def settle(run: AlertRun, deployment: Deployment, chain: Alerting, *, until: float) -> list[TimeToPage]:
    """Returns once exactly the alerts of the run were told of, and nothing else came or is on its way.

    `until` is when the last change of the scenario is over, on the monotonic clock. Raises AssertionError.
    """
    expected = {alert.name for alert in run.alerts}
    quiet = until + chain.pace.seconds(QUIET)
    latest = max(quiet, time.monotonic()) + max(chain.wait_after_condition(alert) for alert in ALERTS) + BUSY
    settled: float | None = None
    while True:
        told, rules = chain.told(run), chain.states(run)
        now = time.monotonic()
        assert set(told) <= expected, f"{run.name}: told of {sorted(set(told) - expected)}, too"
        assert deployment.sidecar.poll() is None, f"{run.name}: the sidecar has ended"
        firing = {name for name, state in rules.items() if state == "firing"}
        if set(told) != expected or not hidden(run) <= firing or now < quiet:
            settled = None
        elif settled is None:
            settled = now
        elif now > settled + 1.5 * chain.wait_of(Severity.TICKET):
            return check(run, deployment, chain, run.alerts)
        assert now < latest, f"{run.name}: told of {sorted(told)} and not of {sorted(expected)}; rules say {rules}"
        time.sleep(BETWEEN_LOOKS)


def hidden(run: AlertRun) -> set[str]:
    """The ticket that burns beside the page of its line: that page keeps it from people."""
    return {BURN_DAY.name} if FAST_BURN in run.alerts else set()


def in_time(run: AlertRun, chain: Alerting, seconds: float) -> tuple[AlertDef, ...]:
    """The alerts of a run that can be told of so many seconds after their condition holds."""
    return tuple(alert for alert in run.alerts if chain.wait_after_condition(alert) < seconds)


def check(run: AlertRun, deployment: Deployment, chain: Alerting, alerts: tuple[AlertDef, ...]) -> list[TimeToPage]:
    """People were told of `alerts`, in the right place and words; what the rules say besides belongs to the run."""
    told, rules = chain.told(run), chain.states(run)
    difference = f"{run.name}: told of {sorted(told)}; rules say {rules}"
    assert set(told) == {alert.name for alert in alerts}, difference
    assert {alert.name for alert in run.alerts} <= set(rules) <= {alert.name for alert in run.alerts} | hidden(run), (
        difference
    )
    lines = {(alert.severity, alert.line) for alert in alerts}
    assert chain.receivers(run) == {receiver(severity, line) for severity, line in lines}, run.name
    check_pages(run, chain)
    return times_to_page(run, deployment, chain, told)


def check_pages(run: AlertRun, chain: Alerting) -> None:
    """What a page says at night: by how much, the cause, the worst replica, the way out, and where to read on."""
    pages = [alert for alert in run.alerts if alert.severity is Severity.PAGE]
    messages = [one for one in chain.messages(run) if one.title.startswith("PAGE ")]
    assert bool(messages) == bool(pages), run.name
    for alert in pages:
        named = [
            one for one in messages if f"Runbook: https://runbooks.example/specbudget.md#{alert.anchor}\n" in one.text
        ]
        assert named, f"{run.name}: no message explains {alert.name}: {messages}"
        _check_page(run, alert, named[0])
    if run.causes:
        assert any(f"Likely cause: {cause};" in one.text for one in messages for cause in run.causes), messages


def _check_page(run: AlertRun, alert: AlertDef, message: Message) -> None:
    whole = f"{message.title}\n{message.text}"
    scenario = SCENARIOS[run.scenario]
    for what, pattern in {
        "the number": SAYS[alert.name],
        "the cause": r"\nLikely cause: \S",
        "the worst replica and its length": rf"\nShortest: {run.name}-0 127\.0\.0\.1:\d+ \d\.\d\d;",
        "the way out": r"\nTo turn speculation off: restart the engine without --speculative-algorithm",
        "the dashboard": r"\nDashboard: https://grafana\.example/d/specbudget-acceptance\?var-service=\S+",
        "where": rf"\nCluster: {run.name}\nNamespace: e2e",
    }.items():
        assert re.search(pattern, whole), f"{run.name}: {what} is not in the page of {alert.name}:\n{whole}"
    if alert is FAST_BURN:
        assert re.search(rf"target length \({scenario.target_length:.2f}\)", whole), whole
    if alert is BELOW_BREAK_EVEN:
        assert re.search(r"break-even is \d\.\d\d", whole), whole
    assert message.link.startswith("https://grafana.example/d/"), message


def times_to_page(run: AlertRun, deployment: Deployment, chain: Alerting, told: dict[str, float]) -> list[TimeToPage]:
    """Each page's time from the change, which has to be within what arithmetic promises."""
    text = deployment.budget.read_text()
    settings = settings_of(text, Path(deployment.folder))
    assert settings == settings_of(stand_ins_budget(run), Path(deployment.folder)), f"{run.name}: not the rules loaded"
    pages = [alert for alert in run.alerts if alert.severity is Severity.PAGE]
    if not pages:
        return []
    changed = deployment.truth()["ready_at"] + min(phase.at for phase in SCENARIOS[run.scenario].phases)
    joins = chain.pace.seconds(PAGE_JOIN_SECONDS) if len(pages) > 1 else 0.0
    found = []
    for alert in pages:
        soonest = chain.pace.seconds(alert.for_seconds)
        holds = chain.pace.seconds(seconds_to_hold(alert, settings))
        latest = REQUEST + holds + chain.wait_after_condition(alert) + joins
        time_to = TimeToPage(run.name, alert.name, told[alert.name] - changed, soonest, latest, chain.pace.factor)
        assert soonest <= time_to.took <= latest + BUSY, str(time_to)
        found.append(time_to)
    return found


def seconds_to_hold(alert: AlertDef, settings: RuleSettings) -> float:
    """The most seconds until a page's condition holds, from when all traffic is bad, as the rules are written."""
    if alert is FAST_BURN:
        seconds = settings.pages[0].seconds_to_fire(1.0, settings.objective)
        assert seconds is not None
        return seconds
    return {COLLAPSED.name: COLLAPSE_SECONDS, BELOW_BREAK_EVEN.name: BREAK_EVEN_SECONDS}[alert.name]
