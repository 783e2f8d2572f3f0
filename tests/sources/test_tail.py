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
from hypothesis import HealthCheck, Phase, settings
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
        self.copies = 0
        self.short_copy_held = False
        self.sizes: dict[int, int] = {}
        self.expected: set[int] = set()
        self.copy: Written | None = None
        self.looks_since_copy = 0
        self.old: list[Written] = []
        self.deleted: list[int] = []

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
        return {int(line[:6]) for line in self.reader.lines if line[:6].isdigit()}

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
        place = max(7, int(size * cut))
        with self.live.path.open("ab") as out:
            out.write(line[:place])
        self.live.partial = line[place:]
        self.live.ids.append(number)
        self.expected.add(number)

    @rule(size=st.integers(1500, 6000))
    def write_too_long(self, size: int) -> None:
        """A line over the limit is no line; it is counted in another place."""
        self._finish(self.live)
        self.copies += 1
        append(self.live.path, b"!%06d" % self.copies + b"!" * size)

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
            self.copies += 1
            path = self.live.path.with_name(f"{self.live.path.name}-{self.copies}")
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
        self.short_copy_held = bool(self.looks_since_copy) and self.copy.path.stat().st_size < HEAD_BYTES
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
        if file.opened:
            self.deleted += file.ids
        else:
            self._lose(file.ids)
        file.path.unlink()

    @rule(chunks=st.one_of(st.none(), st.integers(1, 4)))
    def look(self, chunks: int | None = None) -> None:
        """The reader looks, perhaps only at a few chunks."""
        # a copy is told from a file by what was read of its source, a short one for one look
        if self.copy is not None and (self.looks_since_copy or not self._seen() & set(self.live.ids)):
            self.truncate(keep=True)
        self.reader.look(chunks)
        self.looks_since_copy += 1
        self.short_copy_held = False
        for file in [self.live, *self.old]:
            file.opened = True

    @rule()
    def restart(self) -> None:
        """A new process takes up the positions; what was deleted unread is gone with the old one."""
        if self.copy is not None and self.looks_since_copy and self.copy.path.stat().st_size < HEAD_BYTES:
            self.truncate(keep=True)
        if self.short_copy_held:
            self.look()  # that a short file was held as a copy is not remembered
        self._lose(self.deleted)
        self.deleted = []
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
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
TestSingleFile = Rotations.TestCase
TestSingleFile.settings = EXAMPLES
TestFolder = FolderRotations.TestCase
TestFolder.settings = EXAMPLES


# --- each by name ------------------------------------------------------------------------------------------------


def test_a_log_that_is_truncated_then_renamed_counts_each_line_once(log: Path, follow: type[Reader]) -> None:
    """Two lines; truncated in place and one written; renamed and one written: 2, 3, 4 lines, never 5."""
    reader = follow(log)
    line = b"[2026-03-04 10:00:%02d] Decode batch, #running-req: 1, accept len: 2.00"
    append(log, line % 0, line % 10)
    assert len(reader.look()) == 2
    os.truncate(log, 0)
    append(log, line % 20)
    assert reader.look() == [line % 20]
    log.rename(f"{log}.1")
    log.touch()
    append(log, line % 30)
    assert reader.look() == [line % 30]
    assert len(reader.lines) == 4


@pytest.mark.parametrize("restarted", [False, True], ids=["in one process", "across a restart"])
@pytest.mark.parametrize("lines", [FULL, [b"one", b"two", b"three"]], ids=["a long log", "a log below 1 KiB"])
def test_the_copy_of_copytruncate_is_read_past_what_was_read(
    log: Path, follow: type[Reader], lines: list[bytes], restarted: bool
) -> None:
    """Lines that were unread at the truncation are read from the copy, the others not again."""
    reader = follow(log)
    append(log, *lines[:-1])
    reader.look()
    append(log, lines[-1])
    shutil.copyfile(log, f"{log}.1")
    os.truncate(log, 0)
    append(log, b"new")
    if restarted:
        reader.restart()
    assert sorted(reader.look()) == sorted([lines[-1], b"new"])
    assert reader.look() == []


def test_a_line_written_between_copy_and_truncation_does_not_bring_the_copy_back(
    log: Path, follow: type[Reader]
) -> None:
    """The reader was further than the copy is long: nothing of the copy is read again."""
    reader = follow(log)
    append(log, *FULL)
    reader.look()
    shutil.copyfile(log, f"{log}.1")
    append(log, b"late")
    assert reader.look() == [b"late"]
    os.truncate(log, 0)
    assert reader.look() == []
    assert len(reader.lines) == len(FULL) + 1


def test_a_copy_is_not_read_beside_the_file_that_is(log: Path, follow: type[Reader]) -> None:
    """Between copy and truncation the unread lines stand in both; they are read once."""
    reader = follow(log)
    append(log, *FULL[:5])
    reader.look()
    append(log, *FULL[5:])
    shutil.copyfile(log, f"{log}.1")
    assert reader.look() == FULL[5:]
    assert reader.tail.backlog_bytes() == 0
    assert reader.look() == []
    os.truncate(log, 0)
    append(log, b"new")
    assert reader.look() == [b"new"]


def test_a_short_copy_stays_a_copy_when_its_source_grows_before_it_is_truncated(
    log: Path, follow: type[Reader]
) -> None:
    """It was found to be one while both were there."""
    reader = follow(log)
    append(log, b"one", b"two")
    reader.look()
    shutil.copyfile(log, f"{log}.1")
    append(log, *FULL)
    assert reader.look() == FULL
    os.truncate(log, 0)
    assert reader.look() == []


def test_a_first_look_while_the_log_is_copied_counts_each_line_once(log: Path, follow: type[Reader]) -> None:
    """Original and copy are both new; the copy is not read, neither while it grows nor when it is all that is left."""
    append(log, *FULL)
    content = log.read_bytes()
    copy = log.with_name(f"{log.name}.1")
    copy.write_bytes(content[: len(content) // 2])
    reader = follow(log)
    assert reader.look() == FULL
    copy.write_bytes(content)
    assert reader.look() == []
    os.truncate(log, 0)
    assert reader.look() == []
    append(log, b"new")
    assert reader.look() == [b"new"]


def test_two_logs_with_the_same_long_beginning_are_two(log: Path, follow: type[Reader]) -> None:
    """A banner of more than 1 KiB, the same at each start of the engine, does not make the new log a copy."""
    banner = [b"=" * 80] * 20
    reader = follow(log)
    append(log, *banner, *FULL)
    reader.look()
    log.rename(f"{log}.1")
    append(log, *banner)
    reader.look()
    append(log, b"second start", *FULL[:1])
    reader.look()
    assert reader.lines == [*banner, *FULL, *banner, b"second start", FULL[0]]


def test_a_rename_goes_on_where_it_was(log: Path, follow: type[Reader]) -> None:
    """Unread lines of the old name come first, then those of the new file."""
    reader = follow(log)
    append(log, b"1")
    reader.look()
    append(log, b"2")
    log.rename(f"{log}.1")
    append(log, b"3")
    assert reader.look() == [b"2", b"3"]


def test_between_the_rename_and_the_next_file_nothing_is_missing(log: Path, follow: type[Reader]) -> None:
    """The renamed file is read although the log's name is not there."""
    reader = follow(log)
    append(log, b"1")
    reader.look()
    append(log, b"2")
    log.rename(f"{log}.1")
    assert reader.look() == [b"2"]


def test_a_deleted_file_is_read_to_its_end_and_followed_while_it_is_written(log: Path, follow: type[Reader]) -> None:
    """A writer that holds a deleted file goes on writing to it; the lines count and the missing name is told."""
    reader = follow(log)
    with log.open("ab", buffering=0) as writer:
        writer.write(b"1\n")
        reader.look()
        writer.write(b"2\n")
        log.unlink()
        for line in (b"3\n", b"4\n"):
            writer.write(line)
            with pytest.raises(FileNotFoundError):
                reader.tail.refresh()
            reader.drain()
    assert reader.lines == [b"1", b"2", b"3", b"4"]


def test_a_file_that_left_is_closed_when_it_is_quiet(
    tmp_path: Path, follow: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space of a deleted file is given back."""
    monkeypatch.setattr(tail_module, "LINGER_SECONDS", -1.0)
    reader = follow(tmp_path)
    append(tmp_path / "a", b"1")
    reader.look()
    (tmp_path / "a").unlink()
    reader.look()
    held = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    assert not [name for name in held if name.startswith(str(tmp_path))]


def test_a_reused_inode_is_a_new_file(tmp_path: Path, follow: type[Reader]) -> None:
    """Another content under a known device and inode is read from its start."""
    reader = follow(tmp_path)
    append(tmp_path / "a.log", *FULL)
    reader.look()
    other = [line[::-1] for line in FULL] * 2
    position = reader.tail.positions()[0]
    (tmp_path / "a.log").unlink()
    append(tmp_path / "b.log", *other)
    status = os.stat(tmp_path / "b.log")
    position.device, position.inode = status.st_dev, status.st_ino
    reader.restart()
    assert reader.look() == other


@pytest.mark.parametrize("restarted", [False, True], ids=["in one process", "across a restart"])
@pytest.mark.parametrize("rewritten", ["as long", "longer"])
def test_a_rewrite_in_place_is_seen_by_its_content(
    log: Path, follow: type[Reader], rewritten: str, restarted: bool
) -> None:
    """The size alone would not tell: the digests of what was read do."""
    reader = follow(log)
    append(log, *FULL)
    reader.look()
    new = [line.replace(b"x", b"y") for line in FULL] + ([b"z"] if rewritten == "longer" else [])
    log.write_bytes(b"".join(line + b"\n" for line in new))
    if restarted:
        reader.restart()
    assert reader.look() == new


def test_a_rewrite_with_the_same_beginning_is_seen_by_what_stood_before_the_position(
    log: Path, follow: type[Reader]
) -> None:
    """The first KiB is the same, the rest is not."""
    reader = follow(log)
    append(log, *FULL)
    reader.look()
    new = [*FULL[:5], *(line.replace(b"x", b"y") for line in FULL[5:])]
    log.write_bytes(b"".join(line + b"\n" for line in new))
    assert reader.look() == new


def test_an_old_hour_that_still_grows_is_read(
    tmp_path: Path, follow: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names decide the order only; a quiet file is closed and opened again when it grows."""
    monkeypatch.setattr(tail_module, "QUIET_SECONDS", -1.0)
    reader = follow(tmp_path)
    append(tmp_path / "requests_09.log", b"1")
    append(tmp_path / "requests_10.log", b"2")
    assert reader.look() == [b"1", b"2"]
    append(tmp_path / "requests_09.log", b"3")
    append(tmp_path / "requests_10.log", b"4")
    assert reader.look() == [b"3", b"4"]


def test_names_give_the_order_of_a_first_look(tmp_path: Path, follow: type[Reader]) -> None:
    """Of one name the higher number is older: 10 before 2 before 1 before none."""
    for suffix, line in (("", b"4"), (".1", b"3"), (".2", b"2"), (".10", b"1")):
        append(tmp_path / f"a.log{suffix}", line)
    append(tmp_path / "b.log", b"5")
    assert follow(tmp_path).look() == [b"1", b"2", b"3", b"4", b"5"]


def test_more_files_than_may_be_open_are_all_read(
    tmp_path: Path, follow: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of many hours does not take up the process's descriptors."""
    monkeypatch.setattr(tail_module, "MAX_OPEN", 8)
    for number in range(100):
        append(tmp_path / f"{number:03d}.log", b"%03d" % number)
    reader = follow(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    reader.tail.refresh()
    assert len(os.listdir("/proc/self/fd")) - before <= 9
    assert reader.drain() == [b"%03d" % number for number in range(100)]
    assert len(os.listdir("/proc/self/fd")) - before <= 9
    for number in range(100):
        append(tmp_path / f"{number:03d}.log", b"more")
    assert len(reader.look()) == 100
    assert len(os.listdir("/proc/self/fd")) - before <= 9


def test_positions_of_files_that_are_gone_are_bounded(
    tmp_path: Path, follow: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are forgotten; those of present files stay."""
    monkeypatch.setattr(tail_module, "MAX_KEPT", 10)
    monkeypatch.setattr(tail_module, "LINGER_SECONDS", -1.0)
    reader = follow(tmp_path)
    for number in range(40):
        append(tmp_path / f"{number:03d}.log", b"%03d" % number)
        reader.look()
        if number >= 5:
            (tmp_path / f"{number:03d}.log").unlink()
    reader.look()
    assert len(reader.tail.positions()) <= 10
    assert len(reader.lines) == 40
    assert reader.look() == []


def test_a_missing_folder_is_told_until_it_appears(tmp_path: Path, follow: type[Reader]) -> None:
    """Then every line in it counts."""
    reader = follow(tmp_path / "requests")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            reader.look()
    (tmp_path / "requests").mkdir()
    assert reader.look() == []
    append(tmp_path / "requests" / "a.log", b"1")
    assert reader.look() == [b"1"]


def test_a_folder_that_goes_is_told_and_files_named_after_it_are_not_its_own(
    tmp_path: Path, follow: type[Reader]
) -> None:
    """The listing never slips to the folder above."""
    folder = tmp_path / "requests"
    folder.mkdir()
    append(folder / "a.log", b"1")
    reader = follow(folder)
    reader.look()
    append(folder / "a.log", b"2")
    append(tmp_path / "requests.log", b"not ours")
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError):
        reader.tail.refresh()
    assert reader.drain() == [b"2"]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Nobody's rights, where the tests run as root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_file_waits_and_stops_no_other() -> None:
    """It is read once its rights allow, from where it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        append(folder / "a.log", b"1")
        append(folder / "b.log", b"2")
        reader = Reader(folder)
        (folder / "a.log").chmod(0)
        with unprivileged():
            assert reader.look() == [b"2"]
        (folder / "a.log").chmod(0o644)
        with unprivileged():
            assert reader.look() == [b"1"]
        reader.restart()
        append(folder / "a.log", b"3")
        (folder / "a.log").chmod(0)
        with unprivileged():
            assert reader.look() == []
        (folder / "a.log").chmod(0o644)
        with unprivileged():
            assert reader.look() == [b"3"]
        reader.tail.close()


def test_an_unreadable_folder_is_told() -> None:
    """The error is the system's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        append(folder / "a.log", b"1")
        folder.chmod(0)
        with unprivileged(), pytest.raises(PermissionError):
            Reader(folder).look()
        folder.chmod(0o755)


def test_links_hidden_compressed_and_special_files(tmp_path: Path, follow: type[Reader]) -> None:
    """A link to a file of the folder is that file; what is no plain log is left alone."""
    folder = tmp_path / "logs"
    folder.mkdir()
    append(folder / "a.log", b"1")
    append(tmp_path / "elsewhere", b"2")
    (folder / "current").symlink_to("a.log")
    (folder / "outside").symlink_to("../elsewhere")
    (folder / "dangling").symlink_to("nothing")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    (folder / "sub").mkdir()
    append(folder / "sub" / "b.log", b"no")
    for name in (".hidden", "a.log.1.gz", "a.log.zst", "a.log.xz", "a.log.bz2", "a.log.lz4", "a.zip"):
        append(folder / name, b"no")
    assert sorted(follow(folder).look()) == [b"1", b"2"]


def test_a_single_file_may_be_a_link_that_moves_on(tmp_path: Path, follow: type[Reader]) -> None:
    """Lines of the old target and of the new one count, also where the targets are named after the link."""
    log = tmp_path / "server.log"
    append(tmp_path / "server.log.a", b"1")
    log.symlink_to("server.log.a")
    reader = follow(log)
    assert reader.look() == [b"1"]
    append(tmp_path / "server.log.a", b"2")
    append(tmp_path / "server.log.b", b"3")
    log.unlink()
    log.symlink_to("server.log.b")
    assert sorted(reader.look()) == [b"2", b"3"]


@pytest.mark.parametrize("suffix", [f".{n}" for n in range(8)])
def test_of_several_names_of_a_file_the_one_asked_for_stands(log: Path, follow: type[Reader], suffix: str) -> None:
    """In whatever order the system lists them: the log is never taken for what it was rotated to."""
    append(Path(f"{log}{suffix}"), b"1")
    log.hardlink_to(f"{log}{suffix}")
    assert follow(log).look() == [b"1"]


def test_siblings_of_a_single_file_from_before_are_history(log: Path, follow: type[Reader]) -> None:
    """What it was rotated to before the first look is not counted, also when that file is written later."""
    append(Path(f"{log}.1"), b"old")
    append(Path(f"{log}s"), b"another log")
    append(log, b"1")
    reader = follow(log)
    assert reader.look() == [b"1"]
    append(Path(f"{log}s"), b"another log")
    Path(f"{log}.1").rename(f"{log}.2")
    log.rename(f"{log}.1")
    append(log, b"2")
    assert reader.look() == [b"2"]


def test_an_unfinished_line_waits_and_counts_once(log: Path, follow: type[Reader]) -> None:
    """Also across a restart, and when it is finished byte by byte."""
    reader = follow(log)
    append(log, b"1")
    with log.open("ab", buffering=0) as writer:
        for byte in b"unfinished":
            writer.write(bytes([byte]))
            reader.look()
        reader.restart()
        assert reader.look() == []
        writer.write(b"\nnext")
    assert reader.look() == [b"unfinished"]
    assert reader.lines == [b"1", b"unfinished"]


@pytest.mark.parametrize(
    "line",
    [b"", b"\r", b"with a carriage return\r", b"nul \x00 nul", b"\xff\xfe no UTF-8", b"a\rb\x0bc\x0c\x85"],
    ids=["empty", "only a carriage return", "CRLF", "NUL bytes", "not UTF-8", "other line breaks"],
)
def test_only_a_line_feed_ends_a_line(log: Path, follow: type[Reader], line: bytes) -> None:
    """Whatever else is in it comes as it is."""
    append(log, b"before", line, b"after")
    assert follow(log).look() == [b"before", line, b"after"]


@pytest.mark.parametrize("restarts", [False, True], ids=["in one process", "with a restart after each chunk"])
@pytest.mark.parametrize("size", [4096, 5000, 60_000], ids=["of exactly the limit", "over it", "of many chunks"])
def test_a_line_over_the_limit_is_passed_over_and_counted_once(
    log: Path, follow: type[Reader], size: int, restarts: bool
) -> None:
    """Its neighbours are read; nothing of it is."""
    append(log, b"1", b"!" * size, b"2", b"!" * size)
    reader = follow(log)
    looks = 0
    while reader.lines != [b"1", b"2"] or reader.oversized < 2 or reader.tail.backlog_bytes():
        reader.look(chunks=1 if restarts else None)
        if restarts:
            reader.restart()
            reader.tail.refresh()
        looks += 1
        assert looks < 1000
    assert reader.look() == []
    assert (reader.lines, reader.oversized) == ([b"1", b"2"], 2)


def test_a_line_below_the_limit_is_read_whole(log: Path, follow: type[Reader]) -> None:
    """Although it is longer than what is read at once."""
    append(log, b"!" * 4095)
    assert follow(log).look() == [b"!" * 4095]


def test_a_line_that_grows_over_the_limit_is_counted_when_it_does(log: Path, follow: type[Reader]) -> None:
    """And not again when it ends."""
    reader = follow(log)
    with log.open("ab", buffering=0) as writer:
        for _ in range(10):
            writer.write(b"!" * 1000)
            reader.look()
        assert reader.oversized == 1
        writer.write(b"\n1\n")
    assert reader.look() == [b"1"]
    assert reader.oversized == 1


def test_skipping_a_huge_line_gives_way_between_chunks(log: Path, follow: type[Reader]) -> None:
    """Each chunk of it is handed out empty, so that a loop around it is never blocked by one line."""
    log.write_bytes(b"!" * 100_000)
    reader = follow(log)
    reader.tail.refresh()
    chunks = list(reader.tail.chunks())
    assert len(chunks) > 100
    assert {(chunk.data, chunk.end) for chunk in chunks} == {(b"", 0)}
    assert sum(chunk.oversized for chunk in chunks) == 1


def test_content_is_known_again_on_another_device(tmp_path: Path, follow: type[Reader]) -> None:
    """A volume that was moved has other devices and inodes: its files go on where they were."""
    for number in range(3):
        append(tmp_path / f"{number}.log", *(b"%d " % number + line for line in FULL))
    reader = follow(tmp_path)
    reader.look()
    for position in reader.tail.positions():
        position.device += 7
        position.inode += 100_000
    append(tmp_path / "1.log", b"new")
    reader.restart()
    assert reader.look() == [b"new"]
    reader.restart()
    assert reader.look() == []


def test_positions_of_an_earlier_layout_are_taken_up(log: Path, follow: type[Reader]) -> None:
    """Without the digest of what stood before the position the head alone decides."""
    append(log, *FULL)
    reader = follow(log)
    reader.look()
    for position in reader.tail.positions():
        assert position.head_bytes == HEAD_BYTES
        position.before = ""
    append(log, b"new")
    reader.restart()
    assert reader.look() == [b"new"]


def test_backlog_is_what_was_not_read(log: Path, follow: type[Reader]) -> None:
    """In bytes, as of the latest look."""
    append(log, *FULL)
    reader = follow(log)
    reader.tail.refresh()
    assert reader.tail.backlog_bytes() == log.stat().st_size
    reader.drain(chunks=2)
    assert 0 < reader.tail.backlog_bytes() < log.stat().st_size
    reader.drain()
    assert reader.tail.backlog_bytes() == 0


def test_no_byte_of_a_line_stays_between_looks(log: Path, follow: type[Reader]) -> None:
    """What is kept are numbers and digests."""
    append(log, *FULL)
    reader = follow(log)
    with log.open("ab") as file:
        file.write(b"x-unfinished")
    reader.look()
    for position in reader.tail.positions():
        assert LONG[:8] not in msgspec.json.encode(position)
    assert not any(isinstance(getattr(reader.tail, name), bytes) for name in Tail.__slots__)


def test_a_file_that_changes_its_name_between_listing_and_opening_waits(
    tmp_path: Path, follow: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name means another file by then: neither is taken for the other."""
    append(tmp_path / "a", b"1")
    reader = follow(tmp_path)
    listing = tail_module.list_files

    def rotated_after(path: Path, **known: object) -> object:
        found = listing(path, **known)  # type: ignore[arg-type]
        (tmp_path / "a").rename(tmp_path / "a.1")
        append(tmp_path / "a", b"2")
        return found

    monkeypatch.setattr(tail_module, "list_files", rotated_after)
    reader.look()
    monkeypatch.undo()
    reader.look()
    assert sorted(reader.lines) == [b"1", b"2"]


def test_modification_time_of_the_file_comes_with_its_lines(log: Path, follow: type[Reader]) -> None:
    """It stands in where a line does not say when it was written."""
    append(log, b"1")
    at = time.time() - 5000
    os.utime(log, (at, at))
    reader = follow(log)
    reader.tail.refresh()
    assert [chunk.modified for chunk in reader.tail.chunks()] == [pytest.approx(at)]
