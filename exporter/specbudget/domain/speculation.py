"""What speculation is doing on a rank, told from movement: gauges of an idle engine hold their last value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from specbudget.domain.acceptance import is_possible

IDLE_SECONDS = 30.0
"""Counters flat this long: idle. SGLang refreshes its running gauge only every 30 s when idle."""

FROZEN_SECONDS = 60.0
"""Requests running and no token counter moved for this long: frozen."""


class SpeculationState(StrEnum):
    """The first that holds, in this order."""

    NO_DATA = "no_data"
    INVALID = "invalid"
    FROZEN = "frozen"
    OFF = "off"
    CAPPED = "capped"
    IDLE = "idle"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationReading:
    """One reading of one rank.

    `tokens` is any ever-growing count of the rank's work, prefill included; `decode_passes` counts decode
    iterations. `length` is the gauge: below 1 is no length (SGLang prints 0.0 without speculation and before the
    first decode report). `cap` is the mean verify window that the engine scheduled, 0 or None without one.
    """

    at: float
    running: float | None
    tokens: float | None
    decode_passes: float | None
    length: float | None
    window: float | None
    cap: float | None
    enabled: bool | None
    prefill_only: bool = False


class SpeculationWatch:
    """Follows one rank's readings. Times are seconds of one clock, given with each reading."""

    def __init__(self, report_passes: float = 40.0) -> None:
        self.report_passes = report_passes
        self._first: SpeculationReading | None = None
        self._last: SpeculationReading | None = None
        self._moved_at: float | None = None
        self._passes_without_length = 0.0

    def see(self, reading: SpeculationReading) -> SpeculationState:
        """The state after one more reading."""
        last = self._last
        if self._first is None:
            self._first, self._moved_at = reading, reading.at
        elif last is not None and _moved(last, reading):
            self._moved_at = reading.at
        if reading.length is not None and reading.length >= 1.0:
            self._passes_without_length = 0.0
        elif last is not None:
            self._passes_without_length += self._decoded(last, reading)
        self._last = reading
        return self._state(reading)

    def _decoded(self, last: SpeculationReading, reading: SpeculationReading) -> float:
        """Decode passes since the last reading; without such a counter, a report's worth if tokens moved."""
        if reading.decode_passes is not None:
            return max(0.0, reading.decode_passes - (last.decode_passes or 0.0))
        return self.report_passes if _moved(last, reading) else 0.0

    def _state(self, reading: SpeculationReading) -> SpeculationState:
        flat = reading.at - (self._moved_at if self._moved_at is not None else reading.at)
        has_length = reading.length is not None and reading.length > 0
        if reading.tokens is None and not has_length:
            return SpeculationState.NO_DATA
        if has_length and not is_possible(reading.length or 0.0, reading.window):
            return SpeculationState.INVALID
        if (reading.running or 0) > 0 and reading.tokens is not None and flat >= FROZEN_SECONDS:
            return SpeculationState.FROZEN
        silent = not has_length and not reading.prefill_only and self._passes_without_length >= self.report_passes
        if reading.enabled is False or silent:
            return SpeculationState.OFF
        idle = reading.prefill_only or (reading.tokens is not None and flat >= IDLE_SECONDS)
        if not has_length:
            return SpeculationState.IDLE if idle else SpeculationState.NO_DATA
        if not idle and reading.cap and (reading.window is None or reading.cap < reading.window):
            return SpeculationState.CAPPED
        return SpeculationState.IDLE if idle else SpeculationState.ACTIVE


def _moved(last: SpeculationReading, reading: SpeculationReading) -> bool:
    """True when work went on between two readings: a counter grew, fell (restart) or came to be."""
    return any(
        after is not None and before != after
        for before, after in ((last.tokens, reading.tokens), (last.decode_passes, reading.decode_passes))
    )
