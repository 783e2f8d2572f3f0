"""Follows growing files by content, not by name: complete lines in, each exactly once, across every rotation.

A file is known by device, inode and digests of its first bytes and of those just before the position. So a rename
goes on where it was, a truncation (copytruncate) starts again at 0, the copy that copytruncate leaves is read only
past what was read before, and a reused inode is a new file. No byte of a line is kept between batches: an
unfinished line is read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from specbudget.sources.listing import Listed, list_files, open_listed
from specbudget.sources.position import HEAD_BYTES, Position, begin_alike, digest

__all__ = ["HEAD_BYTES", "Chunk", "Position", "Tail"]

CHUNK_BYTES = 2 << 20
"""Read at once: about 500 records of 4 KB, some ten milliseconds of work; 5,000 without a prompt, some hundred."""

MAX_LINE_BYTES = 16 << 20
"""A longer line is skipped and counted as oversized."""

QUIET_SECONDS = 600.0
"""A file read to its end is closed once others were written this much later."""

LINGER_SECONDS = 60.0
"""A file that left the listing is followed until so long after its last write: its writer may not know yet."""

SETTLED_SECONDS = 2.0
"""A file that was written more recently is compared at each look: its modification time may be too coarse."""

MAX_OPEN = 256
"""Files held open at most; further ones are opened to be read."""

MAX_KEPT = 2000
"""Positions kept at most; the oldest of files that are gone go first."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Complete lines of one file, `data[:end]`, and the oversized lines that were passed over.

    What stands behind `end` is the start of the next line and not to be read. `modified` is the file's
    modification time, seconds since the epoch.
    """

    data: bytes
    end: int
    oversized: int
    modified: float


@dataclass(slots=True)
class _Open:
    """A file of the present listing, or one that left it.

    `held` counts the looks at which it was found to be the copy of `source`, which is read itself.
    """

    fd: int
    position: Position
    listed: bool = True
    held: int = 0
    source: Position | None = None


@dataclass(slots=True)
class Tail:
    """Follows all files of a folder, or one file and what it is rotated to.

    `kept` is what earlier runs gave as `positions()`. Errors of the path itself (missing, unreadable) are raised
    as OSError by `refresh`, after which `chunks` still gives what is unread of files that were open; a single file
    that cannot be opened is left for the next time, and the reason of the latest such is `unreadable`.
    """

    path: Path
    kept: list[Position] = field(default_factory=list)
    max_line_bytes: int = MAX_LINE_BYTES
    chunk_bytes: int = CHUNK_BYTES
    unreadable: OSError | None = None
    _open: dict[tuple[int, int], _Open] = field(default_factory=dict)
    _listed: dict[tuple[int, int], Listed] = field(default_factory=dict)
    _compared: dict[tuple[int, int], tuple[int, float]] = field(default_factory=dict)

    def positions(self) -> list[Position]:
        """Every known file's position, for saving together with what was counted."""
        return self.kept

    def backlog_bytes(self) -> int:
        """Bytes in the listed files past what was read, as of the latest `refresh`; copies do not count."""
        offsets = {p.key: p.offset for p in self.kept}
        held = {key for key, entry in self._open.items() if entry.held}
        return sum(max(0, f.size - offsets.get(k, 0)) for k, f in self._listed.items() if k not in held)

    def refresh(self) -> None:
        """Lists the files anew and finds where to go on in each; raises OSError when the path cannot be read."""
        first = not self.kept
        self._listed = {}
        self.unreadable = None
        try:
            self._listed = list_files(self.path, known={p.key for p in self.kept})
        finally:
            for key, entry in self._open.items():
                entry.listed = key in self._listed
        passing = [p for p in self.kept if p.is_detached and p.is_short]
        known = {p.key: p for p in self.kept}
        # known files first: a truncated one must hand down its old position before its copy asks for it
        fresh: list[tuple[Listed, Position | None]] = []
        for file in self._listed.values():
            position = known.get(file.key)
            if position is None or not position.offset or not self._goes_on(file, position):
                fresh.append((file, position))
        # newest name first: of two new files that begin alike, the one with the older name is the copy
        for file, before in reversed(fresh):
            # what a single file was rotated to before our first look is history, not ours to count
            self._begin(file, before, at_end=first and file.sibling)
        self._compared = {k: v for k, v in self._compared.items() if k in self._listed}
        self._forget(passing)

    def chunks(self) -> Iterator[Chunk]:
        """Everything that is complete now, oldest file first; positions move as each chunk is taken."""
        for key in [k for k, entry in self._open.items() if not entry.listed]:
            entry = self._open[key]
            modified = os.fstat(entry.fd).st_mtime
            if not entry.held:
                yield from self._read(entry, modified)
            if modified < time.time() - LINGER_SECONDS:
                self._close(key)
        newest = max((f.modified for f in self._listed.values()), default=0.0)
        known = {p.key: p for p in self.kept}
        for key, file in list(self._listed.items()):
            opened = self._open.get(key) or self._open_again(file, known.get(key))
            if opened is None or opened.held:
                continue
            if opened.position.offset < file.size:
                yield from self._read(opened, file.modified)
            if len(self._open) > MAX_OPEN or file.modified < newest - QUIET_SECONDS:
                self._close(key)

    def close(self) -> None:
        """Closes what is open; positions stay."""
        for key in list(self._open):
            self._close(key)

    def _opened(self, file: Listed) -> int | None:
        """A descriptor of a listed file; None where there is none, and why not in `unreadable`."""
        try:
            return open_listed(file)
        except OSError as error:
            self.unreadable = error
            return None

    def _close(self, key: tuple[int, int]) -> None:
        entry = self._open.pop(key, None)
        if entry is not None:
            os.close(entry.fd)

    def _open_again(self, file: Listed, position: Position | None) -> _Open | None:
        """A known file that was closed, where it has unread bytes."""
        if position is None or position.offset >= file.size:
            return None
        fd = self._opened(file)
        if fd is None:
            return None
        entry = self._open[file.key] = _Open(fd, position)
        return entry

    def _goes_on(self, file: Listed, position: Position) -> bool:
        """True when the file goes on where it was; False when it has to be begun, its old position then detached."""
        key, entry = file.key, self._open.get(file.key)
        if self._compared.get(key) == (file.size, file.modified) and position.offset <= file.size:
            return True
        fd = entry.fd if entry is not None else self._opened(file)
        if fd is None:
            return True
        if not position.is_within(fd, file.size):
            # the fd of a truncated file stays good; that of another file under the same inode does as well
            if entry is None:
                os.close(fd)
            position.detach()
            return False
        if entry is None:
            self._open[key] = _Open(fd, position)
        if file.modified < time.time() - SETTLED_SECONDS:
            self._compared[key] = (file.size, file.modified)
        if len(self._open) > MAX_OPEN and entry is None:
            self._close(key)
        return True

    def _begin(self, file: Listed, before: Position | None, *, at_end: bool) -> None:
        entry = self._open.get(file.key)
        if entry is None:
            fd = self._opened(file)
            if fd is None:
                return
            entry = self._open[file.key] = _Open(fd, Position(device=file.device, inode=file.inode))
        if before is not None and before.key == file.key:
            entry.position = before
        else:
            entry.position = Position(device=file.device, inode=file.inode)
            self.kept.append(entry.position)
        if file.size:
            self._look_for_source(entry, file.size, before)
        else:
            entry.held = 0
        if at_end and not entry.held:
            entry.position.advance(entry.fd, file.size)
        if len(self._open) > MAX_OPEN and not entry.held:
            self._close(file.key)

    def _look_for_source(self, entry: _Open, size: int, before: Position | None) -> None:
        """Goes on where the file was read under another name; holds it while that name is read itself."""
        head = digest(entry.fd, HEAD_BYTES, 0) if size >= HEAD_BYTES else ""
        alike = [
            p for p in self.kept if p is not entry.position and p is not before and self._holds(entry, size, head, p)
        ]
        source = max(alike, key=lambda p: (p.offset <= size, p.offset), default=None)
        if source is None:
            entry.held = 0
        elif source.key in self._listed:
            # few bytes may be alike by chance: if the other is not truncated by the next look, this is no copy
            few = source.is_short or size < HEAD_BYTES
            entry.held = 0 if entry.held and few else entry.held + 1
            entry.source = source
        else:
            entry.held = 0
            entry.position.skipping = source.skipping and source.offset <= size
            entry.position.advance(entry.fd, min(source.offset, size))
            if source.is_detached:
                self.kept[:] = [p for p in self.kept if p is not source]

    def _holds(self, entry: _Open, size: int, head: str, other: Position) -> bool:
        """True when the file is, or is becoming, a copy of what was read at `other`."""
        file = self._listed.get(other.key)
        if not other.offset:
            return bool(head) and file is not None and self._is_copy_of_unread(entry, size, file)
        if other.head_bytes == HEAD_BYTES and head and head != other.head:
            return False
        if file is not None:
            source = self._open.get(other.key)
            if source is not None:
                return begin_alike(entry.fd, source.fd, min(size, other.offset))
            return bool(head) and not other.is_short and (size < other.offset or other.is_within(entry.fd, size))
        seen = entry.held > 0 and entry.source is other
        if size < other.offset:
            return seen or (other.is_detached and bool(head) and not other.is_short)
        return (seen or other.is_detached or not other.is_short) and other.is_within(entry.fd, size)

    def _is_copy_of_unread(self, entry: _Open, size: int, file: Listed) -> bool:
        """True when two files that are both new begin alike, as when we first look while one is copied."""
        source = self._open.get(file.key)
        if source is None or source.held or file.size < HEAD_BYTES:
            return False
        return begin_alike(entry.fd, source.fd, min(size, file.size))

    def _forget(self, passing: list[Position]) -> None:
        """Drops detached positions of few bytes after a second look, unread gone files, and the oldest of too many."""
        drop = {id(p) for p in passing}
        drop |= {id(p) for p in self.kept if not p.offset and p.key not in self._listed and p.key not in self._open}
        gone = [p for p in self.kept if p.key not in self._listed and p.key not in self._open and id(p) not in drop]
        drop |= {id(p) for p in gone[: max(0, len(self.kept) - len(drop) - MAX_KEPT)]}
        if drop:
            self.kept[:] = [p for p in self.kept if id(p) not in drop]

    def _read(self, entry: _Open, modified: float) -> Iterator[Chunk]:
        position, size = entry.position, self.chunk_bytes
        while True:
            try:
                if not position.is_within(entry.fd, os.fstat(entry.fd).st_size):
                    return  # overwritten since the listing: the next look sorts it out
                data = os.pread(entry.fd, size, position.offset)
            except OSError:
                return
            if not data:
                return
            end = data.rfind(b"\n") + 1
            if position.skipping:
                first = data.find(b"\n") + 1
                position.advance(entry.fd, first or len(data))
                position.skipping = not first
                yield Chunk(b"", 0, 0, modified)
            elif end:
                size = self.chunk_bytes
                position.advance(entry.fd, end)
                yield Chunk(data, end, 0, modified)
            elif len(data) < size:
                return
            elif size < self.max_line_bytes:
                size = min(size * 2, self.max_line_bytes)
            else:
                size = self.chunk_bytes
                position.advance(entry.fd, len(data))
                position.skipping = True
                yield Chunk(b"", 0, 1, modified)
