"""The requests of a replica over the week, drawn one by one, and what the sidecar makes of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specbudget.domain.requests import RequestBatch, RequestSlo, judge
from week.calendar import DAY, DAYS, PROFILES, STEP, Floats, Lengths, Week, share_of_peak

PEAK_PER_STEP = 30.0
"""Requests of a replica between two scrapes at the busiest hours: one a second."""

USUAL = {"default": Lengths(mean=3.8, spread=0.5), "code": Lengths(mean=4.9, spread=0.62)}
"""With the targets below about one request of a hundred is bad, where the objective allows five."""

TARGETS = {"default": 2.6, "code": 3.4}
LEAST_TOKENS = {"default": 84, "code": 109}
"""ceil(32 × target), as the budget file has it where it says nothing."""

WINDOW = 9
"""The verify window: no length is above it."""

CODE_SHARE = 0.2
STEP_SECONDS = 0.04
ABORTED = 0.01

SLO = RequestSlo(
    targets=np.array([TARGETS[name] for name in PROFILES]),
    min_output_tokens=np.array([LEAST_TOKENS[name] for name in PROFILES]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Columns of a replica's finished requests in the order in which the sidecar counts them.

    `batch` has `finished_at`; `counted_at` is later where the sidecar was away or behind. `verdict` is the SLO's.
    `seconds` is how long each ran.
    """

    batch: RequestBatch
    counted_at: Floats
    verdict: NDArray[np.int64]
    seconds: Floats

    def between(self, first: float, last: float) -> slice:
        """The requests counted from `first` on and before `last`."""
        return slice(*(int(np.searchsorted(self.counted_at, when)) for when in (first, last)))


def drawn(week: Week, replica: int, seed: int) -> Requests:
    """Draws the requests of a replica. The same seed gives the same requests."""
    rng = np.random.default_rng([seed, replica])
    finished = _arrivals(week, replica, rng)
    profile = (rng.random(len(finished)) < _code_share(week, finished)).astype(np.int64)
    tokens = np.maximum(1, rng.lognormal(5.6, 0.8, len(finished))).astype(np.int64)
    length = np.clip(_lengths(week, replica, finished, profile, rng), 1.0, WINDOW)
    steps = np.maximum(1, np.round(tokens / length)).astype(np.int64)
    plain = _during(week, replica, finished, "plain")
    steps = np.where(plain, 0, steps)
    slower = np.ones(len(finished))
    for phase in week.phases:
        slower[phase.covers(replica, finished)] *= phase.slow
    seconds = np.where(plain, tokens, steps) * STEP_SECONDS * slower
    batch = RequestBatch(
        finished_at=finished,
        output_tokens=tokens,
        prompt_tokens=np.full(len(finished), 900),
        cached_tokens=np.zeros(len(finished), np.int64),
        aborted=rng.random(len(finished)) < ABORTED,
        steps=steps,
        accepted=np.where(plain, 0, np.minimum(tokens - steps, (WINDOW - 1) * steps)),
        proposed=np.where(plain, 0, (WINDOW - 1) * steps),
        window=np.full(len(finished), WINDOW),
        bound=np.full(len(finished), WINDOW),
        rank=np.zeros(len(finished), np.int64),
        profile=profile,
        histogram=np.zeros((len(finished), 0), np.int64),
    )
    verdict = judge(batch, SLO, batch.inconsistent())
    return Requests(batch=batch, counted_at=_counted(week, replica, finished), verdict=verdict, seconds=seconds)


def _arrivals(week: Week, replica: int, rng: np.random.Generator) -> Floats:
    """When requests finish, in order; none while the engine is not ready."""
    slots = np.arange(0.0, DAYS * DAY, STEP)
    rate = PEAK_PER_STEP * share_of_peak(slots)
    for phase in week.phases:
        rate[phase.covers(replica, slots)] *= phase.rate
    for restart in week.restarts:
        if restart.replica == replica and restart.engine:
            rate[(slots >= restart.at - STEP) & (slots < restart.ready)] = 0.0
    counts = rng.poisson(rate)
    times = np.repeat(slots, counts) + STEP * rng.random(int(counts.sum()))
    more = [rng.uniform(p.start, p.end, p.extra) for p in week.phases if p.covers(replica, np.array([p.start]))[0]]
    return np.sort(np.concatenate([times, *more]))


def _code_share(week: Week, times: Floats) -> Floats:
    share = np.full(len(times), CODE_SHARE)
    for phase in week.phases:
        if phase.code is not None:
            share[(times >= phase.start) & (times < phase.end)] = phase.code
    return share


def _lengths(week: Week, replica: int, times: Floats, profile: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    mean, spread = (np.array([getattr(USUAL[name], of) for name in PROFILES])[profile] for of in ("mean", "spread"))
    for phase in week.phases:
        inside = phase.covers(replica, times)
        for name, lengths in phase.lengths.items():
            chosen = inside & (profile == PROFILES.index(name))
            mean[chosen], spread[chosen] = lengths.mean, lengths.spread
        mean[inside] *= 1.0 - phase.falls * (times[inside] - phase.start) / (phase.end - phase.start)
    return mean + spread * rng.standard_normal(len(times))


def _during(week: Week, replica: int, times: Floats, what: str) -> NDArray[np.bool_]:
    inside = np.zeros(len(times), np.bool_)
    for phase in week.phases:
        if getattr(phase, what):
            inside |= phase.covers(replica, times)
    return inside


def _counted(week: Week, replica: int, finished: Floats) -> Floats:
    """A sidecar that was away counts what was written meanwhile as soon as it has begun again."""
    counted = finished.copy()
    for hang in week.hangs:
        if hang.replica == replica:
            counted = hang.counted(counted)
    for restart in week.restarts:
        if restart.replica == replica:
            missed = (counted >= restart.at) & (counted < restart.back + 1.0)
            counted = np.where(missed, restart.back + 1.0, counted)
    return counted
