"""Opening files of a checkpoint with bounds: size limits, no devices, no pipes, git-lfs pointers recognised."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specbudget.sources.checkpoint.model import CheckpointError, CheckpointProblem, ProblemKind

_LFS_START = b"version https://git-lfs"
_LFS_LARGEST = 1024


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
                raise failure(self.path, ProblemKind.UNREADABLE, _reason(error)) from error
            if not chunk:
                break
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)

    def at(self, offset: int, count: int) -> bytes:
        """`count` bytes from `offset`, leaving the reading position alone."""
        try:
            return os.pread(self.descriptor, count, offset)
        except OSError as error:
            raise failure(self.path, ProblemKind.UNREADABLE, _reason(error)) from error


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
        raise failure(path, ProblemKind.MISSING, "the file is missing; download the checkpoint again") from error
    except (OSError, ValueError) as error:
        raise failure(path, ProblemKind.UNREADABLE, _reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            what = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise failure(path, ProblemKind.UNREADABLE, f"this is {what}, a file was expected")
        file = OpenFile(path, descriptor, status.st_size)
        if status.st_size <= _LFS_LARGEST and file.at(0, len(_LFS_START)) == _LFS_START:
            raise failure(
                path,
                ProblemKind.LFS_POINTER,
                "this is a git-lfs pointer, not the file itself; run `git lfs pull` in the checkpoint",
            )
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
        return file.read(limit)


def _reason(error: Exception) -> str:
    text = (getattr(error, "strerror", None) or str(error)).lower()
    return f"cannot be read: {text}; check the path and its permissions"
