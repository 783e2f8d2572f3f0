"""Batch reports from the acceptance gauge: a sample counts once, and only when work went by since the last."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.counters import increase


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    passes: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeReport:
    """A report taken from the gauge: acceptance length, and the verify steps that it stands for."""

    length: float
    steps: float


class GaugeBatches:
    """Per rank: the gauge holds its last value when idle, so it is believed only after a report's worth of passes."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def see(
        self, rank: str, *, length: float | None, passes: float | None, tokens: float | None, report_passes: int
    ) -> GaugeReport | None:
        """The report behind a reading, or None. `tokens` counts emitted tokens, `passes` decode iterations.

        `length` None stands for a reading that is impossible or missing; what went by still goes by.
        """
        last = self._seen.get(rank)
        if last is None:
            self._seen[rank] = _Seen(passes=passes, tokens=tokens)
            return None
        # a counter that was not there yet grew from 0: engines make a child at its first increment
        worked = None if tokens is None else increase(last.tokens, tokens)
        ready = bool(worked) if passes is None else increase(last.passes, passes) >= report_passes
        if not ready:
            return None
        self._seen[rank] = _Seen(
            passes=last.passes if passes is None else passes, tokens=last.tokens if tokens is None else tokens
        )
        if length is None or length < 1.0:
            return None
        emitted = worked if worked else length * report_passes
        return GaugeReport(length=length, steps=emitted / length)

    def forget(self, ranks: set[str]) -> None:
        """Drops ranks that are no longer shown."""
        for rank in set(self._seen) - ranks:
            del self._seen[rank]
