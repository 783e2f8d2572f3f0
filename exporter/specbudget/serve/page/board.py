"""The status, made anew at most once a second however many ask, and the page that shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from specbudget.serve.desk import Desk
from specbudget.serve.page import render
from specbudget.serve.page.trace import Trace, acceptance_trace
from specbudget.serve.page.tree import tree
from specbudget.serve.publish import PUBLISH_SECONDS
from specbudget.serve.status import status
from specbudget.serve.status_model import Status

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The page at one moment: its regions as markup, and the trace."""

    status: Status
    regions: Mapping[str, str]
    trace: Trace

    def message(self, before: Snapshot | None = None) -> bytes:
        """What an open page has to change, all of it without `before`."""
        changed = self.regions if before is None else {
            name: text for name, text in self.regions.items() if before.regions.get(name) != text
        }  # fmt: skip
        told: dict[str, Any] = {
            "at": self.status.at,
            "build": render.build(),
            "state": self.status.state,
            "lines": {line.title: line.state for line in self.status.lines if line.budgeted},
            "service": self.status.service,
            "regions": {name: tree(text) for name, text in changed.items()},
        }
        trace = self.trace.whole() if before is None else self.trace.since(before.trace)
        if trace is not None:
            told["trace"] = trace
        return _encode(told)


class Board:
    """Answers from memory. What is asked for is made when it is older than a second, and then kept for all."""

    def __init__(
        self, desk: Desk, *, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._desk, self._clock, self._steady = desk, clock, steady
        self._made_at = -PUBLISH_SECONDS
        self._status: Status | None = None
        self._body: bytes | None = None
        self._snapshot: Snapshot | None = None
        self._document: bytes | None = None

    def status(self) -> bytes:
        """The status as JSON."""
        made = self._now()
        if self._body is None:
            self._body = _encode(made)
        return self._body

    def snapshot(self) -> Snapshot:
        """The page in its parts."""
        made = self._now()
        if self._snapshot is None:
            self._snapshot = Snapshot(made, render.regions(self._desk, made), acceptance_trace(self._desk, made.at))
        return self._snapshot

    def document(self) -> bytes:
        """The whole page."""
        snapshot = self.snapshot()
        if self._document is None:
            self._document = render.document(snapshot.status, snapshot.regions, snapshot.trace)
        return self._document

    def forget(self) -> None:
        """The next one who asks gets what is true now."""
        self._status = self._body = self._snapshot = self._document = None

    def _now(self) -> Status:
        now = self._steady()
        if self._status is None or now - self._made_at >= PUBLISH_SECONDS:
            self.forget()
            self._made_at, self._status = now, status(self._desk, self._clock())
        return self._status
