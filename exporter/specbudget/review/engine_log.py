"""Reads engine logs for what no sidecar saw: starts stage by stage, and batch reports.

Logs are given as files, plain or gzipped, rotated and possibly overlapping; a line that stands in two of them counts
once. Their times have no zone: the one of this machine is taken, or the one that is given.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import numpy as np

from specbudget.catalog.sets import StartOutcome
from specbudget.domain.acceptance import Floats
from specbudget.domain.start_events import POOL_TOKENS, Mark, StartEvent
from specbudget.domain.start_log import StartLog, starts_in
from specbudget.domain.start_up import StartUp, read_start_up
from specbudget.errors import SpecbudgetError
from specbudget.review.model import EngineStart, StartStage
from specbudget.sources.sglang.server_log import BatchReport, read_log
from specbudget.sources.sglang.start_log import read_start_lines

CHUNK = 8 << 20
MOST_REPORTS = 5_000_000
EARLIER = 3600.0
"""A start that began so many seconds before the stretch may end in it."""

Line = TypeVar("Line")


class LogError(SpecbudgetError):
    """A log cannot be read, or its zone is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvidence:
    """What logs tell of a stretch. Reports are in order of time: when, the length (NaN: not printed), running."""

    starts: tuple[EngineStart, ...]
    report_times: Floats
    report_lengths: Floats
    report_running: Floats
    files: int

    def told(self) -> str:
        """In words, for the list of sources."""
        return f"{self.files} files: {len(self.starts)} starts, {len(self.report_times)} batch reports in the stretch"


def zone_of(name: str | None) -> tzinfo | None:
    """The zone of a name such as Europe/Berlin; None for this machine's own. Raises LogError."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise LogError(f"--log-timezone {name}: no such zone: write UTC or a name like Europe/Berlin") from None


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files that are meant: a folder stands for its logs. Raises LogError for a path that is not there."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.iterdir() if file.is_file() and ".log" in file.name)
        elif path.exists():
            found.append(path)
        else:
            raise LogError(f"--log {path}: no such file")
    return list(dict.fromkeys(found))


def read_logs(paths: Sequence[Path], start: float, end: float, zone: tzinfo | None = None) -> LogEvidence:
    """What the logs tell of the stretch. Raises LogError."""
    files = files_of(paths)
    read = sorted((_of_file(file) for file in files), key=_first_time)
    events = once(part[0] for part in read)
    reports = [report for report in once(part[1] for part in read) if report.tensor_rank == 0]
    times = np.array([in_zone(report.at, zone) for report in reports], dtype=np.float64)
    inside = (times >= start) & (times <= end)
    order = np.argsort(times[inside], kind="stable")
    lengths, running = (
        np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        for values in ([report.length for report in reports], [report.running for report in reports])
    )
    told = [made for log in starts_in(events) if log.events and (made := _start(log, zone)) is not None]
    return LogEvidence(
        starts=tuple(one for one in told if start - EARLIER <= one.started_at <= end),
        report_times=times[inside][order],
        report_lengths=lengths[inside][order],
        report_running=running[inside][order],
        files=len(files),
    )


def once(parts: Iterable[Sequence[Line]]) -> list[Line]:
    """The lines of overlapping files, each as often as it stands in one of them at most, in order."""
    kept: Counter[str] = Counter()
    found: list[Line] = []
    for part in parts:
        own: Counter[str] = Counter()
        for line in part:
            text = repr(line)
            own[text] += 1
            if own[text] > kept[text]:
                kept[text] = own[text]
                found.append(line)
    return found


def _first_time(part: tuple[list[StartEvent], list[BatchReport]]) -> float:
    events, reports = part
    # both clocks count the log's own wall time; only their order matters here
    times = [event.at for event in events[:1]] + [_naive(report.at) for report in reports[:1]]
    return min(times, default=float("inf"))


def _of_file(file: Path) -> tuple[list[StartEvent], list[BatchReport]]:
    events: list[StartEvent] = []
    reports: list[BatchReport] = []
    for data in _lines(file):
        events += read_start_lines(data).events
        if len(reports) < MOST_REPORTS:
            reports += read_log(data).reports
    return events, reports


def _lines(file: Path) -> Iterator[bytes]:
    """Whole lines of a file, a few megabytes at a time."""
    rest = b""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                lines, separator, tail = (rest + chunk).rpartition(b"\n")
                rest = tail[-CHUNK:]
                if separator:
                    yield lines + separator
        if rest:
            yield rest
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"--log {file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _naive(local: float) -> float:
    """A time that was read by this machine's zone as the log's own wall time, in seconds."""
    return float(datetime(*time.localtime(local)[:6], tzinfo=UTC).timestamp())


def in_zone(local: float, zone: tzinfo | None) -> float:
    """A time that was read by this machine's zone, read by another one."""
    return local if zone is None else datetime.fromtimestamp(_naive(local), UTC).replace(tzinfo=zone).timestamp()


def wall_time(at: float, zone: tzinfo | None) -> float:
    """The log's own wall time as seconds since the epoch; without a zone this machine's holds."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=zone).timestamp()


def _start(log: StartLog, zone: tzinfo | None) -> EngineStart | None:
    start: StartUp = read_start_up(log.events)
    if start.began_at is None:
        return None
    tokens = [e.figures.get(POOL_TOKENS) for e in log.events if e.mark is Mark.CAPACITY]
    outcome = StartOutcome.FAILED if start.failed else StartOutcome.OK if start.ready else None
    open_stage = start.open_stage
    stages = [
        StartStage(artifact=s.artifact, stage=s.stage, offset=s.offset, seconds=s.seconds)
        for s in start.stages
        if s.offset is not None
    ]
    if open_stage is not None and open_stage.offset is not None:
        stages.append(
            StartStage(artifact=open_stage.artifact, stage=open_stage.stage, offset=open_stage.offset, seconds=None)
        )
    return EngineStart(
        replica="",
        started_at=wall_time(start.began_at, zone) - start.lead,
        basis=start.basis,
        stages=tuple(sorted(stages, key=lambda s: s.offset)),
        seconds=start.cold_start_seconds,
        outcome=outcome,
        mode=start.mode,
        order=",".join(start.order) or None,
        warmup=None if start.warm_up is None else "done" if start.warm_up else "skipped",
        overlap_ratio=start.overlap_ratio,
        target_tokens=min((value for value in tokens if value is not None), default=None),
        seen_from="engine log",
    )
