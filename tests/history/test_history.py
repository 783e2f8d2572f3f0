"""The history: what is kept, for how long, and that nothing that befalls its file stops anybody."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from specbudget.catalog import series
from specbudget.catalog.series import SERVICE_LABEL
from specbudget.domain.axis import Axis, axis_over
from specbudget.domain.reduction import Reduction
from specbudget.errors import StateError
from specbudget.history.database import FILE_NAME, SCHEMA
from specbudget.history.reader import HistorySamples
from specbudget.history.recorder import Recorder, samples_of
from specbudget.history.writer import DAY, TIERS, HistoryWriter

T0 = 1_796_000_000.0
OWN = ((SERVICE_LABEL, "chat"),)
COUNT = (series.VERIFY_STEPS.full_name, (("profile", "default"), ("rank", "0"), *OWN))
QUEUE = (series.ENGINE_QUEUED.full_name, (("rank", "0"), *OWN))
BUILT = (series.BUILD_INFO.full_name, OWN)


def rows(days: float, every: float = 15.0, start: float = T0):
    """Samplings of a count that grows by 1, and of a queue that is 9 at each 40th."""
    for place in range(int(days * DAY / every)):
        yield start + place * every, {COUNT: float(place), QUEUE: 9.0 if place % 40 == 7 else 0.0, BUILT: 1.0}


def written(folder: Path, days: float, **more: float) -> None:
    writer = HistoryWriter(folder)
    pending = []
    for row in rows(days, **more):
        pending.append(row)
        if len(pending) == 240:
            writer.write(pending)
            pending.clear()
    writer.write(pending)
    writer.close()


def read(folder: Path, name: str, start: float, end: float, step: float, reduction: Reduction) -> np.ndarray:
    samples = HistorySamples(folder, start, end)
    (row,) = samples.rows(name, {SERVICE_LABEL: "chat"}, axis_over(start, end, step), reduction, step)
    return row.values


def test_what_was_written_is_read_at_the_same_moments(tmp_path: Path) -> None:
    """Every sample of the newest two days is there as it was."""
    written(tmp_path, 1 / 24)
    found = HistorySamples(tmp_path, T0, T0 + 3600)
    assert found.services() == ("chat",)
    assert found.interval("chat") == 15.0
    axis = Axis(start=T0, step=15.0, count=240)
    (row,) = found.rows(COUNT[0], {SERVICE_LABEL: "chat"}, axis, Reduction.LAST, 15.0)
    assert row.values.tolist() == list(range(240))


def test_old_samples_are_thinned_out_and_keep_counts_and_peaks(tmp_path: Path) -> None:
    """A count keeps its last value and a queue its highest: a review at that step reads what it read before."""
    written(tmp_path, 12, every=30.0)
    now = T0 + 12 * DAY
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        tiers = dict(db.execute("SELECT interval, sum(rows) FROM blocks GROUP BY interval").fetchall())
    assert set(tiers) == {tier.interval for tier in TIERS}
    assert tiers[300] >= 3 * 288
    start, end = T0 + 3600, T0 + 2 * DAY
    counts = read(tmp_path, COUNT[0], start, end, 600.0, Reduction.LAST)
    assert np.nanmax(np.abs(np.diff(counts) - 20)) <= 10
    assert read(tmp_path, QUEUE[0], start, end, 3600.0, Reduction.HIGHEST).min() == 9.0
    assert HistorySamples(tmp_path, start, end).interval("chat") == 300.0
    assert HistorySamples(tmp_path, now - DAY, now).interval("chat") == 15.0


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    """Nothing is kept longer than the coarsest tier says."""
    writer = HistoryWriter(tmp_path)
    writer.write(rows(0.05))
    writer.write(rows(0.05, start=T0 + TIERS[-1].kept + DAY))
    writer.close()
    assert HistorySamples(tmp_path, T0, T0 + DAY).services() == ()


def test_the_oldest_goes_first_where_the_file_reaches_its_limit(tmp_path: Path) -> None:
    """The file stays within its limit and the newest hours stay whole."""
    limit, draw = 300_000, np.random.default_rng(1)
    writer = HistoryWriter(tmp_path, limit)
    names = [(QUEUE[0], (("rank", str(rank)), *OWN)) for rank in range(40)]
    for place in range(2000):
        writer.write([(T0 + 15 * place, dict(zip(names, draw.random(40).tolist(), strict=True)) | {BUILT: 1.0})])
    writer.close()
    assert (tmp_path / FILE_NAME).stat().st_size <= limit * 1.2
    newest = HistorySamples(tmp_path, T0 + 15 * 1800, T0 + 15 * 2000)
    assert newest.extent("chat") == (T0 + 15 * 1800, T0 + 15 * 1999)
    assert HistorySamples(tmp_path, T0, T0 + 1500).services() == ()


def test_a_reader_beside_the_writer_sees_each_sample_once(tmp_path: Path) -> None:
    """Packing rows into blocks is one transaction: before and after it a reader counts the same."""
    writer = HistoryWriter(tmp_path)
    for place, row in enumerate(rows(0.1)):
        writer.write([row])
        if place % 97 == 96:
            found = HistorySamples(tmp_path, T0, T0 + DAY)
            assert found.extent("chat") == (T0, row[0])
            assert sum(len(times) for times in found._times[1]) == place + 1
    writer.close()


def test_a_damaged_file_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With one line; a new history is begun."""
    (tmp_path / FILE_NAME).write_bytes(b"no database" * 1000)
    with caplog.at_level(logging.ERROR):
        written(tmp_path, 0.01)
    assert len([r for r in caplog.records if "history is not readable" in r.getMessage()]) == 1
    assert list(tmp_path.glob(f"{FILE_NAME}.unreadable-*"))
    assert HistorySamples(tmp_path, T0, T0 + DAY).services() == ("chat",)


def test_a_file_that_is_damaged_under_the_writer_is_moved_aside(tmp_path: Path) -> None:
    """What cannot be read any more is kept for people; recording goes on."""
    writer = HistoryWriter(tmp_path)
    writer.write(rows(0.05))
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((tmp_path / FILE_NAME).read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    (tmp_path / FILE_NAME).write_bytes(content)
    for row in rows(0.05, start=T0 + DAY):
        writer.write([row])
    writer.close()
    assert HistorySamples(tmp_path, T0 + DAY, T0 + 2 * DAY).services() == ("chat",)


def test_a_block_that_is_damaged_costs_only_itself(tmp_path: Path) -> None:
    """The rest is read, and how many are lost is known."""
    written(tmp_path, 0.2)
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute("UPDATE blocks SET data = x'00' WHERE first = (SELECT min(first) FROM blocks)")
    found = HistorySamples(tmp_path, T0, T0 + DAY)
    assert found.damaged_blocks == 1
    assert found.services() == ("chat",)


def test_a_newer_layout_is_refused_in_one_line(tmp_path: Path) -> None:
    """By reader and writer: an upgrade is asked for and nothing is changed."""
    written(tmp_path, 0.01)
    with sqlite3.connect(tmp_path / FILE_NAME) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(StateError, match="newer specbudget"):
        HistorySamples(tmp_path, T0, T0 + DAY)
    with pytest.raises(StateError, match="newer specbudget"):
        HistoryWriter(tmp_path).write(rows(0.01))


def test_a_folder_without_history_is_told_in_one_line(tmp_path: Path) -> None:
    """Which folder, and what to give."""
    with pytest.raises(StateError, match=r"serve --state"):
        HistorySamples(tmp_path, T0, T0 + DAY)


def test_a_killed_writer_loses_nothing_that_it_had_taken(tmp_path: Path) -> None:
    """After kill -9 in the middle everything that was committed is there, and writing goes on."""
    code = (
        "from pathlib import Path\n"
        "from specbudget.history.writer import HistoryWriter\n"
        f"writer = HistoryWriter(Path({str(tmp_path)!r}))\n"
        "for place in range(100000):\n"
        f"    writer.write([({T0} + 15 * place, {{{BUILT!r}: 1.0}})])\n"
        "    print(place, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = 0
        while told < 700:
            told = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
    last = int(rest[-1]) if rest else told
    found = HistorySamples(tmp_path, T0, T0 + 10 * DAY)
    extent = found.extent("chat")
    assert extent is not None
    assert extent[1] >= T0 + 15 * last
    written(tmp_path, 0.01, start=T0 + DAY)
    assert HistorySamples(tmp_path, T0, T0 + 10 * DAY).extent("chat") == (T0, T0 + DAY + 15 * 56)


def family(name: str, value: float, **labels: str) -> SimpleNamespace:
    sample = SimpleNamespace(name=name, labels={SERVICE_LABEL: "chat", **labels}, value=value)
    return SimpleNamespace(samples=[sample])


def test_only_declared_series_are_kept() -> None:
    """What people read on the page and no review asks for takes no room."""
    families = [
        family(series.ENGINE_QUEUED.full_name, 3.0, rank="0"),
        family(series.ROLLING_ACCEPTANCE_LENGTH.full_name, 4.0, scope="batch", window="1m"),
        family(series.ROLLING_ACCEPTANCE_LENGTH.full_name, 4.0, scope="batch", window="1h"),
        family(series.SOURCE_DURATION.full_name, 0.1, source="metrics"),
    ]
    assert [key[0] for key in samples_of(families)] == [
        series.ENGINE_QUEUED.full_name,
        series.ROLLING_ACCEPTANCE_LENGTH.full_name,
    ]


def test_a_recorder_keeps_one_sampling_in_a_quarter_of_a_minute(tmp_path: Path) -> None:
    """However often it is offered one, and without making anybody wait."""
    recorder = Recorder(tmp_path)
    for second in range(60):
        recorder.offer(T0 + second, [family(series.BUILD_INFO.full_name, 1.0)])
    recorder.close()
    found = HistorySamples(tmp_path, T0 - 60, T0 + 600)
    assert 4 <= len(found._all) <= 5


def test_a_folder_that_takes_nothing_is_told_once_and_later_holds_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Serving goes on meanwhile, and what waited is kept as soon as it can be."""
    folder = tmp_path / "state"
    folder.write_text("in the way")
    with caplog.at_level(logging.INFO):
        recorder = Recorder(folder)
        for place in range(4):
            recorder.offer(T0 + 15 * place, [family(series.BUILD_INFO.full_name, 1.0)])
        assert waited(lambda: not recorder.saved)
        folder.unlink()
        assert waited(lambda: recorder.saved)
        recorder.close()
    assert len([r for r in caplog.records if "history is not kept" in r.getMessage()]) == 1
    assert HistorySamples(folder, T0, T0 + 600).extent("chat") == (T0, T0 + 45)


def waited(condition) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_what_lies_before_the_stretch_is_no_service_of_it(tmp_path: Path) -> None:
    """Samples from just before are there for the first points to look back at, and for nothing else."""
    written(tmp_path, 1 / 24)
    assert HistorySamples(tmp_path, T0 + 3600, T0 + 7200).services() == ()
