"""Keeps samplings in a thread of its own: the sidecar hands them over and never waits for the disk."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from specbudget.catalog.kept import KEPT_BY_NAME
from specbudget.errors import StateError
from specbudget.history.writer import DEFAULT_BYTES, TIERS, HistoryWriter, Key

WAITING = 240
"""Samplings that wait for a disk that takes none: an hour. Older ones go first."""
AGAIN_AFTER = 2.0
"""Seconds until a writing that failed is tried again."""
ENDED_WITHIN = 1.0
"""Seconds that ending waits for the last writing."""

log = logging.getLogger(__name__)


class OneSample(Protocol):
    """What a rendered family has of each sample."""

    @property
    def name(self) -> str:
        """The name on the wire."""

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""

    @property
    def value(self) -> float:
        """Its value."""


class Family(Protocol):
    """What is rendered of one series."""

    @property
    def samples(self) -> Sequence[OneSample]:
        """Its samples."""


class Recorder:
    """`offer` takes what is published; `saved` is False while the latest sampling could not be kept."""

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._writer = HistoryWriter(folder, limit_bytes)
        self._queue: queue.SimpleQueue[tuple[float, Sequence[Family]] | None] = queue.SimpleQueue()
        self._slot: int | None = None
        self._told = ""
        self.saved = True
        self._thread = threading.Thread(target=self._run, daemon=True, name="specbudget-history")
        self._thread.start()

    def offer(self, now: float, families: Sequence[Family]) -> None:
        """Keeps what was published at `now` where it is the first of its quarter of a minute. Never waits."""
        slot = int(now // TIERS[0].interval)
        if slot == self._slot or self._queue.qsize() >= WAITING:
            return
        self._slot = slot
        self._queue.put((now, families))

    def close(self) -> None:
        """Keeps what waits and ends; a disk that hangs is not waited for."""
        self._queue.put(None)
        self._thread.join(ENDED_WITHIN)

    def _run(self) -> None:
        waiting: list[tuple[float, dict[Key, float]]] = []
        ends = False
        while not ends:
            try:
                taken = self._queue.get(timeout=AGAIN_AFTER if waiting else None)
            except queue.Empty:
                pass  # what could not be kept is tried again
            else:
                ends = taken is None
                if taken is not None:
                    waiting.append((taken[0], samples_of(taken[1])))
            del waiting[:-WAITING]
            self._write(waiting)
        self._writer.close()

    def _write(self, waiting: list[tuple[float, dict[Key, float]]]) -> None:
        try:
            self._writer.write(waiting)
        except (sqlite3.Error, OSError, StateError) as error:
            if str(error) != self._told:
                log.error("history is not kept, serving on: file=%s problem=%s", self._writer.path, error)
            self._told, self.saved = str(error), False
        except Exception:
            # a fault of ours in a record for people must not end the thread, nor be silent
            log.exception("history is not kept, serving on: file=%s", self._writer.path)
            waiting.clear()
            self.saved = False
        else:
            if self._told:
                log.info("history is kept again: file=%s", self._writer.path)
            self._told, self.saved = "", True
            waiting.clear()


def samples_of(families: Iterable[Family]) -> dict[Key, float]:
    """The samples that are kept, by name and labels."""
    found: dict[Key, float] = {}
    for family in families:
        for sample in family.samples:
            kept = KEPT_BY_NAME.get(sample.name)
            if kept is not None and all(sample.labels.get(label) == value for label, value in kept.only):
                found[(sample.name, tuple(sorted(sample.labels.items())))] = float(sample.value)
    return found
