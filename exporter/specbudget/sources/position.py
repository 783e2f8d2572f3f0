"""How far a file was read, and how to know that content again under another name, inode or device."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

HEAD_BYTES = 1024
"""So much of a file's start, at most, tells it from another; so much before the offset confirms it."""


@dataclass(slots=True, kw_only=True)
class Position:
    """How far one file was read.

    `head` is the digest of its first `head_bytes` bytes, `before` of the last HEAD_BYTES before `offset` ("" while
    the head covers them). `skipping` means that the line at `offset` is being skipped as oversized. A position
    without device and inode is detached: its file was overwritten, a copy of what it was may turn up.
    """

    device: int
    inode: int
    offset: int = 0
    head_bytes: int = 0
    head: str = ""
    skipping: bool = False
    before: str = ""

    @property
    def key(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode

    @property
    def is_detached(self) -> bool:
        """True when no file is at this position any more."""
        return not self.inode

    @property
    def is_short(self) -> bool:
        """True when so little was read that another file may begin alike by chance."""
        return self.head_bytes < HEAD_BYTES

    def detach(self) -> None:
        """Its file holds other content now."""
        self.device = self.inode = 0

    def is_within(self, fd: int, size: int) -> bool:
        """True when the open file of `size` bytes still holds what was read."""
        if size < self.offset or digest(fd, self.head_bytes, 0) != self.head:
            return False
        return not self.before or digest(fd, HEAD_BYTES, self.offset - HEAD_BYTES) == self.before

    def advance(self, fd: int, count: int) -> None:
        """Moves on by `count` bytes of the open file."""
        self.offset += count
        if self.head_bytes < HEAD_BYTES:
            self.head_bytes = min(HEAD_BYTES, self.offset)
            self.head = digest(fd, self.head_bytes, 0)
        if self.offset > HEAD_BYTES:
            self.before = digest(fd, HEAD_BYTES, self.offset - HEAD_BYTES)


def digest(fd: int, count: int, at: int) -> str:
    """Digest of `count` bytes from `at`; "" of none."""
    return hashlib.blake2b(os.pread(fd, count, at), digest_size=16).hexdigest() if count else ""


def begin_alike(one: int, other: int, size: int) -> bool:
    """True when two open files agree at the start and just before `size`."""
    count = min(size, HEAD_BYTES)
    return all(os.pread(one, count, at) == os.pread(other, count, at) for at in (0, size - count))
