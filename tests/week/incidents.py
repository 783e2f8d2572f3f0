"""Incidents planted into the healthy week, one after the other, and by when each has to be told."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.catalog.alerts.burn import FAST_BURN, SLOW_BURN
from specbudget.catalog.alerts.length import BAD_FROM_BOOT, BELOW_BREAK_EVEN, COLLAPSED, DECAYING, OUTLIER
from specbudget.catalog.alerts.memory import CHANGED, PRESSURE, PRESSURE_SECONDS, SHRANK
from specbudget.catalog.alerts.model import AlertDef
from specbudget.catalog.alerts.sidecar import SOURCE_FAILING
from specbudget.catalog.alerts.speculation import OFF
from specbudget.catalog.alerts.staging import OVER_BUDGET, RECHECK
from specbudget.catalog.rule_settings import BREAK_EVEN_SECONDS, COLLAPSE_SECONDS, OUTLIER_SECONDS, RuleSettings
from specbudget.catalog.sets import Source
from specbudget.domain.suspects import CONTRIBUTES_NOTHING
from week.calendar import (
    FRI,
    HEALTHY,
    HOUR,
    MINUTE,
    MON,
    SAT,
    SUN,
    THU,
    TUE,
    WED,
    Lengths,
    Phase,
    Restart,
    Week,
    at,
)
from week.expected import Span, wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An alert on an incident. `after`: seconds until its condition holds at the latest; `lasts`: how long the
    condition can hold beyond the incident's end, since a window still reaches into it.
    """

    alert: AlertDef
    after: float = 0.0
    lasts: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that goes wrong from `start` to `end`, and the alerts that must tell it."""

    name: str
    start: float
    end: float
    week: Week
    told: tuple[Told, ...]

    def spans(self) -> tuple[Span, ...]:
        """When its alerts must and may fire."""
        return tuple(
            Span(
                alert=one.alert,
                start=self.start,
                end=self.end + one.lasts + wait(one.alert),
                by=self.start + one.after + one.alert.for_seconds + wait(one.alert),
                why=self.name,
            )
            for one in self.told
        )


def _bad(share_in_spreads: float, spread: float = 0.15) -> dict[str, Lengths]:
    """Lengths whose targets (2.6 and 3.4) lie so many spreads above (below: negative) their means."""
    return {
        "default": Lengths(mean=2.6 - share_in_spreads * spread, spread=spread),
        "code": Lengths(mean=3.4 - share_in_spreads * spread, spread=spread),
    }


def _all(mean: float, spread: float) -> dict[str, Lengths]:
    return {name: Lengths(mean=mean, spread=spread) for name in ("default", "code")}


def incidents(s: RuleSettings) -> tuple[Incident, ...]:
    """The incidents, in the order of the week. Lengths of windows come from the declarations of the alerts."""
    fast, slow = s.pages
    burns_fast = fast.seconds_to_fire(0.80, s.objective)
    burns_slow = slow.seconds_to_fire(0.38, s.objective)
    assert burns_fast is not None
    assert burns_slow is not None
    return (
        _during(
            "the KV pools of a replica are full and requests are retracted",
            at(MON, "10:00"),
            HOUR,
            Told(alert=PRESSURE, after=PRESSURE_SECONDS, lasts=PRESSURE_SECONDS),
            replicas=(0,),
            kv=0.97,
        ),
        _during(
            "an endpoint of the engine fails",
            at(MON, "18:30"),
            HOUR,
            Told(alert=SOURCE_FAILING),
            replicas=(1,),
            down=(Source.LOADS,),
        ),
        _started(
            "a start takes longer than its budget",
            Restart(at=at(TUE, "11:30"), replica=1, engine=True, cold=140.0, over_budget=True),
            at(TUE, "11:40"),
            Told(alert=OVER_BUDGET, after=60.0 + 140.0, lasts=HOUR),
        ),
        _during(
            "one replica is far worse than the others",
            at(TUE, "14:00"),
            HOUR,
            Told(alert=OUTLIER, after=OUTLIER_SECONDS, lasts=OUTLIER_SECONDS),
            replicas=(2,),
            lengths=_all(1.7, 0.1),
        ),
        _during(
            "another drafter lies on disk than the approved one",
            at(TUE, "19:00"),
            1.5 * HOUR,
            Told(alert=CHANGED),
            Told(alert=RECHECK),
            fingerprint="0badc0de0badc0de",
        ),
        _during(
            "the length collapses",
            at(WED, "12:30"),
            HOUR,
            Told(alert=COLLAPSED, after=_collapsed_after(4.9, 1.1), lasts=COLLAPSE_SECONDS),
            Told(alert=BELOW_BREAK_EVEN, after=BREAK_EVEN_SECONDS, lasts=BREAK_EVEN_SECONDS),
            lengths=_all(1.1, 0.05),
        ),
        _started(
            "a pool holds a third less after a start",
            Restart(at=at(WED, "18:30"), replica=0, engine=True, capacity=2 / 3),
            at(THU, "10:00") + 3 * MINUTE,
            Told(alert=SHRANK, after=60.0 + 75.0),
        ),
        _started(
            "a replica is bad from its start on",
            Restart(at=at(THU, "12:30"), replica=2, engine=True),
            at(THU, "13:40"),
            Told(alert=BAD_FROM_BOOT, after=60.0 + 75.0 + 2 * MINUTE),
            Told(alert=OUTLIER, after=60.0 + 75.0 + OUTLIER_SECONDS, lasts=OUTLIER_SECONDS),
            Phase(start=at(THU, "12:30"), end=at(THU, "13:40"), replicas=(2,), lengths=_all(1.5, 0.1)),
            Restart(at=at(THU, "13:40"), replica=2, engine=True),
        ),
        _during(
            "the batch grows until two models are slower than one",
            at(THU, "15:30"),
            70 * MINUTE,
            Told(alert=BELOW_BREAK_EVEN, after=BREAK_EVEN_SECONDS, lasts=BREAK_EVEN_SECONDS),
            lengths=_bad(-2.3, 0.15),
            rate=5.0,
            slow=3.0,
        ),
        _during(
            "a replica speculates no more",
            at(THU, "19:00"),
            HOUR,
            Told(alert=OFF, after=2 * STATE_SEEN),
            replicas=(0,),
            plain=True,
        ),
        _during(
            "two of five requests miss their target for hours",
            at(FRI, "10:00"),
            6 * HOUR,
            Told(alert=SLOW_BURN, after=burns_slow),
            lengths=_bad(-0.2533, 0.5),
        ),
        _during(
            "four of five requests miss their target",
            at(SAT, "10:00"),
            1.5 * HOUR,
            Told(alert=FAST_BURN, after=burns_fast),
            lengths=_bad(1.0),
        ),
        _during(
            "the length falls by a seventh within hours",
            at(SUN, "10:00"),
            5 * HOUR,
            Told(alert=DECAYING, after=4 * HOUR, lasts=6 * HOUR),
            falls=0.14,
        ),
    )


STATE_SEEN = MINUTE
"""How long an engine has no step until its state says so."""


def _collapsed_after(before: float, since: float) -> float:
    """Seconds of the new length until that of the window is low enough; tokens come as before, steps are more."""
    highest = 1 / CONTRIBUTES_NOTHING
    return COLLAPSE_SECONDS * (highest - 1 / before) / (1 / since - 1 / before)


def _during(name: str, start: float, seconds: float, *told: Told, **phase: object) -> Incident:
    week = Week(phases=(Phase(start=start, end=start + seconds, **phase),))  # type: ignore[arg-type]
    return Incident(name=name, start=start, end=start + seconds, week=week, told=told)


def _started(name: str, restart: Restart, end: float, *more: Told | Phase | Restart) -> Incident:
    week = Week(
        phases=tuple(one for one in more if isinstance(one, Phase)),
        restarts=(restart, *(one for one in more if isinstance(one, Restart))),
    )
    told = tuple(one for one in more if isinstance(one, Told))
    return Incident(name=name, start=restart.at, end=end, week=week, told=told)


def with_incidents(planted: tuple[Incident, ...]) -> Week:
    """The healthy week with all of them."""
    week = HEALTHY
    for incident in planted:
        week = week.also(incident.week)
    return week
