"""Keeps and publishes: what is saved is what is shown, and reading /metrics never waits for either.

Counters are saved before they are published. Otherwise a killed process would come back with smaller counters
than it had shown, and every reader would take the step back for a reset and count twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from specbudget.serve.store import Store

PUBLISH_SECONDS = 1.0
"""Between two renderings at least."""

IDLE_SECONDS = 5.0
"""Between two renderings at most: rolling windows and freshness move without any new reading."""

WINDOWS_SECONDS = 10.0
"""Between two savings of the rolling windows, which only people read."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """One rendering in both formats."""

    text: bytes = b""
    openmetrics: bytes = b"# EOF\n"


class _Rendered:
    """What the library's writers ask of a registry."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> list[Metric]:
        return self._metrics


def render(metrics: Iterable[Metric]) -> Page:
    """Both formats of the families."""
    registry: Any = _Rendered(metrics)
    return Page(text=generate_latest(registry), openmetrics=generate_openmetrics(registry))  # type: ignore[no-untyped-call]


class Publisher:
    """Saves and renders when something changed; `page` is what /metrics answers.

    `shown` is told after each time, `record` what the page holds.
    """

    def __init__(
        self,
        *,
        settle: Callable[[float], None],
        collect: Callable[[float], Iterable[Metric]],
        keep: Callable[[bool], dict[str, Any]],
        store: Store | None,
        saved: Callable[[bool], None],
        shown: Callable[[float], None] = lambda _: None,
        record: Callable[[float, list[Metric]], None] | None = None,
    ) -> None:
        self._settle, self._collect, self._keep = settle, collect, keep
        self._store, self._saved, self._shown, self.record = store, saved, shown, record
        self._asked = asyncio.Event()
        self._windows_at = 0.0
        self._last_problem = ""
        self.page = Page()

    def ask(self) -> None:
        """Something changed: publish soon."""
        self._asked.set()

    async def run(self) -> None:
        """Publishes until cancelled."""
        while True:
            self.publish(time.time())
            await asyncio.sleep(PUBLISH_SECONDS)
            # not wait_for(): on Python 3.11 it can swallow a cancellation
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS - PUBLISH_SECONDS):
                    await self._asked.wait()
            self._asked.clear()

    def publish(self, now: float, *, last: bool = False) -> None:
        """Settles what is counted only now, saves, then renders. `last`: the process ends, windows are saved too."""
        with_windows = last or now - self._windows_at >= WINDOWS_SECONDS
        if with_windows:
            self._windows_at = now
        self._settle(now)
        if self._store is not None:
            try:
                self._store.write(self._keep(with_windows))
            except (sqlite3.Error, OSError) as error:
                if str(error) != self._last_problem:
                    log.error("state is not saved, serving on without: folder=%s problem=%s", self._store.folder, error)
                self._last_problem = str(error)
                self._saved(False)
            else:
                if self._last_problem:
                    log.info("state is saved again: folder=%s", self._store.folder)
                self._last_problem = ""
                self._saved(True)
        families = list(self._collect(now))
        self.page = render(families)
        if self.record is not None:
            self.record(now, families)
        self._shown(now)
