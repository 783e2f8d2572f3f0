"""Says on a terminal what is being read, once it takes longer than half a second."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self, TextIO

PATIENCE = 0.5
_CLEAR = "\r\x1b[2K"


class Progress:
    """One line on standard error, rewritten as work goes on and taken away at the end; silent when not a terminal."""

    def __init__(self, stream: TextIO | None = None, *, patience: float = PATIENCE) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._patience = patience
        self._text = ""
        self._shown = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._stream.isatty():
            self._timer = threading.Timer(self._patience, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._shown:
                self._write("")
            self._timer = None

    def working(self, text: str) -> None:
        """What is being done now."""
        with self._lock:
            self._text = text
            if self._shown:
                self._write(text)

    def _show(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._shown = True
                self._write(self._text)

    def _write(self, text: str) -> None:
        self._stream.write(_CLEAR + "".join(char if char.isprintable() else "?" for char in text[:100]))
        self._stream.flush()
