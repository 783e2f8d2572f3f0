"""The history's file: its tables, its layout's number, and how it is opened for writing and for reading."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specbudget.errors import StateError

FILE_NAME = "history.sqlite"
SCHEMA = 1
JOURNAL_PAGES = 128
"""Pages after which the journal is folded into the file: half a megabyte, and so much it grows at most."""
_TABLES = """
CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, name TEXT NOT NULL, labels TEXT NOT NULL,
                                   UNIQUE (name, labels));
CREATE TABLE IF NOT EXISTS blocks (interval INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
                                   rows INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (interval, first));
CREATE INDEX IF NOT EXISTS blocks_by_time ON blocks (last);
"""
"""`interval` is in seconds, `first` and `last` are the times of a block's outer samples in milliseconds."""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """The file, made where there is none. Raises sqlite3.Error, and StateError for a newer layout."""
    db = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
    try:
        # before any table: pages that were given up can be given back to the disk
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {JOURNAL_PAGES}")
        check_layout(db, path)
        db.executescript(_TABLES)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
    except BaseException:
        db.close()
        raise
    return db


def check_layout(db: sqlite3.Connection, path: Path) -> None:
    """Raises StateError when the file was written by a newer specbudget."""
    found = db.execute("PRAGMA user_version").fetchone()[0]
    if found > SCHEMA:
        raise StateError(f"{path}: written by a newer specbudget (layout {found}, this one knows {SCHEMA}): upgrade")


@contextmanager
def opened_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as it is at this moment, also while a sidecar writes on. Nothing of it is changed.

    A folder that cannot be written to holds no shared memory for readers; then the file is read from a copy. Raises
    sqlite3.Error and OSError.
    """
    with contextlib.ExitStack() as stack:
        try:
            db = stack.enter_context(contextlib.closing(_read_only(path)))
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specbudget-")))
            for suffix in ("", "-wal"):
                if Path(f"{path}{suffix}").exists():
                    shutil.copyfile(f"{path}{suffix}", folder / f"{FILE_NAME}{suffix}")
            db = stack.enter_context(contextlib.closing(sqlite3.connect(folder / FILE_NAME, timeout=5.0)))
        db.execute("BEGIN")
        yield db


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", timeout=5.0, uri=True)
