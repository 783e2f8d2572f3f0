"""The conditions in force at a moment of a scenario: its phases, applied in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specbudget.simulate.scenarios import Phase, Scenario


def mix_length(lengths: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Acceptance length over all steps of a mix, where `shares` are of output tokens: the harmonic mean."""
    total = sum(shares[name] for name in lengths)
    return total / sum(shares[name] / lengths[name] for name in lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What holds now. `lengths` and `shares` are by profile; the rest is as in `Phase`."""

    lengths: Mapping[str, float]
    shares: Mapping[str, float]
    arrivals: float = 1.0
    prompt_tokens: int = 0
    speculation: bool = True
    decoding: bool = True
    repeating: bool = False
    faults: Mapping[str, int] = field(default_factory=dict)


class Timeline:
    """The conditions of a scenario as a function of the seconds since ready."""

    def __init__(self, scenario: Scenario, *, speed: float = 1.0) -> None:
        if speed <= 0:
            raise ValueError("speed: give a number above 0")
        self.speed = speed
        self.phases = tuple(sorted(scenario.phases, key=lambda phase: phase.at))
        self.base = Conditions(
            lengths={name: profile.length for name, profile in scenario.profiles.items()},
            shares={name: profile.share for name, profile in scenario.profiles.items()},
            prompt_tokens=scenario.prompt_tokens,
        )
        self._moving_until = max((phase.at + phase.over for phase in self.phases), default=0.0)
        self._cached: tuple[float, Conditions] | None = None

    def at(self, seconds: float) -> Conditions:
        """Conditions `seconds` after ready, on the engine's clock (before the division by speed)."""
        moment = seconds * self.speed
        # Ramps move in steps of a quarter of a second: fine enough to look smooth, cheap enough to cache.
        moment = self._moving_until if moment > self._moving_until else int(moment * 4) / 4
        if self._cached is None or self._cached[0] != moment:
            self._cached = (moment, self._compute(moment))
        return self._cached[1]

    def starts(self) -> list[tuple[float, Phase]]:
        """Each phase with its beginning in seconds after ready, divided by speed."""
        return [(phase.at / self.speed, phase) for phase in self.phases]

    def _compute(self, moment: float) -> Conditions:
        now = self.base
        for phase in self.phases:
            if phase.at > moment:
                break
            now = _apply(now, phase, moment)
        return now


def _apply(now: Conditions, phase: Phase, moment: float) -> Conditions:
    named = {
        name: value
        for name in ("shares", "arrivals", "prompt_tokens", "speculation", "decoding", "repeating", "faults")
        if (value := getattr(phase, name)) is not None
    }
    changed = replace(now, **named)
    if phase.length is None:
        return changed
    present = mix_length(changed.lengths, changed.shares)
    progress = 1.0 if phase.over <= 0 else min(1.0, (moment - phase.at) / phase.over)
    aim = present + (phase.length - present) * progress
    return replace(changed, lengths=_scaled(changed.lengths, changed.shares, aim))


def _scaled(lengths: Mapping[str, float], shares: Mapping[str, float], aim: float) -> dict[str, float]:
    """The lengths, all moved by one factor of their accepted drafts so that the mix has length `aim`."""
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        moved = {name: 1 + (length - 1) * middle for name, length in lengths.items()}
        if mix_length(moved, shares) < aim:
            low = middle
        else:
            high = middle
    return {name: 1 + (length - 1) * low for name, length in lengths.items()}
