"""The causes that a review can name: a closed set, so that whoever reads its JSON can count on the words."""

from __future__ import annotations

from enum import StrEnum

from specbudget.domain.suspects import Suspect


class Cause(StrEnum):
    """Why something happened. The likely causes of a strange length have the names that /metrics gives them."""

    NOTHING = "nothing"
    """The stretch was read and nothing of note happened in it."""
    UNKNOWN = "unknown"
    """There is nothing from which anything could be said."""

    ACCEPTANCE_DROP = "acceptance_drop"
    """The length fell at once, of all traffic alike, and nothing else changed."""
    COLLAPSE = "collapse"
    """The same down to a length that pays for no drafter."""
    LOW_THROUGHOUT = "low_throughout"
    """Too short a length all the time: when and why it began lies before the stretch."""
    BREAK_EVEN = "break_even"
    """Two models were slower than one at the batch that ran."""
    PREFIX_REUSE = "prefix_reuse"
    """Fewer prompt tokens come from the cache since speculation is on."""
    OVER_STRONG = "over_strong"
    """A length near the verify window."""
    SPECULATION_OFF = "speculation_off"
    FROZEN = "frozen"
    IDLE = "idle"
    PREFILL_ONLY = "prefill_only"
    """An engine that only computes prompts: there is no acceptance to judge."""
    ADAPTIVE_WINDOW = "adaptive_window"
    """The verify window moved, and the length with it."""

    CAPACITY_SHRANK = "capacity_shrank"
    DRAFTER_KV = "drafter_kv"
    """The drafter's KV takes the room that the target's requests needed."""

    COLD_START = "cold_start"
    STUCK_START = "stuck_start"
    FAILED_START = "failed_start"
    HOT_RELOAD = "hot_reload"
    """Weights were loaded into a running engine: no cold start."""
    ENGINE_RESTART = "engine_restart"

    PAIR_UNFIT = "pair_unfit"
    QUANTISATION = "quantisation"
    """The checkpoint's number format changed with its length."""
    SIDECAR_BLIND = "sidecar_blind"

    FROM_BOOT = Suspect.FROM_BOOT.value
    DRAFTER_CHANGED = Suspect.DRAFTER_CHANGED.value
    TARGET_CHANGED = Suspect.TARGET_CHANGED.value
    CAPPED = Suspect.CAPPED.value
    MIX = Suspect.MIX.value
    PREFIX_HITS = Suspect.PREFIX_HITS.value
    LONG_CONTEXT = Suspect.LONG_CONTEXT.value
    KV_PRESSURE = Suspect.KV_PRESSURE.value
    DECAY = Suspect.DECAY.value
    REPETITION = Suspect.REPETITION.value
    SIMULATED = Suspect.SIMULATED.value
