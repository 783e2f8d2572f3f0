"""What the sidecar keeps across a restart: one SQLite file, positions and counters in one transaction.

The journal is a write-ahead log without a sync per commit: a killed process loses nothing that was committed;
a machine that loses power may lose the last seconds, positions and counters alike, and so counts them again.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from specbudget.damaged_file import move_aside
from specbudget.errors import StateError

FILE_NAME = "specbudget.sqlite"
SCHEMA = 1

log = logging.getLogger(__name__)


class Store:
    """The state folder. Opening takes its lock; a second sidecar on the same folder is refused.

    A state that is damaged is moved aside. Where there is no space to begin one, each `write` tries again. Raises
    StateError when the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / FILE_NAME
        self._lock = _lock(folder)
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._last: dict[str, Any] = {}
        try:
            self._kept = self._load()
        except BaseException:
            self.close()
            raise

    def read(self) -> dict[str, Any]:
        """Everything that was kept when the store was opened, by name; given once."""
        kept, self._kept = self._kept, {}
        return kept

    def write(self, values: Mapping[str, Any]) -> None:
        """Replaces the named values, all or none; raises sqlite3.Error (a full disk, say) and then changes nothing."""
        rows = [(name, msgspec.json.encode(value)) for name, value in values.items()]
        if self._db is not None and not self._is_there():
            # SQLite would write on into a file that nobody can open again
            self._disconnect()
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._db = _connect(self._path)
            self._inode = _inode(self._path)
            rows = [(name, msgspec.json.encode(value)) for name, value in (self._last | dict(values)).items()]
        self._last |= values
        with self._db:
            self._db.executemany(
                "INSERT INTO kept VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", rows
            )

    def _is_there(self) -> bool:
        """False when the file was deleted or replaced under us."""
        if self._inode is None:
            self._inode = _inode(self._path)
        return self._inode is not None and self._inode == _inode(self._path)

    def close(self) -> None:
        """Folds the log into the file and gives the lock back."""
        if self._db is not None:
            self._db.close()
        os.close(self._lock)

    def _load(self) -> dict[str, Any]:
        try:
            self._db = _connect(self._path)
            return _everything(self._db)
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            self._disconnect()
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                # no word against the content: no space, no right, no device
                return self._load_without_writing(error)
            self._move_aside("damaged" if isinstance(error, msgspec.DecodeError) else str(error))
            self._db = _connect(self._path)
            return {}

    def _load_without_writing(self, reason: sqlite3.OperationalError) -> dict[str, Any]:
        """Reads a state beside which nothing can be created (a full disk); there is nothing to lose without one."""
        log.error("state cannot be written: file=%s reason=%s", self._path, reason)
        try:
            if not self._path.exists() or not self._path.stat().st_size:
                return {}
            # alone with it, SQLite needs no shared-memory file beside the log
            with contextlib.closing(sqlite3.connect(self._path, timeout=1.0)) as db:
                db.execute("PRAGMA locking_mode = EXCLUSIVE")
                return _everything(db)
        except (OSError, sqlite3.Error, msgspec.DecodeError) as error:
            raise StateError(f"{self._path}: cannot be read: {error}: free space or fix its rights") from error

    def _move_aside(self, reason: str) -> None:
        aside = move_aside(self._path)
        log.error("state is not readable, starting anew: file=%s moved_to=%s reason=%s", self._path, aside, reason)

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=1.0)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found > SCHEMA:
            raise StateError(
                f"{path}: written by a newer specbudget (layout {found}, this one knows {SCHEMA}): upgrade"
            )
        if found < SCHEMA:
            with db:
                db.execute("CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
                db.execute(f"PRAGMA user_version = {SCHEMA}")
    except BaseException:
        db.close()
        raise
    return db


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _everything(db: sqlite3.Connection) -> dict[str, Any]:
    return {name: msgspec.json.decode(value) for name, value in db.execute("SELECT name, value FROM kept")}


def _lock(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise StateError(f"{folder}: --state is a file: give a folder") from error
    except OSError as error:
        raise StateError(f"{folder}: --state cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise StateError(
            f"{folder}: in use by another specbudget (process {holder}): give each its own --state"
        ) from None
    # only for the message above: a full disk is no reason not to start
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
