"""Why what users got per verify step is less than what the drafter counts: a step may run past the end of a text."""

from __future__ import annotations

from specbudget.review.request_evidence import LEAST_ROUNDS, RequestEvidence

NOTABLE = 0.02
"""Of the length: a smaller difference is rounding."""


def sentences(requests: RequestEvidence | None) -> list[str]:
    """Both numbers where they differ. Lengths are always taken from counts of steps, never from emitted tokens."""
    if requests is None or requests.emitted_per_round is None or requests.rounds.length is None:
        return []
    emitted, counted = requests.emitted_per_round, requests.rounds.length
    if abs(counted - emitted) < NOTABLE * counted:
        return []
    left_out = f"; left out are {requests.left_out:,} of fewer than {LEAST_ROUNDS} steps" if requests.left_out else ""
    return [
        f"Users got {emitted:.2f} tokens per verify step where the drafter counts {counted:.2f}: "
        f"steps run past the end of a text{left_out}."
    ]
