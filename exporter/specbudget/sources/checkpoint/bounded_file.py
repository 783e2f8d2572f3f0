"""Opening files of a checkpoint with bounds: size limits, no devices, no pipes, git-lfs pointers recognised."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specbudget.sources.checkpoint.model import CheckpointError, CheckpointProblem, ProblemKind

_LFS_START = b"version https://git-lfs"
_LFS_LARGEST = 1024
_LFS_SIZE = re.compile(rb"^size (\d{1,18})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file, open for reading at its start."""

    path: Path
    descriptor: int
    size: int

    def read(self, count: int) -> bytes:
        """The next `count` bytes; fewer only where the file ends. Raises CheckpointError."""
        chunks = []
        while count > 0:
            try:
                chunk = os.read(self.descriptor, count)
            except OSError as error:
                raise failure(self.path, ProblemKind.UNREADABLE, reason(error)) from error
            if not chunk:
                break
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)

    def whole_at(self, offset: int, count: int) -> bytes:
        """`count` bytes from `offset`; fewer only where the file ends. Raises CheckpointError."""
        chunks = []
        while count > 0:
            chunk = self.at(offset, count)
            if not chunk:
                break
            chunks.append(chunk)
            offset += len(chunk)
            count -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def at(self, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset`, leaving the reading position alone. Raises CheckpointError."""
        try:
            return os.pread(self.descriptor, count, offset)
        except OSError as error:
            raise failure(self.path, ProblemKind.UNREADABLE, reason(error)) from error


def failure(path: Path, kind: ProblemKind, message: str, *, key: str | None = None) -> CheckpointError:
    """The error that ends the reading of one file."""
    return CheckpointError(CheckpointProblem(file=path, key=key, message=message, kind=kind))


@contextmanager
def open_regular(path: Path) -> Iterator[OpenFile]:
    """Open a regular file that is not a git-lfs pointer. Raises CheckpointError with the reason.

    Opening never blocks: a pipe in the place of a file is refused, not waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise failure(path, ProblemKind.MISSING, _missing(path)) from error
    except (OSError, ValueError) as error:
        raise failure(path, ProblemKind.UNREADABLE, reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise failure(path, ProblemKind.UNREADABLE, f"this is {what}, a file was expected")
        file = OpenFile(path, descriptor, status.st_size)
        if status.st_size <= _LFS_LARGEST and file.at(0, len(_LFS_START)) == _LFS_START:
            raise failure(path, ProblemKind.LFS_POINTER, _pointer(file))
        yield file
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit: int) -> bytes:
    """A whole file of at most `limit` bytes. Raises CheckpointError."""
    with open_regular(path) as file:
        if file.size > limit:
            raise failure(
                path, ProblemKind.TOO_LARGE, f"{file.size} bytes, while at most {limit} are read; check the file"
            )
        return file.whole_at(0, file.size)


def printable(text: str, most: int = 200) -> str:
    """Text for people: cut to a bearable length, with nothing in it that a terminal would obey."""
    return "".join(char if char.isprintable() else "?" for char in text[:most])


def reason(error: Exception) -> str:
    """What an operating system error means for the path that it was met on."""
    text = (getattr(error, "strerror", None) or str(error)).lower()
    return f"cannot be read: {text}; check the path and its permissions"


def _missing(path: Path) -> str:
    """A link that points to nothing is there, yet its file is not: caches keep one apart from the other."""
    try:
        goal = os.readlink(path)
    except (OSError, ValueError):
        return "the file is missing; download the checkpoint again"
    return f"the file that this link points to is missing: {printable(goal)}; download the checkpoint again"


def _pointer(file: OpenFile) -> str:
    size = _LFS_SIZE.search(file.at(0, _LFS_LARGEST))
    held = f" of {int(size[1])} bytes" if size is not None else ""
    return f"this is a git-lfs pointer to the file{held}, not the file itself; run `git lfs pull` in the checkpoint"
