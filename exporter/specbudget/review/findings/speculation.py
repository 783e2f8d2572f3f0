"""What speculation did: off while paid for, frozen, idle, nothing to judge, near its window."""

from __future__ import annotations

import numpy as np

from specbudget.catalog.sets import Role, Source, Suspect
from specbudget.domain.acceptance import Bools, acceptance_length, rate_at_length
from specbudget.domain.device_memory import MemoryPart
from specbudget.domain.speculation import FROZEN_SECONDS, SpeculationState
from specbudget.review.findings.phrases import highest, lasting, middle, stretch
from specbudget.review.model import Cause, Finding
from specbudget.review.seen import Seen
from specbudget.words import count, size

LEAST_SECONDS = 60.0
IDLE_SHARE = 0.5
"""So much of what was recorded must be idle before that is the answer to what happened."""
STRONG = 0.85
"""Of the verify window's drafts: above this the drafter could be asked for more, or costs more than it must."""


def find(seen: Seen) -> list[Finding]:
    """Off and frozen first: then there is no acceptance to speak of."""
    if seen.role == Role.PREFILL:
        return [_prefill_only(seen)]
    return [*_off(seen), *_frozen(seen), *_idle(seen), *_over_strong(seen)]


def _made(
    seen: Seen, what: str, cause: Cause, title: str, evidence: list[str], ruled_out: list[str], held: Bools
) -> Finding:
    start, end = stretch(held, seen.review) or (seen.review.axis.start, seen.review.axis.end)
    return Finding(
        id=f"acceptance.{what}",
        line="acceptance",
        cause=cause,
        title=title,
        evidence=tuple(evidence),
        ruled_out=tuple(ruled_out),
        start=start,
        end=end,
    )


def _tokens(seen: Seen, held: Bools) -> float | None:
    rate = seen.review.traffic.tokens_per_second
    return None if rate is None else float(np.nansum(rate[held])) * seen.review.step


def _off(seen: Seen) -> list[Finding]:
    held = seen.in_state(SpeculationState.OFF)
    span = stretch(held, seen.review)
    if span is None or held.sum() * seen.review.step < LEAST_SECONDS:
        return []
    tokens = _tokens(seen, held)
    paid = sum(
        middle(memory.device.get(part), held) or 0.0
        for memory in seen.review.memory
        for part in (MemoryPart.DRAFTER_WEIGHTS, MemoryPart.DRAFTER_KV)
    )
    steps = seen.review.acceptance.steps
    verified = None if steps is None else float(np.nansum(steps[held]))
    evidence = [f"The engine worked without its drafter {lasting(*span, seen.review)}."]
    if tokens is not None and verified is not None:
        evidence.append(f"{count(tokens)} tokens were generated in it, in {count(verified)} verify steps.")
    if paid:
        evidence.append(f"The drafter still held {size(paid)} of device memory for its weights and KV.")
    ruled_out = [
        "idle: requests went on running" if (tokens or 0) > 0 else "idle: cannot be told: no tokens were counted"
    ]
    ruled_out.append("a low length: without drafts there is none; it is not counted as bad")
    return [
        _made(
            seen,
            "speculation_off",
            Cause.SPECULATION_OFF,
            "Speculation was off while its memory was paid for",
            evidence,
            ruled_out,
            held,
        )
    ]


def _frozen(seen: Seen) -> list[Finding]:
    held = seen.in_state(SpeculationState.FROZEN)
    span = stretch(held, seen.review)
    if span is None:
        return []
    running = middle(seen.review.traffic.running, held)
    evidence = [
        f"No token counter moved for more than {FROZEN_SECONDS:.0f} s while requests were running, "
        f"{lasting(*span, seen.review)}.",
        *([] if running is None else [f"{running:.0f} requests stood in the batch all the while."]),
    ]
    queued = highest(None if seen.review.traffic.queued is None else seen.review.traffic.queued[held])
    if queued:
        evidence.append(f"Up to {queued:.0f} more were waiting.")
    ups = [highest(track[held]) for (_, source), track in seen.up.items() if source is Source.METRICS]
    ruled_out = []
    if ups and all(up == 1 for up in ups):
        ruled_out.append("an engine that is down: it answered every question of the sidecar")
    ruled_out.append("idle: the batch was not empty")
    return [
        _made(
            seen,
            "frozen",
            Cause.FROZEN,
            "The engine was frozen: requests ran and no token was made",
            evidence,
            ruled_out,
            held,
        )
    ]


def _idle(seen: Seen) -> list[Finding]:
    held, recorded = seen.in_state(SpeculationState.IDLE), seen.recorded()
    if not recorded.any() or held.sum() < IDLE_SHARE * recorded.sum():
        return []
    span = stretch(held, seen.review)
    assert span is not None
    queued = highest(None if seen.review.traffic.queued is None else seen.review.traffic.queued[held])
    evidence = [
        f"No token was made {lasting(*span, seen.review)}, and none was asked for.",
        *([] if queued is None else [f"At most {queued:.0f} requests were waiting."]),
    ]
    ups = [
        float(np.nanmean(track[held]))
        for (_, source), track in seen.up.items()
        if source is Source.METRICS and not np.isnan(track[held]).all()
    ]
    ruled_out = ["frozen: no request stood in the batch while nothing moved"]
    if ups:
        ruled_out.append(f"an engine that is down: {min(ups):.0%} of the sidecar's questions were answered")
    return [_made(seen, "idle", Cause.IDLE, "There was no traffic", evidence, ruled_out, held)]


def _prefill_only(seen: Seen) -> Finding:
    return _made(
        seen,
        "prefill_only",
        Cause.PREFILL_ONLY,
        "Nothing to judge: this engine computes prompts only",
        ["Its role is prefill: one token per request and no verify steps; acceptance shows on the decode engine."],
        ["speculation off: a prefill engine has none to turn off"],
        seen.recorded(),
    )


def _over_strong(seen: Seen) -> list[Finding]:
    track = seen.review.acceptance
    window = middle(track.window)
    if track.steps is None or track.accepted is None or window is None or window < 2:
        return []
    length = acceptance_length(float(np.nansum(track.accepted)), float(np.nansum(track.steps)))
    if length is None or length < 1 + STRONG * (window - 1):
        return []
    target, simulated = middle(track.target_length), seen.suspects.get(Suspect.SIMULATED)
    repeated = seen.suspects.get(Suspect.REPETITION)
    evidence = [
        f"{length:.2f} of at most {window:g} tokens a step: {rate_at_length(length, window):.0%} of a window's drafts.",
        *([] if target is None else [f"The target asks for {target:g}."]),
    ]
    ruled_out = [
        "repeated text: "
        + (
            "the sidecar held it for likely"
            if repeated is not None
            else "batch lengths vary and the window is not always filled"
        ),
        "a simulated length: "
        + ("the sidecar held it for likely" if simulated is not None else "batch reports differ from each other"),
    ]
    return [
        _made(
            seen,
            "over_strong",
            Cause.OVER_STRONG,
            f"The drafter is stronger than asked for: {length:.2f} in a window of {window:g}",
            evidence,
            ruled_out,
            seen.recorded(),
        )
    ]
