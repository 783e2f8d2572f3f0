"""When things happen in the simulated week: times, traffic, and what befalls a replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
STEP = 30.0
"""Seconds between scrapes: half of the rules' interval, as in most installations; 15 s would only double the size."""

DAYS = 7
SAMPLES = int(DAYS * DAY / STEP) + 1
MONDAY = 1767571200.0
"""Monday, 5 January 2026, 00:00 UTC. Every time below is in seconds from here."""

REPLICAS = (0, 1, 2)
PROFILES = ("default", "code")
"""Profiles; the second has a higher target of its own."""

Floats = NDArray[np.float64]


def at(day: int, clock: str) -> float:
    """Seconds of a time of day; day 0 is Monday."""
    hours, minutes = clock.split(":")
    return day * DAY + int(hours) * HOUR + int(minutes) * MINUTE


MON, TUE, WED, THU, FRI, SAT, SUN = range(DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """How the acceptance lengths of a profile's requests are spread."""

    mean: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What is different for a while; what is None is as ever. `replicas` empty: all.

    `lengths` by profile; `falls` is the share by which lengths have fallen at its end, on a line. `rate` and `slow`
    multiply requests and their duration, `extra` are requests besides, `code` is the share of the second profile.
    `kv` is the used share of the pools, with retractions. `down` names sources that fail, `fingerprint` another
    drafter on disk. `plain`: speculation is off.
    """

    start: float
    end: float
    replicas: tuple[int, ...] = ()
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    falls: float = 0.0
    rate: float = 1.0
    extra: int = 0
    slow: float = 1.0
    code: float | None = None
    kv: float | None = None
    down: tuple[str, ...] = ()
    fingerprint: str | None = None
    plain: bool = False

    def covers(self, replica: int, times: Floats) -> NDArray[np.bool_]:
        """Which of the times fall into it, for a replica."""
        inside: NDArray[np.bool_] = (times >= self.start) & (times < self.end)
        return inside if not self.replicas or replica in self.replicas else np.zeros(len(times), np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A replica or its sidecar ends and begins anew.

    `engine`: the whole pod, whose engine then takes `cold` seconds to its first generation; else only the sidecar.
    `renamed`: the pod has a new name and the old target is no longer discovered; else `up` is 0 meanwhile.
    `resumes`: the sidecar goes on with its counters, since its identity is the same; else they begin at 0.
    `capacity` is what the target's pool holds of what it held before.
    """

    at: float
    replica: int
    down: float = 60.0
    engine: bool = False
    renamed: bool = False
    resumes: bool = False
    cold: float = 75.0
    over_budget: bool = False
    capacity: float = 1.0

    @property
    def back(self) -> float:
        """When the sidecar answers again."""
        return self.at + self.down

    @property
    def ready(self) -> float:
        """When requests are served again."""
        return self.back + self.cold if self.engine else self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """The storage under a request log stands still; afterwards the sidecar reads what was written meanwhile."""

    start: float
    replica: int
    seconds: float
    catches_up: float

    @property
    def resumed(self) -> float:
        """When it can be read again."""
        return self.start + self.seconds

    @property
    def over(self) -> float:
        """When nothing is left to catch up with."""
        return self.resumed + self.catches_up

    def counted(self, finished: Floats) -> Floats:
        """When the sidecar counts what finished then."""
        speed = (self.over - self.start) / self.catches_up
        late = self.resumed + (finished - self.start) / speed
        inside = (finished >= self.start) & (finished < self.over)
        return np.where(inside, late, finished)

    def lag(self, times: Floats) -> Floats:
        """Age of what is being counted, while there is a backlog that the sidecar knows of."""
        speed = (self.over - self.start) / self.catches_up
        inside = (times >= self.resumed) & (times < self.over)
        return np.where(inside, times - (self.start + (times - self.resumed) * speed), 0.0)


def share_of_peak(times: Floats) -> Floats:
    """Requests as a share of the busiest: none from 01:00 to 05:30, flat from 09:00 to 18:00, weekends at 40 %."""
    hours = (times % DAY) / HOUR
    shape = np.interp(hours, [0, 1, 1.001, 5.5, 5.501, 9, 18, 24], [0.15, 0.05, 0, 0, 0.05, 1, 1, 0.15])
    return np.where(times // DAY >= SAT, 0.4 * shape, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Everything that happens in a week."""

    phases: tuple[Phase, ...] = ()
    restarts: tuple[Restart, ...] = ()
    hangs: tuple[Hang, ...] = ()

    def also(self, other: Week) -> Week:
        """Both weeks' happenings."""
        return Week(
            phases=self.phases + other.phases, restarts=self.restarts + other.restarts, hangs=self.hangs + other.hangs
        )


def rolling(day: int, clock: str, *, renamed: bool) -> tuple[Restart, ...]:
    """A deploy that replaces one pod after the other."""
    return tuple(
        Restart(at=at(day, clock) + 10 * MINUTE * place, replica=replica, down=180.0, engine=True, renamed=renamed)
        for place, replica in enumerate(REPLICAS)
    )


HEALTHY = Week(
    phases=(
        # the second profile, whose lengths and target are higher, goes from a fifth of the traffic to most of it
        Phase(start=at(MON, "13:00"), end=at(MON, "17:00"), code=0.7),
        Phase(start=at(FRI, "08:00"), end=at(FRI, "09:00"), code=0.02),
        # a few minutes above the mark are no pressure
        Phase(start=at(FRI, "18:30"), end=at(FRI, "18:36"), replicas=(0,), kv=0.97),
        # a burst of twice the traffic
        Phase(start=at(SUN, "16:00"), end=at(SUN, "16:20"), rate=2.0),
        # four requests in a night, of which most are bad by chance
        Phase(
            start=at(SAT, "03:00"),
            end=at(SAT, "03:20"),
            extra=4,
            lengths={"default": Lengths(mean=2.5, spread=0.2), "code": Lengths(mean=3.3, spread=0.2)},
        ),
    ),
    restarts=(
        *rolling(TUE, "10:00", renamed=False),
        *rolling(THU, "10:00", renamed=True),
        Restart(at=at(WED, "15:00"), replica=1, resumes=True),
        Restart(at=at(WED, "16:00"), replica=0),
        Restart(at=at(FRI, "03:00"), replica=2),
    ),
    hangs=(Hang(start=at(WED, "11:00"), replica=2, seconds=8 * MINUTE, catches_up=4 * MINUTE),),
)
"""A week in which nothing is wrong: mixed traffic, two deploys, restarts of sidecars, a backlog."""
