"""The first request that a ready engine answered, with the time that the engine waited for it taken off."""

from __future__ import annotations

from collections import deque
from typing import Any

KEPT_RECORDS = 8
"""Records kept until the ready line is read: the two files are read at different moments."""


class FirstAnswer:
    """Times are seconds since the epoch; `after_ready` is None until an answer after ready is known."""

    def __init__(self) -> None:
        self.after_ready: float | None = None
        self._ready: float | None = None
        self._records: deque[tuple[float, float | None]] = deque(maxlen=KEPT_RECORDS)

    def begin(self) -> None:
        """Another process starts: what the last one answered says nothing of it."""
        self.after_ready = self._ready = None
        self._records.clear()

    def ready(self, at: float) -> None:
        """The engine is ready."""
        self._ready = at
        self._settle()

    def record(self, finished: float, latency: float | None) -> None:
        """A request was answered, `latency` seconds after it arrived where that is known."""
        self._records.append((finished, latency))
        self._settle()

    def _settle(self) -> None:
        if self.after_ready is not None or self._ready is None:
            return
        for finished, latency in self._records:
            after = finished - self._ready
            if after < 0:
                # the engine answers nobody before it is ready
                continue
            waited = 0.0 if latency is None else max(0.0, after - latency)
            self.after_ready = after - waited
            return

    def dump(self) -> dict[str, Any]:
        """Plain values, for keeping."""
        return {"after_ready": self.after_ready, "ready": self._ready}

    def load(self, kept: dict[str, Any]) -> None:
        """Takes up what `dump` gave."""
        self.after_ready, self._ready = kept["after_ready"], kept["ready"]
