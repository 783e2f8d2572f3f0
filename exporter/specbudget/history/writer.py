"""Writes the history: a row per sampling at once, packed by the hour, thinned out with age, bounded in size."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specbudget.catalog.kept import KEPT_BY_NAME
from specbudget.damaged_file import move_aside
from specbudget.domain.axis import Labels
from specbudget.domain.reduction import Reduction, thinned
from specbudget.history.codec import BlockError, pack, unpack
from specbudget.history.database import FILE_NAME, open_for_writing

DAY = 86400


class Tier(NamedTuple):
    """Samples `interval` seconds apart, packed in blocks of `span` seconds, until they are `kept` seconds old."""

    interval: int
    span: int
    kept: int


TIERS = (Tier(15, 3600, 2 * DAY), Tier(60, 4 * 3600, 8 * DAY), Tier(300, DAY, 35 * DAY))
"""From fine to coarse. What is kept of a stretch of samples stands in catalog/kept.py."""

MIB = 1 << 20
DEFAULT_BYTES = 64 * MIB
AFTER_CUT = 0.95
"""So much of the limit is left when the oldest had to go, so that not each writing has to cut."""
SPANS_AT_ONCE = 8
"""Spans that one tidying works on at most; after a long pause the rest follows with the next."""

Key = tuple[str, Labels]

log = logging.getLogger(__name__)


class HistoryWriter:
    """One state folder's history. `write` raises sqlite3.Error or OSError and loses nothing: call it again.

    A file that is damaged is moved aside. Times are seconds since the epoch.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_BYTES) -> None:
        self.path = folder / FILE_NAME
        self._limit = limit_bytes
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._ids: dict[Key, int] = {}
        self._tidied_hour: int | None = None

    def write(self, rows: Iterable[tuple[float, dict[Key, float]]]) -> None:
        """Keeps samplings in one transaction."""
        rows = list(rows)
        try:
            self._write(rows)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            # the file was damaged after it was opened
            self.close()
            self._move_aside(error)
            self._write(rows)

    def _write(self, rows: Iterable[tuple[float, dict[Key, float]]]) -> None:
        db, newest = self._opened(), 0.0
        try:
            with db:
                for at, samples in rows:
                    columns = {self._id(db, key): np.array([value]) for key, value in samples.items()}
                    if columns:
                        _put(db, TIERS[0].interval, np.array([round(at * 1000)]), columns)
                        newest = max(newest, at)
        except BaseException:
            # numbers that were given in this transaction are not in the file
            self._ids = _numbers(db)
            raise
        hour = int(newest // TIERS[0].span)
        if newest and hour != self._tidied_hour:
            self.tidy(newest)
            self._tidied_hour = hour
        self._cut(db)

    def tidy(self, now: float) -> None:
        """Packs what lies in single rows, thins out what is old enough, drops what is too old."""
        db = self._opened()
        with db:
            self._pack_rows(db, now)
            for fine, coarse in pairwise(TIERS):
                self._thin_out(db, now, fine, coarse)
            db.execute("DELETE FROM blocks WHERE last < ?", (round((now - TIERS[-1].kept) * 1000),))
            self._forget_series(db)

    def close(self) -> None:
        """Folds the journal into the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is not None and not self._is_there():
            # deleted or replaced under us: SQLite would write on into a file that nobody can open again
            self.close()
        if self._db is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = self._begun()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                    raise  # no word against the content: no space, no right, no device
                self._db = self._begun_anew(error)
            except sqlite3.DatabaseError as error:
                self._db = self._begun_anew(error)
            self._inode = self.path.stat().st_ino
        return self._db

    def _begun(self) -> sqlite3.Connection:
        db = open_for_writing(self.path)
        try:
            self._ids = _numbers(db)
        except (ValueError, TypeError) as error:
            db.close()
            raise sqlite3.DatabaseError("labels of a series cannot be read") from error
        except BaseException:
            db.close()
            raise
        return db

    def _begun_anew(self, reason: sqlite3.Error) -> sqlite3.Connection:
        self._move_aside(reason)
        return self._begun()

    def _move_aside(self, reason: sqlite3.Error) -> None:
        aside = move_aside(self.path)
        log.error("history is not readable, starting anew: file=%s moved_to=%s reason=%s", self.path, aside, reason)

    def _is_there(self) -> bool:
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def _id(self, db: sqlite3.Connection, key: Key) -> int:
        number = self._ids.get(key)
        if number is None:
            name, labels = key
            text = json.dumps(labels, ensure_ascii=False, separators=(",", ":"))
            db.execute("INSERT OR IGNORE INTO series (name, labels) VALUES (?, ?)", (name, text))
            found = db.execute("SELECT id FROM series WHERE name = ? AND labels = ?", (name, text)).fetchone()
            number = self._ids[key] = int(found[0])
        return number

    def _pack_rows(self, db: sqlite3.Connection, now: float) -> None:
        """The single rows of whole spans that are over, as one block each."""
        tier = TIERS[0]
        border = int(now // tier.span) * tier.span * 1000
        rows = db.execute(
            "SELECT first, last, data FROM blocks WHERE interval = ? AND rows = 1 AND last < ? ORDER BY first",
            (tier.interval, border),
        ).fetchall()
        spans: dict[int, list[tuple[int, bytes]]] = {}
        for first, _, data in rows:
            spans.setdefault(first // (tier.span * 1000), []).append((first, data))
        for of_span in list(spans.values())[:SPANS_AT_ONCE]:
            if len(of_span) > 1:
                self._replace(db, tier.interval, [first for first, _ in of_span], [data for _, data in of_span], tier)

    def _thin_out(self, db: sqlite3.Connection, now: float, fine: Tier, coarse: Tier) -> None:
        """Whole spans of the coarse tier whose fine samples are all old enough."""
        border = int((now - fine.kept) // coarse.span) * coarse.span * 1000
        blocks = db.execute(
            "SELECT first, data FROM blocks WHERE interval = ? AND last < ? ORDER BY first", (fine.interval, border)
        ).fetchall()
        spans: dict[int, list[tuple[int, bytes]]] = {}
        for first, data in blocks:
            spans.setdefault(first // (coarse.span * 1000), []).append((first, data))
        for of_span in list(spans.values())[:SPANS_AT_ONCE]:
            self._replace(db, fine.interval, [first for first, _ in of_span], [data for _, data in of_span], coarse)

    def _replace(self, db: sqlite3.Connection, interval: int, firsts: list[int], blocks: list[bytes], to: Tier) -> None:
        times, columns = joined(blocks)
        if len(times) and to.interval != interval:
            names = {number: name for (name, _), number in self._ids.items()}
            highest = np.array([_is_highest(names.get(number)) for number in columns], dtype=np.bool_)
            kept, thin = thinned(times / 1000, np.stack(list(columns.values()), axis=1), highest, to.interval)
            times = np.round(kept * 1000).astype(np.int64)
            columns = {number: thin[:, place] for place, number in enumerate(columns)}
        db.executemany("DELETE FROM blocks WHERE interval = ? AND first = ?", [(interval, first) for first in firsts])
        if len(times):
            _put(db, to.interval, times, columns)

    def _forget_series(self, db: sqlite3.Connection) -> None:
        """Numbers go on being used while any block may hold them; they are few, being closed or capped sets."""
        if db.execute("SELECT count(*) FROM blocks").fetchone()[0] == 0:
            db.execute("DELETE FROM series")
            self._ids.clear()

    def _cut(self, db: sqlite3.Connection) -> None:
        """Drops the oldest blocks where the file has grown to its limit."""
        if _used(db) <= self._limit:
            return
        with db:
            while _used(db) > AFTER_CUT * self._limit:
                oldest = db.execute("SELECT interval, first FROM blocks ORDER BY last LIMIT 8").fetchall()
                if not oldest:
                    break
                db.executemany("DELETE FROM blocks WHERE interval = ? AND first = ?", oldest)
        db.execute("PRAGMA incremental_vacuum")


def joined(blocks: Iterable[bytes]) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Blocks as one, in order of time; a block that is damaged is left out. Rows without a series are NaN."""
    parts = []
    for data in blocks:
        try:
            parts.append(unpack(data))
        except BlockError as error:
            log.error("a part of the history is lost: reason=%s", error)
    if not parts:
        return np.zeros(0, dtype=np.int64), {}
    parts.sort(key=lambda part: int(part[0][0]))
    times = np.concatenate([part[0] for part in parts])
    numbers = list(dict.fromkeys(number for _, columns in parts for number in columns))
    columns = {
        number: np.concatenate([part.get(number, np.full(len(at), np.nan)) for at, part in parts]) for number in numbers
    }
    return times, columns


def _numbers(db: sqlite3.Connection) -> dict[Key, int]:
    return {
        (name, tuple((key, value) for key, value in json.loads(labels))): number
        for number, name, labels in db.execute("SELECT id, name, labels FROM series")
    }


def _is_highest(name: str | None) -> bool:
    kept = KEPT_BY_NAME.get(name or "")
    return kept is not None and kept.reduction is Reduction.HIGHEST


def _put(db: sqlite3.Connection, interval: int, times: np.ndarray, columns: dict[int, np.ndarray]) -> None:
    db.execute(
        "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)",
        (interval, int(times[0]), int(times[-1]), len(times), pack(times, columns)),
    )


def _used(db: sqlite3.Connection) -> int:
    """Bytes of pages in use; pages that were given up are used again."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
