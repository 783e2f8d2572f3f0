"""Likely causes of a low or strange acceptance length, told from plain numbers. A suspect is no verdict.

Every rule has a guard: without enough verify steps on each side that it compares it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from specbudget.domain.acceptance import acceptance_length
from specbudget.domain.pair_change import Change, ModelChange
from specbudget.domain.traffic_mix import Tally, expected_length, mix_and_rate, reweighted_groups
from specbudget.domain.trend import Trend, TrendPoint, trend

MIN_STEPS = 500
"""Verify steps on each side of a comparison: with fewer a length of 3 is off by 0.1 and more by chance."""

MIN_REQUESTS = 3
"""Requests on each side: one long request with many steps is no group."""

CLEARLY_LOWER = 0.7
"""A group whose length is below this share of the other's is clearly lower."""

CONTRIBUTES_NOTHING = 1.3
"""Where there is no target: a length up to this pays for no drafter."""

NOTABLE_CHANGE = 0.1
"""A change of the length by this share of it is worth a cause."""

NEAR_WINDOW = 0.95
"""Length above this share of the verify window: text that repeats itself, or a window that is too small."""

STEADY_REPORTS = 20
STEADY_SPREAD = 0.005
"""So many batch reports whose lengths agree to the digit do not come from a drafter."""


class Suspect(StrEnum):
    """Likely causes of a low or strange acceptance length."""

    FROM_BOOT = "from_boot"
    DRAFTER_CHANGED = "drafter_changed"
    TARGET_CHANGED = "target_changed"
    CAPPED = "capped"
    MIX = "mix"
    PREFIX_HITS = "prefix_hits"
    LONG_CONTEXT = "long_context"
    KV_PRESSURE = "kv_pressure"
    DECAY = "decay"
    REPETITION = "repetition"
    SIMULATED = "simulated"


_NO_TALLIES: Mapping[str, Tally] = MappingProxyType({})
_NOT_COMPARED = ModelChange(change=Change.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known, over windows that the caller chooses; None and empty: not known.

    `recent` is the window that is judged (30 minutes); `since_start` everything since the engine started, and only
    if the start was seen, with `best_since_start` the highest length of any of its windows that had enough steps.
    `earlier_profiles` and `earlier_lengths` are of a window before `recent` of this engine's life. The two length
    histograms hold requests by length in bins of 0.1 from 1.0 on. `reports`, `lowest_report` and `highest_report`
    are of the batch reports of `recent`. `used_ratio` is of the fuller pool. Changes are against the approved pair,
    or against what this process saw first.
    """

    target_length: float | None = None
    window: int | None = None
    recent: Tally | None = None
    since_start: Tally | None = None
    best_since_start: float | None = None
    trend_points: Sequence[TrendPoint] = ()
    profiles: Mapping[str, Tally] = field(default_factory=lambda: _NO_TALLIES)
    earlier_profiles: Mapping[str, Tally] = field(default_factory=lambda: _NO_TALLIES)
    lengths: Sequence[float] = ()
    earlier_lengths: Sequence[float] = ()
    cached: Tally | None = None
    uncached: Tally | None = None
    long_prompts: Tally | None = None
    short_prompts: Tally | None = None
    retractions: float | None = None
    used_ratio: float | None = None
    high_water: float | None = None
    cap_length: float | None = None
    block_length: float | None = None
    reports: int = 0
    lowest_report: float | None = None
    highest_report: float | None = None
    simulated_length: float | None = None
    target_change: ModelChange = _NOT_COMPARED
    drafter_change: ModelChange = _NOT_COMPARED

    @property
    def length(self) -> float | None:
        """The recent acceptance length; None with too few steps to tell."""
        return _length(self.recent)

    @property
    def is_low(self) -> bool:
        """Whether the recent length is below the target, or pays for nothing where there is none."""
        return self.length is not None and self.length < (self.target_length or CONTRIBUTES_NOTHING)


def suspects(evidence: Evidence) -> dict[Suspect, str]:
    """The causes that the evidence speaks for, each with one sentence."""
    found = {cause: rule(evidence) for cause, rule in RULES.items()}
    return {cause: sentence for cause, sentence in found.items() if sentence is not None}


def _length(tally: Tally | None) -> float | None:
    if tally is None or tally.steps < MIN_STEPS:
        return None
    return acceptance_length(tally.accepted, tally.steps)


def _steps(tally: Tally | None) -> float:
    return 0.0 if tally is None else tally.steps


def _from_boot(e: Evidence) -> str | None:
    """A length of 1.0 is a length: the drafter ran and nothing of it was accepted."""
    floor = e.target_length or CONTRIBUTES_NOTHING
    length, best = _length(e.since_start), e.best_since_start
    if length is None or not e.is_low or length >= floor or (best is not None and best >= floor):
        return None
    nothing = "; the drafter contributes nothing" if length < 1.005 else ""
    return (
        f"since its start the engine never reached {floor:g}: {length:.2f} over {_steps(e.since_start):.0f} "
        f"verify steps{nothing}; look at quantisation, taps and tokenizer of the pair"
    )


def _changed(name: str, change: ModelChange) -> str | None:
    if change.change is not Change.CHANGED:
        return None
    return f"the {name}'s checkpoint is not the one that was approved ({', '.join(change.parts)} differ)"


def _drafter_changed(e: Evidence) -> str | None:
    return _changed("drafter", e.drafter_change)


def _target_changed(e: Evidence) -> str | None:
    return _changed("target", e.target_change)


def _capped(e: Evidence) -> str | None:
    if not e.is_low or not e.cap_length or e.block_length is None or e.target_length is None:
        return None
    if e.block_length < e.target_length:
        return None
    return (
        f"verification is capped at {e.cap_length:.1f} tokens a step; the whole block would reach "
        f"{e.block_length:.2f}, above the target of {e.target_length:g}"
    )


def _mix(e: Evidence) -> str | None:
    return _mix_of_profiles(e) or _mix_of_lengths(e)


def _mix_of_profiles(e: Evidence) -> str | None:
    effects = mix_and_rate(e.earlier_profiles, e.profiles, min_steps=MIN_STEPS)
    if effects is None or effects.change > -NOTABLE_CHANGE * effects.before:
        return None
    if effects.mix > 0.7 * effects.change:
        return None
    return (
        f"the length went from {effects.before:.2f} to {effects.after:.2f}; {effects.mix:+.2f} of it comes from the "
        f"traffic mix, {effects.rate:+.2f} from the profiles' own lengths"
    )


def _mix_of_lengths(e: Evidence) -> str | None:
    """Without profiles: the same two groups of requests as before, in other shares."""
    groups = reweighted_groups(e.earlier_lengths, e.lengths)
    if groups is None:
        return None
    return (
        f"requests fall into two groups with lengths of about {groups.low:.1f} and {groups.high:.1f}, as before; "
        f"the lower group went from {groups.share_before:.0%} to {groups.share_after:.0%} of them"
    )


def _lower(group: Tally | None, other: Tally | None) -> tuple[float, float] | None:
    """Both lengths where the group is clearly lower than the other."""
    low, high = _length(group), _length(other)
    if low is None or high is None or group is None or other is None:
        return None
    if min(group.requests, other.requests) < MIN_REQUESTS or low >= CLEARLY_LOWER * high:
        return None
    return low, high


def _prefix_hits(e: Evidence) -> str | None:
    found = _lower(e.cached, e.uncached)
    if found is None:
        return None
    return (
        f"requests with a prefix from the cache reach {found[0]:.2f}, those without {found[1]:.2f}, "
        f"{found[0] / found[1]:.2f} of it: the drafter's KV is not restored for the cached part"
    )


def _long_context(e: Evidence) -> str | None:
    found = _lower(e.long_prompts, e.short_prompts)
    if found is None:
        return None
    return f"requests with long prompts reach {found[0]:.2f}, those with short ones {found[1]:.2f}"


def _kv_pressure(e: Evidence) -> str | None:
    if e.retractions:
        return f"{e.retractions:.0f} requests lost their KV to others and started again"
    if e.used_ratio is not None and e.high_water is not None and e.used_ratio > e.high_water:
        return f"the KV pool is {e.used_ratio:.0%} used, above the mark of {e.high_water:.0%}"
    return None


def _decay(e: Evidence) -> str | None:
    found: Trend | None = trend(e.trend_points, min_steps=MIN_STEPS)
    if found is None or not found.is_decay:
        return None
    return (
        f"the length falls steadily: {found.slope_per_hour:+.3f} an hour over {found.hours * 60:.0f} minutes, "
        f"from {found.first:.2f} to {found.last:.2f}"
    )


def _repetition(e: Evidence) -> str | None:
    if e.length is None or e.window is None or e.window < 2 or e.length < 1 + NEAR_WINDOW * (e.window - 1):
        return None
    return f"a length of {e.length:.2f} in a window of {e.window}: nearly every draft is accepted, as in repeated text"


def _simulated(e: Evidence) -> str | None:
    if e.simulated_length is not None:
        return f"the engine is told to simulate a length of {e.simulated_length:g} (SGLANG_SIMULATE_ACC_LEN)"
    low, high = e.lowest_report, e.highest_report
    if e.reports < STEADY_REPORTS or low is None or high is None or high - low > STEADY_SPREAD or low <= 1.0:
        return None
    # a window that is always filled is repetition, not simulation
    if e.window is not None and high >= e.window - STEADY_SPREAD:
        return None
    return f"{e.reports} batch reports in a row say {high:.2f}: no drafter is that constant"


RULES: Mapping[Suspect, Callable[[Evidence], str | None]] = MappingProxyType(
    {
        Suspect.FROM_BOOT: _from_boot,
        Suspect.DRAFTER_CHANGED: _drafter_changed,
        Suspect.TARGET_CHANGED: _target_changed,
        Suspect.CAPPED: _capped,
        Suspect.MIX: _mix,
        Suspect.PREFIX_HITS: _prefix_hits,
        Suspect.LONG_CONTEXT: _long_context,
        Suspect.KV_PRESSURE: _kv_pressure,
        Suspect.DECAY: _decay,
        Suspect.REPETITION: _repetition,
        Suspect.SIMULATED: _simulated,
    }
)
"""The rule of each cause; a sentence when the evidence speaks for it."""

__all__ = ["Evidence", "Suspect", "Tally", "TrendPoint", "expected_length", "suspects"]
