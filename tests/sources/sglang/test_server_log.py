"""Decode reports of both engine versions, and lines that only look like one."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specbudget.sources.sglang.server_log import read_log

CAPTURED = Path(__file__).parents[2] / "fixtures" / "sglang"
LOGS = sorted(str(path.relative_to(CAPTURED)) for path in CAPTURED.glob("*/log_*.batch_lines.log"))
STAMP = b"[2026-03-04 10:00:00"
AT = time.mktime(time.strptime("2026-03-04 10:00:00", "%Y-%m-%d %H:%M:%S"))


def report(text: bytes, ranks: bytes = b"") -> bytes:
    """A line with the engine's prefix."""
    return STAMP + ranks + b"] Decode batch, " + text + b"\n"


@pytest.mark.parametrize("name", LOGS)
def test_captured_reports_are_those_of_the_file(name: str) -> None:
    """Rank, length and running requests of every decode line, by an expression of their own."""
    text = (CAPTURED / name).read_text()
    found = read_log(text.encode())
    lines = [line for line in text.splitlines() if "] Decode batch" in line]
    assert len(found.reports) == len(lines) > 0
    assert found.malformed == 0
    assert found.other_lines == len(text.splitlines()) - len(lines)
    for got, line in zip(found.reports, lines, strict=True):
        length = re.search(r"accept len: ([\d.]+)", line)
        running = re.search(r"#running-req: (\d+)", line)
        rank = re.search(r" DP(\d+)", line)
        assert running is not None
        assert got.length == (float(length[1]) if length else None)
        assert got.running == float(running[1])
        assert got.rank == (rank[1] if rank else "0")


def test_there_are_captured_logs_of_both_versions() -> None:
    """So that the test above is not empty."""
    assert {name.split("/")[0] for name in LOGS} == {"0.5.18", "0.5.23"}


@pytest.mark.parametrize(
    ("line", "rank", "tensor_rank", "length", "running"),
    [
        (report(b"#running-req: 3, accept len: 2.50"), "0", 0, 2.5, 3.0),
        (report(b"#running-req: 3, accept len: 2.50", b" DP1 TP3"), "1", 3, 2.5, 3.0),
        (report(b"accept len: 2.50, #running-req: 3"), "0", 0, None, 3.0),
        (report(b"#accept len: 2.50, #running-req: 3"), "0", 0, 2.5, 3.0),
        (report(b"#token: 5, token usage: 0.01"), "0", 0, None, None),
        (report(b"#running-req: 3, accept len: 2.50\r"), "0", 0, 2.5, 3.0),
        (b"[2026-03-04 10:00:00.123 PP1 TP2 EP2] Decode batch [7], #running-req: 1\n", "0", 2, None, 1.0),
    ],
    ids=["plain", "ranks", "a field before the first count", "another order", "no speculation", "CRLF", "milliseconds"],
)
def test_fields_are_read_by_name(
    line: bytes, rank: str, tensor_rank: int, length: float | None, running: float | None
) -> None:
    """In any order; what is not printed is unknown."""
    (got,) = read_log(line).reports
    assert (got.at, got.rank, got.tensor_rank, got.length, got.running) == (AT, rank, tensor_rank, length, running)


@pytest.mark.parametrize(
    "line",
    [
        b"Decode batch, #running-req: 1, accept len: 9.99",
        b"[2026-03-04 10:00:00] user said: Decode batch, #running-req: 1, accept len: 9.99",
        b"[2026-03-04 10:00:00] [2026-03-04 10:00:00] Decode batch, #running-req: 1, accept len: 9.99",
        b"x[2026-03-04 10:00:00] Decode batch, #running-req: 1, accept len: 9.99",
        b"[2026-03-04 10:00:00] Finish: obj=GenerateReqInput(text='accept len: 9.99')",
        b"[2026-03-04 10:00:00] Decode batch, " + b"x" * 5000 + b", #running-req: 1, accept len: 9.99",
        b"",
        b"\xff\xfe\x00",
    ],
    ids=[
        "without a prefix",
        "in a text",
        "with a prefix in a text",
        "behind something",
        "an accept length in a text",
        "far too long",
        "empty",
        "no text",
    ],
)
def test_what_the_engine_did_not_write_as_a_report_is_none(line: bytes) -> None:
    """Such a line only counts as another one."""
    found = read_log(line + b"\n" + report(b"#running-req: 1, accept len: 2.00"))
    assert [got.length for got in found.reports] == [2.0]
    assert (found.other_lines, found.malformed) == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        b"#running-req: 1, accept len: 2.\xff0",
        b"#running-req: 1, accept len: two",
        b"#running-req: 1, accept len: ",
        b"#running-req: nan, accept len: 2.0",
        b"#running-req: inf, accept len: 2.0",
        b"#running-req: -1, accept len: 2.0",
        b"#running-req: 1e300, accept len: 2.0",
    ],
)
def test_a_number_that_is_none_makes_the_report_malformed(text: bytes) -> None:
    """And takes no other with it."""
    found = read_log(
        report(b"#running-req: 1, accept len: 2.0") + report(text) + report(b"#running-req: 1, accept len: 3.0")
    )
    assert [got.length for got in found.reports] == [2.0, 3.0]
    assert (found.other_lines, found.malformed) == (0, 1)


def test_a_date_that_is_none_makes_the_report_malformed() -> None:
    """The thirteenth month."""
    found = read_log(b"[2026-13-04 10:00:00] Decode batch, #running-req: 1\n")
    assert (len(found.reports), found.malformed) == (0, 1)


PIECES = st.sampled_from(
    [
        b"Decode batch",
        STAMP,
        b"] ",
        b", ",
        b"#running-req: 1",
        b"accept len: ",
        b"2.0",
        b"nan",
        b"\n",
        b"\r",
        b"\x00",
        b"\xff",
        b" DP1",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=5)), max_size=30).map(b"".join))
def test_no_bytes_raise_and_every_line_counts_once(data: bytes) -> None:
    """Reports, malformed ones and other lines add up to the lines."""
    found = read_log(data)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    assert len(found.reports) + found.malformed + found.other_lines == lines


GARBAGE = """
    import resource, sys
    from pathlib import Path
    from specbudget.sources.tail import Tail
    from specbudget.sources.sglang.server_log import read_log

    log = Path(sys.argv[1])
    with log.open("wb") as out:
        out.write(b"[2026-03-04 10:00:00] Finish: obj=GenerateReqInput(text=")
        for _ in range(8):
            out.write(b"A" * 1_000_000)
        out.write(b"\\xff\\xfe accept len: 9.99)\\n")
        out.write(b"[2026-03-04 10:00:01] Decode batch, #running-req: 1, accept len: 2.50\\n")
        out.write(b"[2026-03-04 10:00:02] Decode batch, #running-req: 1, accept len: 2.\\xff0\\n")
        out.write(b"[2026-03-04 10:00:03] Decode batch, #running-req: 1, accept len: 3.50")
    tail = Tail(log)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lengths, other, malformed = [], 0, 0
    tail.refresh()
    for chunk in tail.chunks():
        found = read_log(chunk.data[: chunk.end])
        lengths += [report.length for report in found.reports]
        other, malformed = other + found.other_lines, malformed + found.malformed
    print(lengths, other, malformed, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_line_of_eight_megabytes_costs_little_memory(tmp_path: Path) -> None:
    """Its text gives no length, the unfinished last line waits, and the process grows by less than 50 MB."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(GARBAGE), str(tmp_path / "server.log")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    lengths, _, counts = done.stdout.rpartition("] ")
    other, malformed, grown = map(int, counts.split())
    assert lengths == "[2.5"
    assert (other, malformed) == (1, 1)
    assert grown < 50
