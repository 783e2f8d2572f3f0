"""Lists the files that a log is written to and rotated to."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".lz4", ".zip")


@dataclass(frozen=True, slots=True)
class Listed:
    """A regular file as the listing found it; `sibling`: not the one file asked for, but named after it."""

    path: str
    size: int
    modified: float
    device: int
    inode: int
    sibling: bool

    @property
    def key(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode


def list_files(path: Path, *, known: Collection[tuple[int, int]]) -> dict[tuple[int, int], Listed]:
    """All files of a folder, or one file and its siblings, by device and inode, oldest name first.

    Hidden and compressed files are left out. Where the path is missing, only `known` siblings are listed (between
    a rename and the next file of that name); raises FileNotFoundError when there is none, OSError as it comes.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "neither a file nor a folder")
        folder = path if stat.S_ISDIR(mode) else path.parent
        missing = None
    except FileNotFoundError as error:
        folder, missing = path.parent, error
    prefix = "" if folder is path else path.name
    found: dict[tuple[int, int], Listed] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if not _is_log(entry.name, prefix):
                continue
            try:
                status = entry.stat()
            except OSError:
                continue
            key = (status.st_dev, status.st_ino)
            if not stat.S_ISREG(status.st_mode) or (missing is not None and key not in known):
                continue
            file = Listed(entry.path, status.st_size, status.st_mtime, *key, bool(prefix) and entry.name != prefix)
            # of several names of one file the one that was asked for stands
            if key not in found or found[key].sibling:
                found[key] = file
    if missing is not None and not found:
        raise missing
    files = sorted(found.values(), key=lambda f: _age_order(os.path.basename(f.path)))
    return {f.key: f for f in files}


def open_listed(file: Listed) -> int | None:
    """Opens a listed file for reading; None when its name is gone or means another file by now.

    Raises OSError when it cannot be read.
    """
    try:
        fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) == file.key:
        return fd
    os.close(fd)
    return None


def _is_log(name: str, prefix: str) -> bool:
    if name.startswith(".") or name.endswith(COMPRESSED) or not name.startswith(prefix):
        return False
    # server.log is rotated to server.log.1 or server.log-20260310, never to server.logs
    return not prefix or name == prefix or not name[len(prefix)].isalnum()


def _age_order(name: str) -> tuple[str, int, str]:
    """Oldest first: by name, and of one name the higher rotation number first (x.log.2, x.log.1, x.log)."""
    match = re.fullmatch(r"(.*?)\.(\d{1,9})", name)
    return (match[1], -int(match[2]), name) if match else (name, 0, name)
