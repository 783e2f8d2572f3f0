"""What is logged of the sidecar's own HTTP server: one short line, never a byte that a client sent.

aiohttp logs a request that it cannot read with a traceback, whose text holds the header, and so the password, of a
client that nobody has asked for one yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp.http import HttpProcessingError

from specbudget.serve.faults import log_fault

QUIET_SECONDS = 60.0
"""Between two lines of one kind, however many requests cause them."""

log = logging.getLogger(__name__)


class ServerLog(logging.Filter):
    """Stands before aiohttp's entries and lets none pass; tells in its own words what they were about."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[bool, float] = {}
        self._untold: dict[bool, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Always False."""
        if record.levelno >= logging.WARNING:
            self._tell(record.exc_info[1] if isinstance(record.exc_info, tuple) else None)
        return False

    def _tell(self, error: BaseException | None) -> None:
        refused, now = isinstance(error, HttpProcessingError), self._clock()
        before = self._told.get(refused)
        if before is not None and now - before < QUIET_SECONDS:
            self._untold[refused] = self._untold.get(refused, 0) + 1
            return
        self._told[refused], untold = now, self._untold.pop(refused, 0)
        more = f", {untold} more since the last such line" if untold else ""
        if refused:
            log.warning("a request was refused: it is not HTTP, or one of its lines is too long%s", more)
        elif error is not None:
            log_fault(log, f"a request could not be answered{more}", error)
        else:
            log.error("a request could not be answered%s", more)


def server_log() -> logging.Logger:
    """A logger for one of aiohttp's servers; nothing that is written to it comes out as it was written."""
    # not in the tree of loggers: each server counts its own lines
    logger = logging.Logger(__name__)
    logger.addFilter(ServerLog())
    return logger
