"""Did two models pay: the acceptance length against break-even at the batch that ran."""

from __future__ import annotations

import numpy as np

from specbudget.domain.acceptance import Bools, Floats, acceptance_length
from specbudget.domain.break_even import from_step_times, speedup
from specbudget.review.findings.phrases import lasting, middle, stretch
from specbudget.review.model import Cause, Finding
from specbudget.review.seen import Seen
from specbudget.words import seconds

LEAST_SECONDS = 300.0
"""Shorter stretches below break-even are noise."""
BATCHES = ((1, 4), (5, 16), (17, 32), (33, 64), (65, None))
"""Running requests, as the table by batch groups them."""
LENGTH_DROPPED = 0.9


def find(seen: Seen) -> list[Finding]:
    """The time in which two models were slower than one."""
    review = seen.review
    track, running = review.acceptance, review.traffic.running
    length = track.request_length if track.request_length is not None else track.batch_length
    if length is None or track.break_even is None:
        return []
    known = ~(np.isnan(length) | np.isnan(track.break_even))
    below = known & (np.nan_to_num(length) < np.nan_to_num(track.break_even))
    loss = float(below.sum()) * review.step
    if loss < LEAST_SECONDS or loss < 0.05 * float(known.sum()) * review.step:
        return []
    span = stretch(below, review)
    assert span is not None
    here, needed, batch = middle(length, below), middle(track.break_even, below), middle(running, below)
    if here is None or needed is None:
        return []
    at = "" if batch is None else f" at {batch:.0f} running requests"
    gain = speedup(length=here, break_even=needed)
    evidence = [
        f"Length {here:.2f} against break-even {needed:.2f}{at}: {gain:.2f}x the speed of the target alone.",
        f"{seconds(loss)} of {seconds(float(known.sum()) * review.step)} lay below it, {lasting(*span, review)}.",
        *_by_batch(length, track.break_even, running, known),
    ]
    return [
        Finding(
            id="acceptance.break_even",
            line="acceptance",
            cause=Cause.BREAK_EVEN,
            title=f"Two models were slower than one: {gain:.2f}x{at}",
            evidence=tuple(evidence),
            ruled_out=tuple(_ruled_out(seen, below, known & ~below)),
            start=span[0],
            end=span[1],
        )
    ]


def _by_batch(length: Floats, needed: Floats, running: Floats | None, known: Bools) -> list[str]:
    """Speed-up by running requests, where more than one group of batches ran."""
    if running is None:
        return []
    told = []
    for low, high in BATCHES:
        held = known & (running >= low - 0.5) & (running < (np.inf if high is None else high + 0.5))
        here, there, batch = middle(length, held), middle(needed, held), middle(running, held)
        if here is not None and there is not None and batch is not None:
            told.append(by_batch(batch=batch, length=here, break_even=there))
    return told if len(told) > 1 else []


def by_batch(*, batch: float, length: float, break_even: float) -> str:
    """One row of the table by batch."""
    gain = speedup(length=length, break_even=break_even)
    return f"At {batch:.0f} running requests: {length:.2f} against break-even {break_even:.2f}, {gain:.2f}x."


def measured_by_batch(*, batch: float, length: float, spec_step_ms: float, plain_step_ms: float) -> tuple[float, str]:
    """The speed-up and its row from two step times of one batch: a verify step with its drafts, and a plain one."""
    needed = from_step_times(plain_ms=plain_step_ms, draft_ms=0.0, verify_ms=spec_step_ms, overhead_ms=0.0).at(batch)
    return speedup(length=length, break_even=needed), by_batch(batch=batch, length=length, break_even=needed)


def _ruled_out(seen: Seen, below: Bools, above: Bools) -> list[str]:
    """Whether it was the length that fell or break-even that rose."""
    track, running = seen.review.acceptance, seen.review.traffic.running
    length = track.request_length if track.request_length is not None else track.batch_length
    here, there = middle(length, below), middle(length, above)
    if here is None:
        return []
    if there is None:
        steps = float(np.nansum(track.steps)) if track.steps is not None else 0.0
        whole = acceptance_length(float(np.nansum(track.accepted)), steps) if track.accepted is not None else None
        return [f"a busier hour: it never paid in this review, at a length of {whole:.2f}"] if whole else []
    batch, other = middle(running, below), middle(running, above)
    grown = "" if batch is None or other is None else f" (running requests {other:.0f} → {batch:.0f})"
    if here >= LENGTH_DROPPED * there:
        return [f"a lower acceptance length: {here:.2f}, otherwise {there:.2f}; break-even rose with the batch{grown}"]
    return [f"a larger batch alone: the length itself went from {there:.2f} to {here:.2f}{grown}"]
