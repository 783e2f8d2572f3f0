"""Every line exactly once, whatever happens to the files: a model-based test, and each rotation by name."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from specbudget.sources import tail as tail_module
from specbudget.sources.tail import HEAD_BYTES, Position, Tail

LONG = b"x" * 300
FULL = [b"%04d " % i + LONG for i in range(8)]
"""Eight lines, together longer than the head by which a content is known."""


@dataclass
class Reader:
    """A tail with what it gave: lines in order, and how many were passed over as oversized."""

    path: Path
    max_line_bytes: int = 4096
    chunk_bytes: int = 512
    lines: list[bytes] = field(default_factory=list)
    oversized: int = 0
    tail: Tail = field(init=False)

    def __post_init__(self) -> None:
        self.tail = self._tail([])

    def _tail(self, kept: list[Position]) -> Tail:
        return Tail(self.path, kept, max_line_bytes=self.max_line_bytes, chunk_bytes=self.chunk_bytes)

    def look(self, chunks: int | None = None) -> list[bytes]:
        """One look, of at most so many chunks; the lines that it gave."""
        self.tail.refresh()
        return self.drain(chunks)

    def drain(self, chunks: int | None = None) -> list[bytes]:
        """What the listing left to read."""
        given: list[bytes] = []
        for number, chunk in enumerate(self.tail.chunks(), start=1):
            self.oversized += chunk.oversized
            if chunk.end:
                assert chunk.data[chunk.end - 1 : chunk.end] == b"\n"
                given += chunk.data[: chunk.end - 1].split(b"\n")
            if number == chunks:
                break
        self.lines += given
        return given

    def restart(self) -> None:
        """A new process with the saved positions."""
        saved = msgspec.json.encode(self.tail.positions())
        self.tail.close()
        self.tail = self._tail(msgspec.json.decode(saved, type=list[Position]))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A single log file's path; nothing is there yet."""
    return tmp_path / "server.log"


@pytest.fixture
def follow() -> Iterator[type[Reader]]:
    """Makes readers and closes their files."""
    made: list[Reader] = []

    class Closing(Reader):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append(self)

    yield Closing
    for reader in made:
        reader.tail.close()


def append(path: Path, *lines: bytes) -> None:
    """Appends complete lines."""
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


# --- the model ---------------------------------------------------------------------------------------------------


@dataclass
class Written:
    """A file as its writer knows it: the lines in it, and whether the reader has it open."""

    path: Path
    ids: list[int] = field(default_factory=list)
    partial: bytes = b""
    opened: bool = False


class Rotations(RuleBasedStateMachine):
    """Writes, rotates, truncates, deletes and restarts at random; the model knows which lines can still be had."""

    whole_folder = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="tail-"))
        self.number = 0
        self.hour = 0
        self.sizes: dict[int, int] = {}
        self.expected: set[int] = set()
        self.copy: Written | None = None
        self.looks_since_copy = 0
        self.old: list[Written] = []

    @initialize()
    def begin(self) -> None:
        """The log exists and was looked at once."""
        self.live = Written(self._name())
        self.live.path.touch()
        self.reader = Reader(self.folder if self.whole_folder else self.live.path, max_line_bytes=1500, chunk_bytes=256)
        self.look()

    def _name(self) -> Path:
        return self.folder / (f"requests-{self.hour:03d}.log" if self.whole_folder else "server.log")

    def _line(self, size: int) -> tuple[int, bytes]:
        self.number += 1
        self.sizes[self.number] = size
        return self.number, b"%06d" % self.number + b"." * (size - 6)

    def _finish(self, file: Written) -> None:
        if file.partial:
            with file.path.open("ab") as out:
                out.write(file.partial + b"\n")
            file.partial = b""

    def _seen(self) -> set[int]:
        return {int(line[:6]) for line in self.reader.lines}

    def _lose(self, ids: list[int]) -> None:
        self.expected -= set(ids) - self._seen()

    @rule(sizes=st.lists(st.integers(6, 700), min_size=1, max_size=6), old=st.integers(0, 3))
    def write(self, sizes: list[int], old: int) -> None:
        """Lines go to the live file, or to an older one whose writer does not know better."""
        file = self.live if old or not self.old or self.copy else self.old[-1]
        self._finish(file)
        for size in sizes:
            number, line = self._line(size)
            append(file.path, line)
            file.ids.append(number)
            self.expected.add(number)

    @rule(size=st.integers(12, 700), cut=st.floats(0.1, 0.9))
    @precondition(lambda self: self.copy is None)
    def write_a_part(self, size: int, cut: float) -> None:
        """The writer stops in the middle of a line."""
        self._finish(self.live)
        number, line = self._line(size)
        place = int(size * cut)
        with self.live.path.open("ab") as out:
            out.write(line[:place])
        self.live.partial = line[place:]
        self.live.ids.append(number)
        self.expected.add(number)

    @rule(size=st.integers(1500, 6000))
    def write_too_long(self, size: int) -> None:
        """A line over the limit is no line; it is counted in another place."""
        self._finish(self.live)
        append(self.live.path, b"!" * size)

    @rule(finish=st.booleans())
    @precondition(lambda self: self.copy is None)
    def rotate_by_name(self, finish: bool) -> None:
        """Rename rotation with a shift of the numbers, or the next hour's file."""
        if finish:
            self._finish(self.live)
        self._lose_partial(self.live)
        if self.whole_folder:
            self.hour += 1
        else:
            self._shift()
            self.live.path = self.live.path.rename(self.folder / "server.log.1")
        self.old.append(self.live)
        self.live = Written(self._name())
        self.live.path.touch()

    def _lose_partial(self, file: Written) -> None:
        if file.partial:
            self.expected.discard(file.ids.pop())
            with file.path.open("ab") as out:
                out.write(b"\n")  # cut short by its writer: a line that is none
            file.partial = b""

    def _shift(self) -> None:
        for file in self.old:
            stem, _, number = file.path.name.rpartition(".")
            file.path = file.path.rename(self.folder / f"{stem}.{int(number) + 1}.tmp")
        for file in self.old:
            file.path = file.path.rename(file.path.with_suffix(""))

    @rule()
    @precondition(lambda self: self.copy is None)
    def copy_before_truncating(self) -> None:
        """First half of copytruncate; the reader may look before the second."""
        self._finish(self.live)
        if self.whole_folder:
            path = self.live.path.with_name(f"{self.live.path.name}-{self.number}")
        else:
            self._shift()
            path = self.folder / "server.log.1"
        shutil.copyfile(self.live.path, path)
        self.copy, self.looks_since_copy = Written(path, list(self.live.ids)), 0

    @rule(keep=st.booleans())
    @precondition(lambda self: self.copy is not None)
    def truncate(self, keep: bool) -> None:
        """Second half of copytruncate; the copy stays, or is moved away at once."""
        assert self.copy is not None
        self._finish(self.live)
        self._lose([number for number in self.live.ids if number not in self.copy.ids])
        os.truncate(self.live.path, 0)
        if keep:
            self.old.append(self.copy)
        else:
            self._lose(self.copy.ids)
            self.copy.path.unlink()
        self.live.ids, self.copy = [], None

    @rule()
    @precondition(lambda self: self.old and self.copy is None)
    def delete_the_oldest(self) -> None:
        """Retention: what the reader has open is still read, the rest is gone."""
        file = self.old.pop(0)
        if not file.opened:
            self._lose(file.ids)
        file.path.unlink()

    @rule(chunks=st.one_of(st.none(), st.integers(1, 4)))
    def look(self, chunks: int | None = None) -> None:
        """The reader looks, perhaps only at a few chunks."""
        if self.copy is not None and self.looks_since_copy:
            self.truncate(keep=True)
        self.reader.look(chunks)
        self.looks_since_copy += 1
        for file in [self.live, *self.old]:
            file.opened = True

    @rule()
    def restart(self) -> None:
        """A new process takes up the positions."""
        self.reader.restart()
        for file in [self.live, *self.old]:
            file.opened = False

    @invariant()
    def nothing_twice(self) -> None:
        """No line was ever given twice."""
        if hasattr(self, "reader"):
            numbers = Counter(line[:6] for line in self.reader.lines if len(line) == self.sizes.get(int(line[:6]), 0))
            assert not [number for number, count in numbers.items() if count > 1]

    def teardown(self) -> None:
        """In the end every line that could be had was given whole, and nothing else."""
        if hasattr(self, "reader"):
            if self.copy is not None:
                self.truncate(keep=True)
            self._finish(self.live)
            for _ in range(3):
                self.look()
            whole = {int(line[:6]) for line in self.reader.lines if len(line) == self.sizes[int(line[:6])]}
            assert self.expected <= whole
            assert self.reader.tail.backlog_bytes() == 0
            self.reader.tail.close()
        shutil.rmtree(self.folder)


class FolderRotations(Rotations):
    """The same in a folder that is followed as a whole."""

    whole_folder = True


EXAMPLES = settings(
    max_examples=int(os.environ.get("TAIL_EXAMPLES", "60")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSingleFile = Rotations.TestCase
TestSingleFile.settings = EXAMPLES
TestFolder = FolderRotations.TestCase
TestFolder.settings = EXAMPLES
