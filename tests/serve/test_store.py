"""The state folder: damaged, full, shared, of a newer layout."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specbudget.errors import StateError
from specbudget.serve import publish
from specbudget.serve.publish import Publisher
from specbudget.serve.store import FILE_NAME, Store

KEPT = {"identity": ["chat", "url", "host"], "ledger": {"counters": {"a": [[["x"], 5]]}}, "text": "größe"}


def kept_in(folder: Path) -> dict[str, object]:
    """What a new process would read."""
    store = Store(folder)
    try:
        return store.read()
    finally:
        store.close()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A state folder that holds something, closed."""
    store = Store(tmp_path / "state")
    store.write(KEPT)
    store.close()
    return tmp_path / "state"


def test_what_was_written_is_read_and_values_are_replaced_by_name(kept: Path) -> None:
    """Names that are not written again stay."""
    assert kept_in(kept) == KEPT
    store = Store(kept)
    store.write({"text": [1, 2.5, None]})
    store.close()
    assert kept_in(kept) == {**KEPT, "text": [1, 2.5, None]}
    assert sorted(path.name for path in kept.iterdir()) == ["lock", FILE_NAME]


def test_a_second_opener_is_refused_in_one_line_and_the_first_is_not_disturbed(kept: Path) -> None:
    """The line names the folder, the holder's process and the remedy."""
    store = Store(kept)
    with pytest.raises(
        StateError, match=rf"state: in use by another specbudget \(process {os.getpid()}\): give"
    ) as raised:
        Store(kept)
    assert "\n" not in str(raised.value)
    store.write({"text": "later"})
    store.close()
    assert kept_in(kept)["text"] == "later"


def test_the_lock_goes_with_the_process(kept: Path) -> None:
    """A killed holder leaves nothing that has to be removed by hand."""
    code = "import sys, time; from pathlib import Path; from specbudget.serve.store import Store; "
    code += "s = Store(Path(sys.argv[1])); s.write({'text': 'killed'}); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, str(kept)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateError):
            Store(kept)
        holder.send_signal(signal.SIGKILL)
    assert kept_in(kept)["text"] == "killed"


def run_sql(path: Path, script: str) -> None:
    """Changes a closed database."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(script)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no database": lambda path: path.write_bytes(b"not a database at all" * 1000),
    "cut short": lambda path: os.truncate(path, 700),
    "a page of zeros": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(len(path.read_bytes()) - 4096)),
    "no table": lambda path: run_sql(path, "DROP TABLE kept"),
    "a value that is no JSON": lambda path: run_sql(path, "UPDATE kept SET value = x'ff00'"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_state_is_moved_aside(
    kept: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    """One line says where to; the store begins anew and keeps."""
    damage(kept / FILE_NAME)
    content = (kept / FILE_NAME).read_bytes()
    with caplog.at_level(logging.ERROR):
        store = Store(kept)
    assert store.read() == {}
    store.write({"text": "new"})
    store.close()
    assert kept_in(kept) == {"text": "new"}
    (aside,) = kept.glob(f"{FILE_NAME}.unreadable-*Z")
    assert aside.read_bytes() == content
    (message,) = [record.getMessage() for record in caplog.records]
    assert "starting anew" in message
    assert str(aside) in message
    assert "\n" not in message


def test_a_newer_layout_is_left_alone(kept: Path) -> None:
    """It is no damage: the line says to upgrade, and the folder can be opened by who knows it."""
    with contextlib.closing(sqlite3.connect(kept / FILE_NAME)) as db:
        db.execute("PRAGMA user_version = 99")
    for _ in range(2):
        with pytest.raises(StateError, match="written by a newer specbudget"):
            Store(kept)
    assert not list(kept.glob("*unreadable*"))


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """A file stands there."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="--state cannot be used"):
        Store(tmp_path / "file" / "state")


def test_a_reader_beside_it_sees_the_latest_and_blocks_nothing(kept: Path) -> None:
    """Another process may look into the state of a running sidecar."""
    store = Store(kept)
    store.write({"text": 1})
    with contextlib.closing(sqlite3.connect(f"file:{kept / FILE_NAME}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT value FROM kept WHERE name = 'text'")
        assert rows.fetchone() == (b"1",)
        store.write({"text": 2})
        assert db.execute("SELECT value FROM kept WHERE name = 'text'").fetchone() == (b"2",)
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a mebibyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Takes all space that is left."""
    path = folder / "filler"
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while file.write(b"x" * 512):
            pass
    return path


def test_on_a_full_disk_writing_fails_whole_and_works_again(small_disk: Path) -> None:
    """What was kept before stands; nothing is half written."""
    store = Store(small_disk / "state")
    store.write(KEPT)
    filler = fill(small_disk)
    with pytest.raises(sqlite3.Error):
        store.write({"text": "x" * 100_000, "identity": "changed"})
    filler.unlink()
    store.write({"more": 1})
    store.close()
    assert kept_in(small_disk / "state") == {**KEPT, "more": 1}


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_a_state_on_a_full_disk_is_read_and_not_moved_aside(small_disk: Path, killed: bool) -> None:
    """A start without space goes on from what was kept, and saves once there is space."""
    state = small_disk / "state"
    code = "import sys, os, signal; from pathlib import Path; from specbudget.serve.store import Store; "
    code += "s = Store(Path(sys.argv[1])); s.write({'text': 'kept'}); "
    code += "os.kill(os.getpid(), signal.SIGKILL)" if killed else "s.close()"
    subprocess.run([sys.executable, "-c", code, str(state)], check=not killed)
    filler = fill(small_disk)
    store = Store(state)
    assert store.read() == {"text": "kept"}
    assert not list(state.glob("*unreadable*"))
    with pytest.raises(sqlite3.Error):
        store.write({"text": "x" * 100_000})
    filler.unlink()
    store.write({"text": "saved"})
    store.close()
    assert kept_in(state) == {"text": "saved"}


def test_a_first_start_on_a_full_disk_serves_and_saves_later(small_disk: Path) -> None:
    """There is nothing to lose yet."""
    (small_disk / "state").mkdir()
    (small_disk / "state" / "lock").touch()
    filler = fill(small_disk)
    store = Store(small_disk / "state")
    assert store.read() == {}
    with pytest.raises(sqlite3.Error):
        store.write({"text": "x"})
    filler.unlink()
    store.write({"text": "saved"})
    store.close()
    assert kept_in(small_disk / "state") == {"text": "saved"}


async def test_the_publisher_says_whether_it_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A failure is logged once, not at each page, and the next good write clears it."""
    store = Store(tmp_path / "state")
    saved: list[bool] = []
    publisher = Publisher(
        settle=lambda _: None,
        collect=lambda now: [],
        keep=lambda windows: {"a": windows},
        store=store,
        saved=saved.append,
    )
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / FILE_NAME)) as other:
        publisher.publish(1.0)
        store._db.execute("PRAGMA busy_timeout = 1")  # type: ignore[union-attr]
        other.execute("BEGIN IMMEDIATE")
        for now in (2.0, 3.0, 4.0):
            publisher.publish(now)
        other.rollback()
    publisher.publish(5.0)
    assert saved == [True, False, False, False, True]
    assert len([r for r in caplog.records if "not saved" in r.getMessage()]) == 1
    store.close()
    shutil.rmtree(tmp_path / "state")


@pytest.mark.parametrize("turns", range(6))
async def test_the_publisher_ends_when_it_is_cancelled_as_something_changes(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a sidecar that is told to end while it counts would never do so."""
    monkeypatch.setattr(publish, "PUBLISH_SECONDS", 0.0)
    publisher = Publisher(
        settle=lambda _: None, collect=lambda now: [], keep=lambda windows: {}, store=None, saved=lambda saved: None
    )
    running = asyncio.create_task(publisher.run())
    await asyncio.sleep(0.01)
    publisher.ask()
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running}, timeout=1.0)
    ended = running.done()
    while not running.done():
        running.cancel()
        await asyncio.sleep(0)
    assert ended


def test_a_state_that_is_deleted_under_us_is_written_anew(tmp_path: Path) -> None:
    """A write into a file that nobody can open again would be a save that is none."""
    folder = tmp_path / "state"
    store = Store(folder)
    store.write({"a": 1, "b": 2})
    shutil.rmtree(folder)
    store.write({"b": 3})
    store.close()
    again = Store(folder)
    assert again.read() == {"a": 1, "b": 3}
    again.close()


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    """The line says what is wrong with the path."""
    (tmp_path / "state").write_text("")
    with pytest.raises(StateError, match="--state is a file: give a folder"):
        Store(tmp_path / "state")
