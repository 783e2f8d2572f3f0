"""Notices an engine that decodes and does not log it: its log level is too high, or its log another one."""

from __future__ import annotations

SILENT_REPORTS = 10
"""So many reports' worth of decode passes without one in the log, and none is to be expected."""


class ReportSilence:
    """Fed at every look at the log. No reports are no data; that nobody decodes is no silence."""

    def __init__(self) -> None:
        self._reported = False
        self._told = False
        self._passes: float | None = None

    def report(self) -> None:
        """The log has a decode report, readable or not."""
        self._reported, self._told = True, False

    def look(self, passes: float | None, report_passes: int) -> float | None:
        """The decode passes that went by without a report, once when they are too many; None otherwise.

        `passes` is the engine's own count, None where it says none.
        """
        if passes is None:
            return None
        if self._reported or self._passes is None or passes < self._passes:
            self._reported, self._passes = False, passes
        gone = passes - self._passes
        if self._told or gone < SILENT_REPORTS * report_passes:
            return None
        self._told = True
        return gone
