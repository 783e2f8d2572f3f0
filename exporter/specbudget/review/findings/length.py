"""Did the acceptance length fall, and why: the explanations that can be tested are tested before one is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from specbudget.domain.acceptance import Bools, Floats, acceptance_length
from specbudget.domain.levels import Fall, Level, levels, worst_fall
from specbudget.domain.suspects import CONTRIBUTES_NOTHING, MIN_STEPS
from specbudget.domain.traffic_mix import Tally
from specbudget.review.findings import overshoot
from specbudget.review.findings.decay import Steady, steady_fall
from specbudget.review.findings.explanations import Answer, Explanation, Lowered, explanations
from specbudget.review.findings.phrases import bad_share, lasting, middle, moment
from specbudget.review.model import Cause, Finding, ProfileTrack
from specbudget.review.seen import Seen
from specbudget.words import count, seconds

SHORTLY = 0.1
"""Counted before a review, as a share of what was counted in it: no more than the first moments of a start."""

LARGE = 0.2
"""A fall by so much is told whatever it fell to."""
WORDS = {
    Cause.TARGET_CHANGED: "since the target was changed",
    Cause.DRAFTER_CHANGED: "since the drafter was changed",
    Cause.QUANTISATION: "since a checkpoint has another number format",
    Cause.MIX: "because the traffic mix changed; no profile became worse",
    Cause.CAPPED: "because verification was capped",
    Cause.ADAPTIVE_WINDOW: "because the verify window became smaller",
    Cause.PREFIX_HITS: "for requests whose prefix comes from the cache: the drafter's KV is not restored for it",
    Cause.LONG_CONTEXT: "for requests with long prompts",
    Cause.KV_PRESSURE: "while requests lost their KV to others",
    Cause.ENGINE_RESTART: "since the engine was started anew",
}


def find(seen: Seen) -> list[Finding]:
    """A fall and its cause; where the length was bad all along, that."""
    track = seen.review.acceptance
    if track.steps is None or track.accepted is None:
        return _from_batches(seen)
    found = levels(track.steps, track.accepted)
    if not found:
        return []
    fall = worst_fall(found, _earlier(seen, track.steps))
    decay = steady_fall(seen.review, track.steps, track.accepted)
    if fall is not None and _matters(seen, fall):
        low = _lowered(seen, fall)
        return [_explained(low) if decay is None else _decayed(low, decay)]
    return _bad_all_along(seen, found) or _groups_apart(seen) or _from_logs(seen, track.steps)


def _matters(seen: Seen, fall: Fall) -> bool:
    """A length that breathes with the hour is no incident: a fall is large, or what it fell to is too little."""
    if fall.during.length <= (1 - LARGE) * fall.before.length:
        return True
    low = _lowered(seen, fall)
    track = seen.review.acceptance
    bad, objective = bad_share(seen.review, low.within), middle(track.objective, low.within)
    if bad is not None and objective is not None:
        return bad > 1 - objective
    floors = [middle(one, low.within) for one in (track.target_length, track.break_even)]
    return any(floor is not None and fall.during.length < floor for floor in floors)


def _earlier(seen: Seen, steps: Floats) -> Level | None:
    """What was counted before the first point, where that is little: else it tells of another time."""
    whole = sum(tally.steps for tally in seen.before.values())
    if whole < MIN_STEPS or whole > np.nansum(steps):
        return None
    accepted = sum(tally.accepted for tally in seen.before.values())
    return Level(first=-1, last=-1, steps=whole, accepted=accepted)


def _lowered(seen: Seen, fall: Fall) -> Lowered:
    places, times = np.arange(seen.review.axis.count), seen.review.axis.times
    within: Bools = (places >= fall.during.first) & (places <= fall.during.last)
    earlier: Bools = (places >= fall.before.first) & (places <= fall.before.last)
    profiles = seen.review.acceptance.profiles
    return Lowered(
        seen=seen,
        fall=fall,
        start=float(times[fall.during.first]),
        end=float(times[fall.during.last]),
        within=within,
        before=seen.before if fall.before.first < 0 else _tallies(profiles, earlier),
        after=_tallies(profiles, within),
    )


def _tallies(profiles: tuple[ProfileTrack, ...], held: Bools) -> Mapping[str, Tally]:
    return {
        profile.name: Tally(
            steps=float(np.nansum(profile.steps[held])), accepted=float(np.nansum(profile.accepted[held]))
        )
        for profile in profiles
    }


def _explained(low: Lowered) -> Finding:
    tested = explanations(low)
    named = next((one for one in tested if one.answer is Answer.HOLDS), None)
    before, now = low.fall.before.length, low.fall.during.length
    if named is None:
        cause = Cause.COLLAPSE if now <= CONTRIBUTES_NOTHING else Cause.ACCEPTANCE_DROP
        what = "collapsed" if cause is Cause.COLLAPSE else "fell"
        title = f"Acceptance length {what} from {before:.2f} to {now:.2f}, of all traffic alike"
        remains = (
            "Everything else that could be tested stayed as it was: what is left is the drafter on this traffic.",
        )
    else:
        cause = named.cause
        title = f"Acceptance length fell from {before:.2f} to {now:.2f} {WORDS[cause]}"
        remains = (f"{named.name[0].upper()}{named.name[1:]}: {named.why}.",)
    return _finding(low, f"acceptance.{cause}", cause, title, remains, tested, named)


def _decayed(low: Lowered, steady: Steady) -> Finding:
    decay, low = steady.line, replace(low, start=steady.start, end=steady.end)
    tested = explanations(low)
    # what was changed, and a mix that moved slowly, are better names for it
    named = next((one for one in tested if one.answer is Answer.HOLDS), None)
    if named is not None and named.cause in (Cause.MIX, Cause.TARGET_CHANGED, Cause.DRAFTER_CHANGED):
        return _explained(low)
    title = (
        f"Acceptance length decayed steadily from {decay.first:.2f} to {decay.last:.2f} "
        f"over {seconds(decay.hours * 3600)}"
    )
    evidence = (
        f"It fell by {-decay.slope_per_hour:.2f} an hour on a line (correlation {decay.correlation:.2f}); the largest "
        f"step was {decay.largest_step:.0%} of the whole fall, so it is no jump.",
    )
    return _finding(low, f"acceptance.{Cause.DECAY}", Cause.DECAY, title, evidence, tested, None)


def _finding(
    low: Lowered,
    id: str,
    cause: Cause,
    title: str,
    first: tuple[str, ...],
    tested: list[Explanation],
    named: Explanation | None,
) -> Finding:
    fall, review = low.fall, low.seen.review
    where = "before this review began" if fall.before.first < 0 else "before"
    evidence = [
        *first,
        f"{fall.before.length:.2f} over {count(fall.before.steps)} verify steps {where}; {fall.during.length:.2f} over "
        f"{count(fall.during.steps)}, {low.change:+.2f} ({low.change / fall.before.length:+.1%}), "
        f"{lasting(low.start, low.end, review)}"
        + ("." if fall.lasting else f"; it came back at {moment(low.end + review.step, review)}."),
        *_slo(low),
        *overshoot.sentences(low.seen.requests),
        *_reloaded(low, cause),
        *_also(tested, named),
    ]
    ruled_out = tuple(one.sentence() for one in tested if one is not named and one.answer is not Answer.HOLDS)
    return Finding(
        id=id,
        line="acceptance",
        cause=cause,
        title=title,
        evidence=tuple(evidence),
        ruled_out=ruled_out,
        start=low.start,
        end=low.end,
    )


def _also(tested: list[Explanation], named: Explanation | None) -> list[str]:
    """Explanations that hold, too, and weigh less."""
    return [f"Also {one.name}: {one.why}." for one in tested if one.answer is Answer.HOLDS and one is not named]


def _reloaded(low: Lowered, cause: Cause) -> list[str]:
    """A target that changed under a running engine was loaded into it: that is no cold start."""
    review = low.seen.review
    begun = [start.started_at for start in review.starts if start.basis is not None]
    times = review.axis.times
    since = float(times[max(0, low.fall.before.last)])
    if cause not in (Cause.TARGET_CHANGED, Cause.QUANTISATION) or any(since <= at <= low.end for at in begun):
        return []
    took = "" if low.seen.reload_seconds is None else f" of {low.seen.reload_seconds:g} s"
    if not begun and not took:
        return []
    return [f"The engine was not started meanwhile: a hot reload{took}, no cold start."]


def _slo(low: Lowered) -> list[str]:
    track = low.seen.review.acceptance
    target, bad = middle(track.target_length, low.within), bad_share(low.seen.review, low.within)
    objective = middle(track.objective, low.within)
    if bad is None or objective is None:
        return []
    against = "" if target is None else f" against a target of {target:g}"
    return [f"{bad:.1%} of its requests were bad{against}; the objective allows {1 - objective:.1%}."]


def _bad_all_along(seen: Seen, found: list[Level]) -> list[Finding]:
    review, track = seen.review, seen.review.acceptance
    steps, accepted = sum(level.steps for level in found), sum(level.accepted for level in found)
    length, target = acceptance_length(accepted, steps), middle(track.target_length)
    floor = CONTRIBUTES_NOTHING if target is None else target
    if length is None or length >= floor:
        return []
    failing = sorted(seen.failing)
    evidence = [
        f"{length:.2f} over {count(steps)} verify steps, and never as much as {floor:g}.",
        *(f"The co-design rule {check} fails." for check in failing),
    ]
    low = _lowered(seen, Fall(before=found[0], during=_all(found), lasting=True))
    tested = [one for one in explanations(low) if one.cause not in (Cause.MIX, Cause.ENGINE_RESTART)]
    ruled_out = tuple(one.sentence() for one in tested if one.answer is not Answer.HOLDS)
    if failing:
        cause, why = Cause.PAIR_UNFIT, "from the start on: this drafter does not fit this target"
    elif _saw_the_start(seen, steps):
        cause, why = Cause.FROM_BOOT, "from the start on: look at quantisation, taps and tokenizer of the pair"
    else:
        cause, why = Cause.LOW_THROUGHOUT, "all the time: what lowered it lies before this review"
        evidence.append(
            "The engine had run for longer: begin the review earlier to see when it fell, and what changed."
        )
    title = f"Acceptance length was {length:.2f} {why}"
    return [
        Finding(
            id=f"{'codesign' if failing else 'acceptance'}.{cause}",
            line="codesign" if failing else "acceptance",
            cause=cause,
            title=title,
            evidence=tuple(evidence),
            ruled_out=ruled_out,
            start=review.axis.start,
            end=review.axis.end,
        )
    ]


def _saw_the_start(seen: Seen, steps: float) -> bool:
    """Whether an engine started within the review, or so shortly before that little was counted until it began."""
    begun = any(start.started_at >= seen.review.axis.start for start in seen.review.starts)
    return begun or sum(tally.steps for tally in seen.before.values()) < SHORTLY * steps


def _all(found: list[Level]) -> Level:
    return Level(
        first=found[0].first,
        last=found[-1].last,
        steps=sum(level.steps for level in found),
        accepted=sum(level.accepted for level in found),
    )


def _groups_apart(seen: Seen) -> list[Finding]:
    """No fall, and yet one group of requests far below another that was served at the same time."""
    track = seen.review.acceptance
    if seen.requests is None or track.steps is None or track.accepted is None:
        return []
    whole = _all(levels(track.steps, track.accepted))
    low = _lowered(seen, Fall(before=whole, during=whole, lasting=True))
    tested = explanations(low)
    return [
        Finding(
            id=f"acceptance.{one.cause}",
            line="acceptance",
            cause=one.cause,
            title=f"Acceptance length is low {WORDS[one.cause]}",
            evidence=(f"{one.why[0].upper()}{one.why[1:]}.",),
            ruled_out=tuple(o.sentence() for o in tested if o.answer is not Answer.HOLDS),
            start=low.start,
            end=low.end,
        )
        for one in tested
        if one.answer is Answer.HOLDS and one.cause in (Cause.PREFIX_HITS, Cause.LONG_CONTEXT)
    ]


def _from_batches(seen: Seen) -> list[Finding]:
    """Where no request is counted: batch reports have lengths, and each stands for about the same work."""
    lengths = seen.review.acceptance.batch_length
    if lengths is None or np.isnan(lengths).all():
        return []
    steps: Floats = np.where(np.isnan(lengths), 0.0, MIN_STEPS)
    found = levels(steps, steps * (np.nan_to_num(lengths, nan=1.0) - 1.0))
    fall = worst_fall(found)
    return [_explained(_lowered(seen, fall))] if fall is not None and _matters(seen, fall) else []


def _from_logs(seen: Seen, steps: Floats) -> list[Finding]:
    """Batch reports of logs tell of points that no sidecar saw."""
    lengths = seen.review.acceptance.batch_length
    if lengths is None or not (np.isnan(steps) & ~np.isnan(lengths) & ~seen.recorded()).any():
        return []
    return _from_batches(seen)
