"""Follows one deployment through its scenario and holds every page of it against the scenario's row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from e2e.deployment import Deployment, deployed, stop
from e2e.scenario_rows import HEALTHY, REAL_TIME, ROWS
from e2e.statements import Statement, between, exactly
from specbudget.catalog import series
from specbudget.catalog.sets import Artifact, RecordOutcome
from specbudget.demo.readings import Reading
from specbudget.simulate.scenarios import SCENARIOS, Scenario

GENERATES_BY = 8.0
"""Seconds from the start of any stand-in that gets so far to its first generation."""

LASTS = 20.0
"""Seconds for which all statements of a row hold once they hold together."""

BETWEEN_LOOKS = 1.0

TO_SEE = 8.0
"""Seconds that a sidecar needs to poll an engine: on a machine that is too busy to start both in time before an
early change, nobody has seen what was before it."""

COUNTERS = {
    "verify_steps": series.VERIFY_STEPS,
    "proposed_drafts": series.PROPOSED_DRAFTS,
    "accepted_drafts": series.ACCEPTED_DRAFTS,
}


def last_change(name: str, speed: float) -> float:
    """Seconds from a stand-in's start until everything that its scenario does has happened."""
    return GENERATES_BY + max((phase.at + phase.over for phase in SCENARIOS[name].phases), default=0.0) / speed


def follow(
    name: str,
    speed: float,
    folder: Path,
    starting: AbstractContextManager[object],
    *,
    port: int | None = None,
    afterwards: Callable[[Deployment, float], None] = lambda deployment, changed: None,
) -> None:
    """Runs a scenario until its row held for a while, then holds the counters against the stand-in's totals.

    Raises AssertionError with what a page showed instead. `starting` is held while the processes start, which is
    when they need a processor. `afterwards` may look on before the engine is ended; it is told when the last change
    of the scenario was over, on the monotonic clock.
    """
    row = ROWS[name].at(speed)
    with ExitStack() as stack:
        with starting:
            began = time.monotonic()
            watch = Watch(name, speed, stack.enter_context(deployed(name, folder, speed=speed, port=port)))
            watch.until("at the start", [between(series.ARTIFACT_INFO, 1, artifact=a) for a in Artifact], 120.0)
        if speed == REAL_TIME and not row.is_healthy and watch.comes_before_the_change:
            watch.until("before the change", HEALTHY.usual, 60.0)
        statements = (*row.usual, *row.shows)
        watch.until("in the end", statements, last_change(name, speed) + row.within, after=last_change(name, speed))
        watch.through("and for good", statements, LASTS)
        afterwards(watch.deployment, began + last_change(name, speed))
        watch.drain()
        stop(watch.deployment.sidecar)
        assert watch.deployment.sidecar.returncode == 0, f"{watch.who}: the sidecar ended badly"


def run_without_row(
    name: str,
    folder: Path,
    starting: AbstractContextManager[object],
    stack: ExitStack,
    *,
    port: int,
    budgeted: Callable[[str], str],
) -> tuple[Deployment, float]:
    """A scenario at real speed with another budget, and when its last change is over; it ends with the stack."""
    with starting:
        began = time.monotonic()
        deployment = stack.enter_context(deployed(name, folder, port=port, budgeted=budgeted))
        deployment.wait_for(f"{name}: a page", lambda _: True, 120.0)
    return deployment, began + last_change(name, REAL_TIME)


class Watch:
    """The pages of one deployment; none of them may show what the scenario's row never shows."""

    def __init__(self, name: str, speed: float, deployment: Deployment) -> None:
        self.who = f"{name} at speed {speed:g}"
        self.deployment = deployment
        self._scenario, self._row = SCENARIOS[name], ROWS[name].at(speed)
        self._began = time.monotonic()

    @property
    def comes_before_the_change(self) -> bool:
        """Whether the first change is still to come, in time for polls to see what was before it."""
        ready = self.deployment.truth()["ready_at"]
        first = min((phase.at for phase in self._scenario.phases), default=0.0)
        return first > 0.0 and (ready is None or time.time() + TO_SEE < ready + first)

    def look(self) -> Reading | None:
        """The page now; None while nobody answers."""
        assert self.deployment.sidecar.poll() is None, f"{self.who}: the sidecar has ended"
        reading = self.deployment.reading()
        if reading is not None:
            self._check("at any time", self._row.never(reading), reading)
        return reading

    def until(self, when: str, statements: Iterable[Statement], seconds: float, *, after: float = 0.0) -> None:
        """Looks until all statements hold on one page, not before the deployment is `after` seconds old.

        Fails where they do not hold together once it is `seconds` old.
        """
        statements = tuple(statements)
        while True:
            age = time.monotonic() - self._began
            reading = self.look()
            broken = [one for one in statements if reading is None or not one.holds(reading)]
            if not broken and age >= after:
                return
            if age > max(seconds, after):
                self._check(f"{when}, {age:.0f} s after the start", broken, reading)
            time.sleep(BETWEEN_LOOKS)

    def through(self, when: str, statements: Iterable[Statement], seconds: float) -> None:
        """Looks for `seconds`: all statements hold on every page, and what is to be still does not move."""
        statements = tuple(statements)
        end, first = time.monotonic() + seconds, None
        while first is None or time.monotonic() < end:
            time.sleep(BETWEEN_LOOKS)
            reading = self.look()
            if reading is None:
                continue  # too busy to answer at once: what it would have said is on the next page
            first = first or reading
            self._check(when, [one for one in statements if not one.holds(reading)], reading)
            for of in self._row.still:
                assert reading.all(of) == first.all(of), f"{self.who}, {when}: {of.full_name} moves"

    def drain(self) -> None:
        """Ends the engine; once every record is read, the counters are its totals to the last digit."""
        truth = self.deployment.end_engine()
        assert set(truth["health_calls"].values()) == {0}, f"{self.who}: the engine was made to generate"
        totals = truth["total"]
        records = {"source": "request_log"}
        if totals["records"]:
            told = [between(series.RECORDS, totals["records"], outcome=RecordOutcome.OK, **records)]
            self.until("with the engine ended", told, time.monotonic() - self._began + 60.0)
        reading = self.deployment.wait_for(f"{self.who}: a page", lambda _: True)
        exact = [exactly(series.RECORDS, totals["records"], **records), *self._exact_counters(truth)]
        if totals["records"]:
            # of a request aborted in the queue SGLang records one output token, which nobody generated
            exact.append(exactly(series.GENERATED_TOKENS, totals["completion_tokens"] + totals["never_ran"]))
            exact.append(exactly(series.SLO_EXCLUDED, totals["aborted"], reason="aborted"))
            exact.append(exactly(series.SLO_EXCLUDED, 0, reason="invalid"))
        self._check("counted exactly", [one for one in exact if not one.holds(reading)], reading)
        judged = reading.total(series.SLO_EVENTS) + reading.total(series.SLO_EXCLUDED)
        assert judged == totals["records"], f"{self.who}: {judged} verdicts on {totals['records']} requests"

    def _exact_counters(self, truth: dict[str, Any]) -> Iterable[Statement]:
        for rank, profiles in truth["by_rank_and_profile"].items():
            for profile, names in budgeted_profiles(self._scenario).items():
                for key, counter in COUNTERS.items():
                    told = sum(profiles.get(name, {}).get(key, 0) for name in names)
                    yield exactly(counter, told, rank=rank, profile=profile)
        histogram = truth["total"]["histogram"]
        for position in range(1, len(histogram)):
            if any(histogram[position:]):
                told = sum(histogram[position:])
                yield exactly(series.DRAFT_POSITION_ACCEPTED, told, position=str(position))

    def _check(self, when: str, broken: Iterable[Statement], reading: Reading | None) -> None:
        told = [f"{self.who}, {when}: not {one.says}\n    but {one.shown(reading)}" for one in broken]
        assert not told, "\n".join(told)


def budgeted_profiles(scenario: Scenario) -> dict[str, list[str]]:
    """The stand-in's profiles by the budget's: those with an adapter have their own, the others share `default`."""
    found: dict[str, list[str]] = {"default": []}
    for name, profile in scenario.profiles.items():
        found.setdefault(name if profile.adapter is not None else "default", []).append(name)
    return found


def is_long(name: str, speed: float) -> bool:
    """Whether a run takes as long as everything else together."""
    return last_change(name, speed) + ROWS[name].at(speed).within > 600.0
