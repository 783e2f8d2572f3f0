"""Files in, counters out: what the ingest path makes of request logs and server logs."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shutil
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbudget.budget.reading import load_budget
from specbudget.catalog.sets import ErrorReason, Scope, Source
from specbudget.domain.observation import EngineReading, RankReading
from specbudget.errors import SourceError
from specbudget.serve import ingest
from specbudget.serve.desk import Desk
from specbudget.serve.ingest import RequestLoop, ServerLogLoop, TailLoop

CAPTURED = Path(__file__).parent.parent / "fixtures" / "sglang"
FOLDERS = sorted(str(path.relative_to(CAPTURED)) for path in CAPTURED.glob("*/requests_*"))
TARGET, FEW = 2.6, math.ceil(32 * 2.6)


class Reading:
    """A desk with one tail."""

    def __init__(self, budget: Path, loop: type[TailLoop] = RequestLoop, published: Callable[[], None] | None = None):
        self.desk = Desk(load_budget(budget), time.time())
        source, name = {
            RequestLoop: (Source.REQUEST_LOG, "requests"),
            ServerLogLoop: (Source.SERVER_LOG, "server.log"),
        }[loop]
        self.source = source
        self.loop = loop(self.desk, source, budget.parent / name, [], published or (lambda: None))

    async def read(self) -> None:
        """One look."""
        await self.loop.read()

    def counter(self, name: str) -> dict[tuple[str, ...], float]:
        """The children of a counter that are not 0."""
        return {labels: value for labels, value in self.desk.ledger.counters.get(name, {}).items() if value}

    def records(self) -> dict[str, float]:
        """Outcomes of the source's lines that are not 0."""
        return {labels[1]: value for labels, value in self.counter("records_total").items() if labels[0] == self.source}


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    """The empty request-log folder of the budget."""
    folder = tmp_path / "requests"
    folder.mkdir()
    return folder


def verdict(record: dict[str, Any]) -> str:
    """The SLO's word on one record, from its definition: the first reason that holds excludes it."""
    tokens, steps = record.get("completion_tokens"), record.get("spec_verify_ct", 0)
    if record["finish_reason"]["type"] == "abort":
        return "aborted"
    if steps == 0 and tokens != 1:
        return "no_speculation"
    if tokens < FEW:
        return "few_tokens"
    histogram = record["spec_correct_drafts_histogram"]
    length = sum((i + 1) * steps for i, steps in enumerate(histogram)) / sum(histogram)
    return "good" if length >= TARGET else "bad"


@pytest.mark.parametrize("folder", FOLDERS)
async def test_captured_requests_count_as_what_they_are(
    folder: str, budget_file: Callable[..., Path], tmp_path: Path
) -> None:
    """Counters by rank, positions, verdicts and excluded requests against the files read by Python's own JSON."""
    shutil.copytree(CAPTURED / folder, tmp_path / "requests")
    reading = Reading(budget_file(parallelism={"data": 2}))
    await reading.read()
    records = [
        json.loads(line) for path in (tmp_path / "requests").iterdir() for line in path.read_bytes().splitlines()
    ]
    assert reading.records() == {"ok": len(records)}
    for name, key in (
        ("verify_steps_total", "spec_verify_ct"),
        ("accepted_draft_tokens_total", "spec_num_correct_drafts"),
        ("generated_tokens_total", "completion_tokens"),
    ):
        by_rank: Counter[tuple[str, ...]] = Counter()
        for record in records:
            by_rank[str(record.get("dp_rank", 0)), "default"] += record.get(key, 0)
        assert reading.counter(name) == {labels: total for labels, total in by_rank.items() if total}
    proposed = sum(
        sum(steps * (window - 1) for window, steps in enumerate(record["spec_cap_lens_histogram"]) if window)
        if "spec_cap_lens_histogram" in record
        else record.get("spec_num_proposed_drafts", 0)
        for record in records
    )
    assert sum(reading.counter("proposed_draft_tokens_total").values()) == proposed
    positions: Counter[tuple[str, ...]] = Counter()
    for record in records:
        for accepted, steps in enumerate(record.get("spec_correct_drafts_histogram", [])):
            for position in range(1, accepted + 1):
                positions[(str(position),)] += steps
    assert reading.counter("draft_position_accepted_total") == {k: v for k, v in positions.items() if v}
    verdicts = Counter(verdict(record) for record in records)
    events = {labels[1]: count for labels, count in reading.counter("slo_events_total").items()}
    assert events == {kind: verdicts[kind] for kind in ("good", "bad") if verdicts[kind]}
    excluded = {labels[0]: count for labels, count in reading.counter("slo_excluded_requests_total").items()}
    assert excluded == {kind: count for kind, count in verdicts.items() if kind not in ("good", "bad")}
    assert sum(verdicts.values()) == len(records)


REASONS = [
    ("aborted", {"finish_reason": {"type": "abort"}, "spec_verify_ct": 9, "completion_tokens": 1}),
    ("invalid", {"spec_verify_ct": 9, "completion_tokens": 2}),
    ("invalid", {"spec_num_correct_drafts": 21}),
    ("invalid", {"spec_correct_drafts_histogram": [0] * 12 + [10], "spec_num_correct_drafts": 120}),
    ("invalid", {"completion_tokens": -5}),
    ("no_speculation", {"spec_verify_ct": ..., "spec_num_correct_drafts": ..., "spec_correct_drafts_histogram": ...}),
    ("few_tokens", {"completion_tokens": FEW - 1}),
    ("few_tokens", {"completion_tokens": 1, "spec_verify_ct": ..., "spec_correct_drafts_histogram": ...}),
    (
        "window_below_target",
        {"spec_num_proposed_drafts": 10, "spec_num_correct_drafts": 5, "spec_correct_drafts_histogram": [5, 5]},
    ),
]


@pytest.mark.parametrize(("reason", "meta"), REASONS, ids=[f"{i} {reason}" for i, (reason, _) in enumerate(REASONS)])
async def test_excluded_requests_have_the_first_reason_that_holds(
    reason: str,
    meta: dict[str, Any],
    budget_file: Callable[..., Path],
    requests: Path,
    record_line: Callable[..., bytes],
) -> None:
    """One request, one reason, no event; its tokens and steps count all the same."""
    (requests / "a.log").write_bytes(record_line(**meta))
    reading = Reading(budget_file())
    await reading.read()
    assert reading.counter("slo_excluded_requests_total") == {(reason, "default"): 1}
    assert reading.counter("slo_events_total") == {}
    steps = meta.get("spec_verify_ct", 10)
    assert sum(reading.counter("verify_steps_total").values()) == (0 if steps is ... else steps)


async def test_steps_of_unknown_acceptance_are_not_steps_that_accepted_nothing(
    budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """1 + accepted ÷ steps stays true: where no one says what was accepted, the steps do not count either."""
    (requests / "a.log").write_bytes(
        record_line(spec_num_correct_drafts=None, spec_correct_drafts_histogram=None, spec_verify_ct=10)
    )
    reading = Reading(budget_file())
    await reading.read()
    assert reading.counter("verify_steps_total") == reading.counter("accepted_drafts_total") == {}
    assert sum(reading.counter("generated_tokens_total").values()) > 0


async def test_something_else_in_the_place_of_a_log_is_unreadable(
    budget_file: Callable[..., Path], requests: Path
) -> None:
    """A pipe is told, not read as a log in which nothing happens."""
    os.rmdir(requests)
    os.mkfifo(requests)
    with pytest.raises(SourceError) as failure:
        await Reading(budget_file()).read()
    assert failure.value.reason is ErrorReason.UNREADABLE


async def test_short_records_are_read_in_smaller_chunks(
    budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """The loop is left free as often for short records as for long ones."""
    (requests / "a.log").write_bytes(record_line() * 5000)
    reading = Reading(budget_file())
    whole = reading.loop.tail.chunk_bytes
    await reading.read()
    assert reading.records() == {"ok": 5000}
    assert ingest.MIN_CHUNK_BYTES <= reading.loop.tail.chunk_bytes < whole


async def test_outcomes_of_lines_count_each_line_once(
    budget_file: Callable[..., Path],
    requests: Path,
    record_line: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Torn lines are records, not requests; a blank line is neither."""
    good = record_line()
    (requests / "a.log").write_bytes(
        good + b"\n{}\n" + good[:50] + b"\n" + b"x" * 9000 + b"\n" + good[:90] + good + good[:20]
    )
    reading = Reading(budget_file())
    reading.loop.tail.max_line_bytes = reading.loop.tail.chunk_bytes = 4096
    for _ in range(3):
        await reading.read()
    assert reading.records() == {"ok": 2, "skipped": 1, "malformed": 2, "oversized": 1}
    assert reading.counter("slo_events_total") == {("request", "good", "default"): 2}
    assert reading.counter("slo_excluded_requests_total") == {}


async def test_adapters_choose_profiles(
    budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """By the request's own adapter; a prompt that names one changes nothing."""
    acceptance = {"target_length": 2.6, "profiles": {"code": {"match": {"adapter": "code-*"}, "target_length": 3.4}}}
    (requests / "a.log").write_bytes(
        record_line(parameters={"lora_path": "code-7"}, completion_tokens=200)
        + record_line(parameters={"text": '", "lora_path": "code-7"', "lora_path": None})
        + record_line(parameters={"lora_path": "prose"}, finish_reason=None, completion_tokens=...)
        + record_line()
    )
    reading = Reading(budget_file(budget={"acceptance": acceptance}))
    await reading.read()
    assert reading.records() == {"ok": 3, "skipped": 1}
    assert reading.counter("verify_steps_total") == {("0", "code"): 10, ("0", "default"): 20}
    assert reading.counter("slo_events_total") == {("request", "bad", "code"): 1, ("request", "good", "default"): 2}


async def test_old_records_enter_counters_but_no_rolling_window(
    budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """Names do not decide what is live: the record's own time does."""
    now = time.time()
    (requests / "sglang-request-metrics-20300101_00.log").write_bytes(record_line(request_finished_ts=now - 3700))
    (requests / "sglang-request-metrics-20200101_00.log").write_bytes(
        record_line(spec_num_correct_drafts=10, spec_correct_drafts_histogram=[5, 0, 5], request_finished_ts=now - 30)
    )
    reading = Reading(budget_file())
    await reading.read()
    assert reading.counter("verify_steps_total") == {("0", "default"): 20}
    assert reading.desk.book.rolling_length(Scope.REQUEST, 3600.0, now) == 2.0
    assert reading.counter("slo_events_total") == {
        ("request", "good", "default"): 1,
        ("request", "bad", "default"): 1,
    }


async def test_backlog_and_lag_show_while_catching_up_and_end(
    budget_file: Callable[..., Path],
    requests: Path,
    record_line: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is counted is published on the way; the loop is given back between chunks."""
    monkeypatch.setattr(ingest, "PUBLISH_BYTES", 4000)
    (requests / "a.log").write_bytes(b"".join(record_line(request_finished_ts=time.time() - 500) for _ in range(200)))
    seen: list[tuple[int, float]] = []

    def published() -> None:
        lags = reading.desk.lags
        seen.append((lags.backlog_bytes[Source.REQUEST_LOG], lags.lag_seconds[Source.REQUEST_LOG]))

    reading = Reading(budget_file(), published=published)
    reading.loop.tail.chunk_bytes = 2000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await reading.read()
    beside.cancel()
    assert turns > 20
    backlogs = [backlog for backlog, _ in seen]
    assert len(seen) > 10
    assert backlogs == sorted(backlogs, reverse=True)
    assert all(490 < lag < 600 for backlog, lag in seen if backlog)
    assert reading.desk.lags.backlog_bytes[Source.REQUEST_LOG] == 0
    assert reading.desk.lags.lag_seconds[Source.REQUEST_LOG] == 0.0


async def test_a_folder_that_is_missing_is_told_and_what_was_open_is_still_read(
    budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """The unread lines of a deleted folder count in the look that tells that it is gone."""
    reading = Reading(budget_file())
    (requests / "a.log").write_bytes(record_line())
    await reading.read()
    with (requests / "a.log").open("ab") as out:
        out.write(record_line())
    shutil.rmtree(requests)
    with pytest.raises(SourceError, match="not there") as raised:
        await reading.read()
    assert raised.value.reason == ErrorReason.MISSING
    assert reading.records() == {"ok": 2}


LARGEST = (1 << 31) - 1
HOSTILE = [
    {"spec_verify_ct": -LARGEST, "spec_num_correct_drafts": -LARGEST, "spec_num_proposed_drafts": -LARGEST},
    {"completion_tokens": -LARGEST, "dp_rank": -7},
    {"spec_cap_lens_histogram": [-LARGEST] * 5},
    {"spec_correct_drafts_histogram": [LARGEST] * 1024, "spec_cap_lens_histogram": [LARGEST] * 1024},
    {"dp_rank": LARGEST, "request_finished_ts": 1e300},
    {"request_finished_ts": -1e300},
    {"spec_correct_drafts_histogram": [-LARGEST, LARGEST, -LARGEST]},
]


@pytest.mark.parametrize("meta", HOSTILE)
async def test_no_counter_ever_goes_back(
    meta: dict[str, Any], budget_file: Callable[..., Path], requests: Path, record_line: Callable[..., bytes]
) -> None:
    """Whatever a record claims, and every window stays a number."""
    reading = Reading(budget_file())

    def counters() -> dict[tuple[str, tuple[str, ...]], float]:
        held = reading.desk.ledger.counters
        return {(name, labels): value for name, children in held.items() for labels, value in children.items()}

    (requests / "a.log").write_bytes(record_line())
    await reading.read()
    before = counters()
    (requests / "b.log").write_bytes(record_line(**meta))
    await reading.read()
    after = counters()
    assert [key for key, value in before.items() if after[key] < value] == []
    assert all(math.isfinite(value) and value >= 0 for value in after.values())
    assert reading.records() == {"ok": 2}
    length = reading.desk.book.rolling_length(Scope.REQUEST, 3600.0, time.time())
    assert length is not None
    assert math.isfinite(length)


async def test_many_small_records_beside_a_wide_one_cost_bounded_memory(
    budget_file: Callable[..., Path], requests: Path
) -> None:
    """Columns are made of a few thousand records at a time."""
    small = b'{"finish_reason":{"type":"stop"},"completion_tokens":9}\n'
    wide = b'{"finish_reason":{"type":"stop"},"spec_correct_drafts_histogram":[%s1]}\n' % (b"0," * 1023)
    (requests / "a.log").write_bytes(wide + small * 60_000)
    reading = Reading(budget_file())
    tracemalloc.start()
    await reading.read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.records() == {"ok": 60_001}
    assert peak < 150 << 20


async def test_batch_reports_count_once_per_rank(budget_file: Callable[..., Path], tmp_path: Path) -> None:
    """The first tensor-parallel rank speaks for all; what is no length or idle is none."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [
        f"[{stamp} DP0 TP0] Decode batch, #running-req: 4, accept len: 2.50",
        f"[{stamp} DP0 TP1] Decode batch, #running-req: 4, accept len: 2.50",
        f"[{stamp} DP1 TP0] Decode batch, #running-req: 4, accept len: 3.50",
        f"[{stamp} DP1 TP0] Decode batch, #running-req: 0, accept len: 3.50",
        f"[{stamp} DP0 TP0] Decode batch, #running-req: 4, accept len: 0.00",
        f"[{stamp} DP0 TP0] Decode batch, #running-req: 4, accept len: nan",
        f"[{stamp} DP0 TP0] Decode batch, #running-req: 4, accept len: inf",
        f"[{stamp} DP0 TP0] Decode batch, #running-req: nan, accept len: 2.00",
        f"[{stamp} DP0 TP0] Prefill batch, #new-seq: 1",
        "user text: accept len: 9.99",
    ]
    (tmp_path / "server.log").write_text("\n".join([*lines, "unfinished"]))
    reading = Reading(budget_file(engine={"server_log": "server.log"}, parallelism={"data": 2}), ServerLogLoop)
    await reading.read()
    histogram = reading.desk.ledger.histograms["batch_acceptance_length"]
    assert {labels: (sum(b.counts), b.sum) for labels, b in histogram.items()} == {("0",): (1, 2.5), ("1",): (1, 3.5)}
    assert reading.desk.book.rolling_length(Scope.BATCH, 60.0, time.time()) == 3.0
    assert reading.records() == {"ok": 7, "malformed": 1, "skipped": 2}
    assert reading.counter("source_errors_total")["server_log", "out_of_bounds"] == 2


async def test_the_first_tensor_rank_of_a_data_rank_need_not_be_0(
    budget_file: Callable[..., Path], tmp_path: Path
) -> None:
    """With attention data parallelism rank 1 of two is TP1 and logs alone; laid out anew after a start, TP0 does."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-01-10 08:00:00 DP0 TP0] Decode batch, #running-req: 3, accept len: 2.40, accept rate: 0.47\n"
        "[2026-01-10 08:00:00 DP1 TP1] Decode batch, #running-req: 3, #full token: 900, accept len: 2.40\n"
    )
    reading = Reading(budget_file(engine={"server_log": "server.log"}, parallelism={"data": 2}), ServerLogLoop)
    await reading.read()
    histogram = reading.desk.ledger.histograms["batch_acceptance_length"]
    assert {labels: (sum(b.counts), b.sum) for labels, b in histogram.items()} == {("0",): (1, 2.4), ("1",): (1, 2.4)}
    with log.open("a") as out:
        out.write(
            "[2026-01-10 09:00:00] server_args=ServerArgs(model_path='/models/target')\n"
            "[2026-01-10 09:05:00 DP1 TP1] Decode batch, #running-req: 3, accept len: 3.00\n"
            "[2026-01-10 09:05:00 DP1 TP0] Decode batch, #running-req: 3, accept len: 3.00\n"
        )
    await reading.read()
    assert (sum(histogram[("1",)].counts), histogram[("1",)].sum) == (2, 5.4)


async def test_access_lines_are_no_reports_and_say_so_once(
    budget_file: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Four requests and no decode report: no batch at all, and a hint once the engine itself says that it decodes."""
    (tmp_path / "server.log").write_text(
        "".join(
            f'[2026-03-04 09:00:0{second}] INFO:     10.9.0.7:50 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
            for second in (1, 4, 6, 9)
        )
    )
    reading = Reading(budget_file(engine={"server_log": "server.log"}), ServerLogLoop)
    view = reading.desk.view
    for passes in (1000.0, 1399.0, 1400.0, 9000.0):
        view.metrics = EngineReading(at=time.time(), ranks={"0": RankReading(decode_passes=passes)})
        reading.desk.health[Source.METRICS].succeeded(time.time(), 0.1)
        await reading.read()
    assert reading.records() == {"skipped": 4}
    assert sum(reading.desk.ledger.histograms["batch_acceptance_length"][("0",)].counts) == 0
    assert reading.desk.book.rolling_length(Scope.BATCH, 3600.0, time.time()) is None
    told = [record.getMessage() for record in caplog.records if "--decode-log-interval" in record.getMessage()]
    assert len(told) == 1
    assert "decode_passes_since=400" in told[0]


def stamp(at: float) -> str:
    """A log's prefix at that moment, in a zone of its own."""
    return time.strftime("[%Y-%m-%d %H:%M:%S] ", time.gmtime(at))


async def test_a_clock_that_is_ahead_is_told_once(
    budget_file: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine's host is 250 s ahead: said when the ready line is read, and the start is 200 s by its own log."""
    log = tmp_path / "server.log"
    log.touch()
    reading = Reading(budget_file(engine={"server_log": "server.log"}), ServerLogLoop)
    await reading.read()
    now = time.time()
    with log.open("a") as out:
        out.write(f"{stamp(now + 50)}server_args=ServerArgs(model_path='/models/target')\n")
        out.write(f"{stamp(now + 250)}The server is fired up and ready to roll!\n")
    for _ in range(3):
        await reading.read()
    told = [record.getMessage() for record in caplog.records if "clock" in record.getMessage()]
    assert len(told) == 1
    ahead = re.search(r"ahead_seconds=\+(\d+)", told[0])
    assert ahead is not None
    assert 247 <= int(ahead[1]) <= 250
    view = reading.desk.starts.latest(time.monotonic())
    assert view is not None
    assert view.start.cold_start_seconds in (199.0, 200.0, 201.0)
    assert reading.desk.starts.since_ready(time.monotonic()) < 20


async def test_starts_that_come_to_nothing_are_told_with_their_number(
    budget_file: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three attempts a quarter of an hour apart, none ready, 300 s into the third: two failed, and 2100 s in vain."""
    log, now = tmp_path / "server.log", time.time()
    begun = [now - 2100, now - 1200, now - 300]
    log.write_text("".join(f"{stamp(at)}server_args=ServerArgs(model_path='/models/target')\n" for at in begun))
    os.utime(log, (now - 300, now - 300))
    staging = {"staging": {"cold_start": "240s"}}
    reading = Reading(budget_file(engine={"server_log": "server.log"}, budget=staging), ServerLogLoop)
    await reading.read()
    reading.desk.count_starts()
    assert reading.counter("startups_total") == {("failed",): 2}
    view = reading.desk.starts.latest(time.monotonic())
    assert view is not None
    assert view.running_seconds == pytest.approx(300, abs=10)
    assert view.over_budget
    (told,) = [record.getMessage() for record in caplog.records if "begins again" in record.getMessage()]
    assert "attempts=3" in told
    seconds = re.search(r"seconds=(\d+)", told)
    assert seconds is not None
    assert int(seconds[1]) == pytest.approx(2100, abs=10)
