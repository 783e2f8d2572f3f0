"""Engine logs: rotated, gzipped, overlapping, of another zone; a line that stands in two files counts once."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specbudget.review.engine_log import LogError, read_logs, zone_of
from specbudget.review.whole import with_logged

LOG = Path(__file__).parents[1] / "fixtures" / "review_logs" / "two_starts.log"
DAY = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
STRETCH = (DAY, DAY + 86400)


def told(paths: list[Path], zone: str = "UTC"):
    return read_logs(paths, *STRETCH, zone_of(zone))


def test_starts_are_told_stage_by_stage_with_the_pool_that_they_made() -> None:
    """Two starts of one log, the second with a third fewer tokens."""
    first, second = told([LOG]).starts
    assert (first.target_tokens, second.target_tokens) == (1_800_000, 1_200_000)
    assert first.started_at == datetime(2026, 12, 1, 3, 46, 24, tzinfo=UTC).timestamp()
    assert first.seconds is not None
    assert ("drafter", "load") in {(s.artifact.value, s.stage) for s in first.stages}


def test_overlapping_and_rotated_files_count_each_line_once(tmp_path: Path) -> None:
    """The whole log, and the same log cut in two with an overlap, one part gzipped, tell the same."""
    lines = LOG.read_bytes().splitlines(keepends=True)
    (tmp_path / "engine.log.1.gz").write_bytes(gzip.compress(b"".join(lines[: len(lines) * 2 // 3])))
    (tmp_path / "engine.log").write_bytes(b"".join(lines[len(lines) // 3 :]))
    whole = told([LOG])
    for paths in ([tmp_path / "engine.log", tmp_path / "engine.log.1.gz"], [tmp_path]):
        parts = told(paths)
        assert parts.starts == whole.starts
        assert parts.report_times.tolist() == whole.report_times.tolist()
        assert parts.report_lengths.tolist() == whole.report_lengths.tolist()
    assert len(whole.report_times) > 10


def test_equal_lines_of_one_file_all_count(tmp_path: Path) -> None:
    """Two reports of the same second are two, also where the file was copied."""
    line = (
        b"[2026-12-01 03:46:30 TP0] Decode batch, #running-req: 3, #token: 900, accept len: 2.40, gen throughput: 1\n"
    )
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(line * 2)
    assert len(told([tmp_path]).report_times) == 2


def test_the_zone_of_a_log_is_believed() -> None:
    """The same wall time in Berlin is an hour earlier than in UTC, for starts and for reports."""
    here, there = told([LOG]), told([LOG], "Europe/Berlin")
    assert here.starts[0].started_at - there.starts[0].started_at == 3600
    assert here.report_times[0] - there.report_times[0] == 3600


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: folder / "gone.log", "no such file"),
        (lambda folder: cut(folder / "cut.log.gz"), "cannot be read"),
    ],
)
def test_a_log_that_cannot_be_read_is_one_line(make, says: str, tmp_path: Path) -> None:
    """Naming the file."""
    path = make(tmp_path)
    with pytest.raises(LogError, match=says) as raised:
        told([path])
    assert path.name in str(raised.value)


def cut(path: Path) -> Path:
    path.write_bytes(gzip.compress(LOG.read_bytes())[:-50])
    return path


def test_a_zone_that_is_none_is_one_line() -> None:
    """With examples of zones."""
    with pytest.raises(LogError, match="Europe/Berlin"):
        zone_of("Nowhere/Else")


def test_a_start_that_both_tell_of_is_one() -> None:
    """Series and log know the same start; the log adds what series do not say."""
    logged = told([LOG]).starts
    assert with_logged(logged, logged) == logged
