"""The competing explanations of a lower length: each is tested before any is named.

A test says that an explanation holds, that it is ruled out, or that it cannot be told, and always with what speaks for
that. The rules are those by which the sidecar suspects causes (domain/suspects.py), asked over the stretches that lie
before and in the fall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np

from specbudget.catalog.sets import Artifact, Suspect
from specbudget.domain.acceptance import Bools, Floats, acceptance_length
from specbudget.domain.levels import Fall
from specbudget.domain.suspects import CLEARLY_LOWER, MIN_REQUESTS, MIN_STEPS, Evidence, suspects
from specbudget.domain.traffic_mix import Tally, mix_and_rate
from specbudget.review.findings.phrases import highest, middle, moment, stretch
from specbudget.review.model import Cause
from specbudget.review.request_evidence import RequestGroup
from specbudget.review.seen import Seen

CHANGED_WITHIN = 900.0
"""A pair that changed so many seconds before the fall, or in it, may be its cause."""


class Answer(Enum):
    """What a test says."""

    HOLDS = "holds"
    RULED_OUT = "ruled out"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One tested explanation: what it would be, what the test says, and why."""

    cause: Cause
    name: str
    answer: Answer
    why: str

    def sentence(self) -> str:
        """For the list of what was ruled out; an open question is told as one."""
        return f"{self.name}: {'cannot be told: ' if self.answer is Answer.UNKNOWN else ''}{self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """A fall and the traffic on both sides of it, by profile. `within` are the points of the fall."""

    seen: Seen
    fall: Fall
    start: float
    end: float
    within: Bools
    before: Mapping[str, Tally]
    after: Mapping[str, Tally]

    @property
    def change(self) -> float:
        """By how much the length moved; negative."""
        return self.fall.during.length - self.fall.before.length


def explanations(low: Lowered) -> list[Explanation]:
    """Every explanation, tested; those that explain most stand first."""
    return [test(low) for test in TESTS]


def _answer(holds: bool | None) -> Answer:
    return Answer.UNKNOWN if holds is None else Answer.HOLDS if holds else Answer.RULED_OUT


def _suspected(low: Lowered, cause: Suspect) -> str | None:
    """That the sidecar, which saw every request, held a cause for likely in the fall."""
    held = low.seen.suspects.get(cause)
    inside = None if held is None else stretch(held & low.within, low.seen.review)
    if inside is None:
        return None
    return f"the sidecar held it for likely since {moment(inside[0], low.seen.review)}"


def _pair_changed(low: Lowered, artifact: Artifact, cause: Cause) -> Explanation:
    review, held = low.seen.review, low.seen.held.get(artifact, ())
    known = [(place, value) for place, value in enumerate(held) if value is not None]
    if not known:
        why = "no fingerprint of its checkpoint was recorded"
        return Explanation(cause=cause, name=f"another {artifact}", answer=Answer.UNKNOWN, why=why)
    times = review.axis.times
    for (_, old), (place, new) in pairwise(known):
        if old != new and low.start - CHANGED_WITHIN <= times[place] <= low.end:
            why = f"{old[:8]} became {new[:8]} at {moment(float(times[place]), review)}, and the length fell then"
            return Explanation(cause=cause, name=f"another {artifact}", answer=Answer.HOLDS, why=why)
    suspect = Suspect.TARGET_CHANGED if artifact is Artifact.TARGET else Suspect.DRAFTER_CHANGED
    told = _suspected(low, suspect)
    why = told or f"its checkpoint is {known[0][1][:8]} before and after"
    return Explanation(cause=cause, name=f"another {artifact}", answer=_answer(told is not None), why=why)


def _target(low: Lowered) -> Explanation:
    return _pair_changed(low, Artifact.TARGET, Cause.TARGET_CHANGED)


def _drafter(low: Lowered) -> Explanation:
    return _pair_changed(low, Artifact.DRAFTER, Cause.DRAFTER_CHANGED)


def _quantisation(low: Lowered) -> Explanation:
    told = []
    for artifact in Artifact:
        formats = list(dict.fromkeys(one for one in low.seen.dtypes.get(artifact, ()) if one is not None))
        if len(formats) > 1:
            why = f"the {artifact}'s number format went from {formats[0]} to {formats[-1]}"
            return Explanation(cause=Cause.QUANTISATION, name="quantisation", answer=Answer.HOLDS, why=why)
        told += [f"{artifact} {formats[0]}" for _ in formats[:1]]
    why = f"number formats stayed: {', '.join(told)}" if told else "no number format was recorded"
    return Explanation(cause=Cause.QUANTISATION, name="quantisation", answer=_answer(False if told else None), why=why)


def _mix(low: Lowered) -> Explanation:
    name, cause = "traffic mix", Cause.MIX
    effects = mix_and_rate(low.before, low.after, min_steps=MIN_STEPS)
    rule = suspects(Evidence(earlier_profiles=low.before, profiles=low.after)).get(Suspect.MIX)
    told = _suspected(low, Suspect.MIX)
    if effects is not None:
        lengths = ", ".join(
            f"{profile} {_said(low.before.get(profile))} → {_said(low.after.get(profile))} "
            f"({_share(low.before, profile):.0%} → {_share(low.after, profile):.0%} of steps)"
            for profile in sorted({*low.before, *low.after})
        )
        why = (
            f"{effects.mix:+.2f} of {effects.change:+.2f} comes from moved shares and {effects.rate:+.2f} from the "
            f"profiles' own lengths: {lengths}"
        )
        return Explanation(cause=cause, name=name, answer=_answer(rule is not None), why=why)
    if told is not None:
        return Explanation(cause=cause, name=name, answer=Answer.HOLDS, why=f"{told}, from requests by length")
    if low.seen.suspects or low.seen.source == "request_log":
        why = "one profile only, and the sidecar saw no two groups of requests trade places"
        return Explanation(cause=cause, name=name, answer=Answer.RULED_OUT, why=why)
    return Explanation(cause=cause, name=name, answer=Answer.UNKNOWN, why="requests are not told apart by profile")


def _capped(low: Lowered) -> Explanation:
    name, cause = "a smaller verify window", Cause.CAPPED
    window = low.seen.review.acceptance.window
    told = _suspected(low, Suspect.CAPPED)
    before = middle(window, low.seen.review.axis.times < low.start)
    now = middle(window, low.within)
    if told is not None:
        return Explanation(cause=cause, name="capped verification", answer=Answer.HOLDS, why=told)
    if before is not None and now is not None and now < before:
        why = f"the verify window in force went from {before:g} to {now:g}"
        return Explanation(cause=Cause.ADAPTIVE_WINDOW, name=name, answer=Answer.HOLDS, why=why)
    known = now if now is not None else middle(window)
    why = "the verify window was not recorded" if known is None else f"it stayed {known:g}, and nothing was capped"
    return Explanation(cause=cause, name=name, answer=_answer(None if known is None else False), why=why)


def _groups(
    low: Lowered,
    name: str,
    cause: Cause,
    suspect: Suspect,
    pair: tuple[RequestGroup, RequestGroup] | None,
    words: tuple[str, str],
) -> Explanation:
    """Two groups of requests that were served at the same time: records first, else what the sidecar said."""
    if pair is not None and pair[0].length is not None and pair[1].length is not None:
        low_group, other = pair
        ratio = pair[0].length / pair[1].length
        why = (
            f"requests {words[0]} reach {pair[0].length:.2f} (n={low_group.requests}), {words[1]} "
            f"{pair[1].length:.2f} (n={other.requests}), {ratio:.2f} of it"
        )
        enough = min(low_group.requests, other.requests) >= MIN_REQUESTS
        return Explanation(cause=cause, name=name, answer=_answer(enough and ratio < CLEARLY_LOWER), why=why)
    told = _suspected(low, suspect)
    if told is not None:
        return Explanation(cause=cause, name=name, answer=Answer.HOLDS, why=told)
    if low.seen.source == "request_log":
        why = f"the sidecar compared requests {words[0]} with those {words[1]} and saw no gap, or too few of either"
        return Explanation(cause=cause, name=name, answer=Answer.RULED_OUT, why=why)
    return Explanation(
        cause=cause, name=name, answer=Answer.UNKNOWN, why="no request records were read: --requests DIR"
    )


def _prefix_hits(low: Lowered) -> Explanation:
    records = low.seen.requests
    return _groups(
        low,
        "prefix-cache hits",
        Cause.PREFIX_HITS,
        Suspect.PREFIX_HITS,
        None if records is None else (records.cached, records.uncached),
        ("with a cached prefix", "without"),
    )


def _long_context(low: Lowered) -> Explanation:
    records = low.seen.requests
    return _groups(
        low,
        "context length",
        Cause.LONG_CONTEXT,
        Suspect.LONG_CONTEXT,
        None if records is None else (records.long_prompts, records.short_prompts),
        ("with long prompts", "with short ones"),
    )


def _kv_pressure(low: Lowered) -> Explanation:
    name, cause = "KV pressure", Cause.KV_PRESSURE
    lost = low.seen.review.traffic.retractions
    retracted = 0.0 if lost is None else float(np.nansum(lost[low.within]))
    used = fullest(low.seen, low.within)
    if retracted > 0:
        why = f"{retracted:,.0f} requests lost their KV in it"
        return Explanation(cause=cause, name=name, answer=Answer.HOLDS, why=why)
    if used is None:
        return Explanation(cause=cause, name=name, answer=Answer.UNKNOWN, why="no KV pool was recorded")
    why = f"no request lost its KV, and the fuller pool was {used:.0%} used at most"
    return Explanation(cause=cause, name=name, answer=Answer.RULED_OUT, why=why)


def fullest(seen: Seen, within: Bools) -> float | None:
    """The highest used share of any pool, where something holds."""
    shares = []
    for memory in seen.review.memory:
        for pool in (memory.target, memory.drafter):
            if pool.used_tokens is not None and pool.capacity_tokens is not None:
                with np.errstate(divide="ignore", invalid="ignore"):
                    shares.append(highest((pool.used_tokens / pool.capacity_tokens)[within]))
    return max((share for share in shares if share is not None), default=None)


def _restart(low: Lowered) -> Explanation:
    name, cause, review = "an engine restart", Cause.ENGINE_RESTART, low.seen.review
    begun = [start.started_at for start in review.starts if start.basis is not None]
    first, last = low.fall.before.last, low.start + review.step
    near = [at for at in begun if first >= 0 and review.axis.times[first] <= at <= last]
    if near:
        why = f"the engine started at {moment(near[-1], review)}"
        return Explanation(cause=cause, name=name, answer=Answer.HOLDS, why=why)
    if not begun:
        return Explanation(cause=cause, name=name, answer=Answer.UNKNOWN, why="when the engine started is not known")
    earlier = [at for at in begun if at <= low.start] or begun
    why = f"the engine has run since {moment(max(earlier), review)}"
    return Explanation(cause=cause, name=name, answer=Answer.RULED_OUT, why=why)


def _said(tally: Tally | None) -> str:
    length = None if tally is None else acceptance_length(tally.accepted, tally.steps)
    return "none" if length is None else f"{length:.2f}"


def _share(side: Mapping[str, Tally], profile: str) -> float:
    whole = sum(tally.steps for tally in side.values())
    own = side.get(profile)
    return own.steps / whole if own is not None and whole else 0.0


TESTS: tuple[Callable[[Lowered], Explanation], ...] = (
    _target,
    _drafter,
    _quantisation,
    _mix,
    _capped,
    _prefix_hits,
    _long_context,
    _kv_pressure,
    _restart,
)
"""In the order of how much they explain where several hold: what was changed before what merely went along."""


def counted(track: Floats, held: Bools) -> float:
    """What a track of counts sums up to where something holds."""
    return float(np.nansum(track[held]))
