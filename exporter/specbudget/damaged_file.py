"""What is done with a file of ours that cannot be read: it is kept aside for people, and a new one is begun."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


def move_aside(path: Path) -> str:
    """Renames an SQLite file with its journals; returns the new name. A file that is not there is no error."""
    aside = f"{path}.unreadable-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(f"{path}{suffix}", f"{aside}{suffix}")
    return aside
