"""The server log: one file, one line per event, with SGLang's prefix of time and ranks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path


class ServerLog:
    """Appends lines of the form `[2026-11-29 16:06:56 DP0 TP0] text`; local time, whole seconds."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._second = 0
        self._stamp = ""

    def write(self, now: float, text: str, *, prefix: str = "") -> None:
        """Add one line; it reaches the file at the next `flush`."""
        second = int(now)
        if second != self._second:
            self._second = second
            self._stamp = f"{datetime.fromtimestamp(second):%Y-%m-%d %H:%M:%S}"
        self._file.write(f"[{self._stamp}{prefix}] {text}\n")

    def flush(self) -> None:
        """Give all lines to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close."""
        self._file.close()
