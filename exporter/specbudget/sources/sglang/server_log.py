"""SGLang's server log: the decode reports, one line per rank and decode-log interval.

The line's fields changed names, order and separators between releases, so they are read as key/value pairs by
name, in any order. A report is believed only where the engine writes it: right after the line's own prefix.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import lru_cache

PREFIX = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d{1,6})?((?: [A-Z_]{1,12}\d{1,5}){0,6})\] ")
"""`[2026-03-10 08:00:00 DP1 TP1] `: time of the host's zone, then ranks, each only where there is more than one."""

REPORT = b"Decode batch"
MAX_REPORT_BYTES = 4096

MAX_RUNNING = 1e6
"""More requests at once than any engine runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """One decode report. `at` is seconds since the epoch, by the host's zone; `length` None when not printed."""

    at: float
    rank: str
    tensor_rank: int
    length: float | None
    running: float | None


@dataclass(slots=True)
class LogBatches:
    """The reports of a chunk and what became of its lines."""

    reports: list[BatchReport] = field(default_factory=list)
    other_lines: int = 0
    malformed: int = 0


def read_log(data: bytes) -> LogBatches:
    """Reads complete lines; every line that is no decode report only counts."""
    found = LogBatches()
    lines = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
    place = data.find(REPORT)
    while place >= 0:
        start = data.rfind(b"\n", 0, place) + 1
        stop = data.find(b"\n", place)
        stop = len(data) if stop < 0 else stop
        prefix = PREFIX.match(data, start, min(stop, start + 128))
        if prefix is not None and prefix.end() == place and stop - place <= MAX_REPORT_BYTES:
            report = _report(prefix, data[place:stop])
            if report is None:
                found.malformed += 1
            else:
                found.reports.append(report)
        place = data.find(REPORT, stop)
    found.other_lines = lines - len(found.reports) - found.malformed
    return found


def _report(prefix: re.Match[bytes], text: bytes) -> BatchReport | None:
    """The report; None when a number that it prints is none."""
    pairs = {}
    for part in text[max(text.find(b"#"), 0) :].split(b", ")[:64]:
        key, separator, value = part.partition(b": ")
        if separator:
            pairs[key.strip().lstrip(b"#")] = value.strip().rstrip(b",")
    ranks = {letters: int(digits) for letters, digits in re.findall(rb"([A-Z_]+)(\d+)", prefix[2])}
    try:
        at = _epoch(prefix[1])
        length, running = (float(pairs[key]) if key in pairs else None for key in (b"accept len", b"running-req"))
    except (ValueError, OverflowError):
        return None
    # nan would stay in every rolling sum
    if running is not None and not 0 <= running <= MAX_RUNNING:
        return None
    return BatchReport(
        at=at, rank=str(ranks.get(b"DP", 0)), tensor_rank=ranks.get(b"TP", 0), length=length, running=running
    )


@lru_cache(maxsize=64)
def _epoch(text: bytes) -> float:
    """Seconds since the epoch of a log time, by the host's zone; many lines share one."""
    return time.mktime(time.strptime(text.decode(), "%Y-%m-%d %H:%M:%S"))
