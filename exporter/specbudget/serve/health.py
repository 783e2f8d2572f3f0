"""How each source is doing: up, when last read, how long it took, what went wrong."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from specbudget.catalog.series import SOURCE_ERRORS
from specbudget.catalog.sets import Source
from specbudget.serve.ledger import Ledger

STALE_SECONDS = 60.0
STALE_POLLS = 3

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SourceHealth:
    """One source. Times are seconds since the epoch; `up` is None until the first reading ended."""

    source: Source
    interval: float
    up: bool | None = None
    last_success: float | None = None
    duration: float | None = None
    problem: str = ""
    reason: str = ""

    def is_stale(self, now: float) -> bool:
        """True when what was read last no longer speaks for now: older than 3 polls and than 60 s."""
        if self.last_success is None:
            return True
        return now - self.last_success > max(STALE_POLLS * self.interval, STALE_SECONDS)

    def succeeded(self, now: float, duration: float) -> None:
        """Notes a good reading; a source that comes back is logged once."""
        if self.up is not True:
            log.info("source is up: source=%s", self.source)
        self.up, self.last_success, self.duration, self.problem, self.reason = True, now, duration, "", ""

    def failed(self, ledger: Ledger, reason: str, text: str, duration: float) -> None:
        """Notes a failed reading; a change of problem is logged once, not each poll."""
        if self.up is not False or text != self.problem:
            log.warning("source failed: source=%s reason=%s problem=%s", self.source, reason, text)
        self.up, self.duration, self.problem, self.reason = False, duration, text, reason
        ledger.add(SOURCE_ERRORS, (self.source, reason), 1)
