"""How long the stand-in's forward passes take."""

from __future__ import annotations

BREAK_EVEN = ((1, 2.1), (64, 3.4))
"""Break-even acceptance length by running requests: the budget that the stand-in writes says the same."""

PLAIN_BASE_SECONDS = 0.003
PLAIN_SECONDS_PER_REQUEST = 0.00002
PREFILL_BASE_SECONDS = 0.003
PREFILL_SECONDS_PER_TOKEN = 4e-6
TRANSFER_BASE_SECONDS = 0.002
TRANSFER_BYTES_PER_SECOND = 40e9


def break_even(running: int) -> float:
    """Break-even at a batch size: linear between the points, flat outside them."""
    (low, first), (high, last) = BREAK_EVEN
    position = (min(max(running, low), high) - low) / (high - low)
    return first + (last - first) * position


def decode_seconds(running: int, *, speculation: bool) -> float:
    """One decode iteration: a plain step, or draft, verify and overhead, which cost `break_even` plain steps."""
    plain = PLAIN_BASE_SECONDS + PLAIN_SECONDS_PER_REQUEST * running
    return plain * break_even(running) if speculation else plain


def transfer_seconds(size: int) -> float:
    """Handing over the KV of one prompt to a decode engine."""
    return TRANSFER_BASE_SECONDS + size / TRANSFER_BYTES_PER_SECOND


def prefill_seconds(tokens: int) -> float:
    """One prefill pass over new tokens."""
    return PREFILL_BASE_SECONDS + PREFILL_SECONDS_PER_TOKEN * tokens
