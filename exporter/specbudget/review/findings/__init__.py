"""All findings of a review, one file per question, and the order in which people should read them."""

from __future__ import annotations

from dataclasses import replace

from specbudget.review.findings import break_even, length, memory, pair, quiet, reuse, sidecar, speculation, starts
from specbudget.review.model import Cause, Finding
from specbudget.review.seen import Seen

QUESTIONS = (length, starts, speculation, pair, break_even, memory, reuse, sidecar)

ORDER = (
    Cause.STUCK_START,
    Cause.FROZEN,
    Cause.SIDECAR_BLIND,
    Cause.PAIR_UNFIT,
    Cause.SPECULATION_OFF,
    Cause.QUANTISATION,
    Cause.TARGET_CHANGED,
    Cause.DRAFTER_CHANGED,
    Cause.CAPACITY_SHRANK,
    Cause.MIX,
    Cause.CAPPED,
    Cause.PREFIX_HITS,
    Cause.LONG_CONTEXT,
    Cause.DECAY,
    Cause.COLLAPSE,
    Cause.ACCEPTANCE_DROP,
    Cause.FROM_BOOT,
    Cause.LOW_THROUGHOUT,
    Cause.KV_PRESSURE,
    Cause.FAILED_START,
    Cause.COLD_START,
    Cause.BREAK_EVEN,
    Cause.PREFIX_REUSE,
    Cause.DRAFTER_KV,
    Cause.OVER_STRONG,
    Cause.ADAPTIVE_WINDOW,
    Cause.ENGINE_RESTART,
    Cause.PREFILL_ONLY,
    Cause.IDLE,
)
"""What explains the others before what follows from it; what is only worth knowing comes last."""


def findings(seen: Seen) -> tuple[Finding, ...]:
    """All findings, the likeliest cause of the worst first; never empty."""
    found: list[Finding] = []
    for question in QUESTIONS:
        told = {finding.cause for finding in found}
        # a cause is told by the first question that comes upon it
        found += [finding for finding in question.find(seen) if finding.cause not in told]
    ordered = sorted(found, key=lambda f: (_rank(f.cause), f.start)) or [quiet.find(seen)]
    # milliseconds, which every storage keeps; VictoriaMetrics keeps fifteen digits of a moment
    return tuple(replace(f, start=round(f.start, 3), end=round(f.end, 3)) for f in ordered)


def _rank(cause: Cause) -> int:
    return ORDER.index(cause) if cause in ORDER else len(ORDER)
