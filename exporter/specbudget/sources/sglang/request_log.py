"""Reads SGLang's per-request records (--export-metrics-to-file): JSON lines with the prompt in front.

A record begins with `request_parameters`, a JSON string that holds the user's text, and goes on with meta_info,
whose first key is `id` (observability/request_metrics_exporter.py). Only that tail is decoded, so that neither
the cost nor the memory depends on the prompt, and no byte of it is ever turned into an object. A line of another
shape is decoded whole, by the same typed decoder, which skips what it does not name.

Several tokenizer workers, or an engine that died in the middle of a line, leave records glued together: where a
record begins inside a line, the line is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from specbudget.domain.acceptance import Ints, histogram_accepted, histogram_steps
from specbudget.domain.requests import UNKNOWN, RequestBatch
from specbudget.sources.sglang.lenient_json import decode_leniently

START_MARK = b'{"request_parameters": "'
"""Starts a record. Inside a JSON string its quotes would be escaped, so a match is always a start."""

RID_START = START_MARK + b'{\\"rid\\": \\"'
"""Starts a record of which the request's id is the first parameter, as SGLang writes it."""

ID_BYTES = 16
"""An id of fewer bytes may well be that of another record too."""

TAIL_MARK = b'", "id": '
"""Ends the string of the user's text and starts the tail; by its quotes never inside a string."""

MAX_COUNT = 1 << 31
MAX_POSITIONS = 1024

# counts that no request has would overflow the columns or the memory: such a record is malformed
_Count = Annotated[int, msgspec.Meta(gt=-MAX_COUNT, lt=MAX_COUNT)]
_Histogram = Annotated[list[_Count], msgspec.Meta(max_length=MAX_POSITIONS)]


class _FinishReason(msgspec.Struct, gc=False):
    type: str = ""


class _Record(msgspec.Struct, gc=False):
    """The keys that are read; all others are skipped unread. Absent and null are None."""

    finish_reason: _FinishReason | None = None
    completion_tokens: _Count | None = None
    dp_rank: _Count | None = None
    spec_verify_ct: _Count | None = None
    spec_num_correct_drafts: _Count | None = None
    spec_num_proposed_drafts: _Count | None = None
    spec_correct_drafts_histogram: _Histogram | None = None
    spec_cap_lens_histogram: _Histogram | None = None
    prompt_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    e2e_latency: float | None = None
    request_finished_ts: float | None = None
    response_sent_to_client_ts: float | None = None


class _WithParameters(msgspec.Struct, gc=False):
    request_parameters: str = ""


class _Parameters(msgspec.Struct, gc=False):
    lora_path: str | None = None


_decode = msgspec.json.Decoder(_Record).decode
_decode_string = msgspec.json.Decoder(str).decode
_decode_with_parameters = msgspec.json.Decoder(_WithParameters).decode
_decode_parameters = msgspec.json.Decoder(_Parameters).decode


@dataclass(slots=True)
class Outcomes:
    """What became of the lines of a chunk."""

    ok: int = 0
    skipped: int = 0
    malformed: int = 0


@dataclass(slots=True)
class RecordColumns:
    """Collects decoded records; `batch` turns them into columns.

    `adapters` is filled only on request, since the adapter's name stands among the user's parameters.
    """

    records: list[_Record] = field(default_factory=list)
    adapters: list[str | None] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=Outcomes)

    def parts(self, count: int) -> Iterator[RecordColumns]:
        """At most `count` records at a time: one record with many positions widens the rows of all beside it."""
        for start in range(0, len(self.records), count):
            yield RecordColumns(self.records[start : start + count], self.adapters[start : start + count])


def decode_lines(data: bytes, end: int | None = None, *, with_adapters: bool = False) -> RecordColumns:
    """Decodes the complete lines of `data[:end]`. Of a line that cannot be read nothing is kept but its count."""
    columns = RecordColumns()
    keep, outcomes = columns.records.append, columns.outcomes
    start, end = 0, len(data) if end is None else end
    line_end = -1
    while start < end:
        record: _Record | None = None
        whole_line = start > line_end
        if whole_line:
            line_end = data.find(b"\n", start, end)
            if line_end < 0:
                line_end = end
        stop, following = line_end, line_end + 1
        # what follows a cut is searched only up to the next one: a line of many starts is still read once
        mark = data.rfind(TAIL_MARK, start, stop) if whole_line and data.startswith(START_MARK, start) else -1
        if not _is_one(data, start, mark):
            glued = data.find(START_MARK, start + 1, stop)
            if glued >= 0:
                stop = following = glued
            if data.startswith(START_MARK, start):
                mark = data.rfind(TAIL_MARK, start, stop)
        if mark >= 0:
            try:
                record = _decode(b"{" + data[mark + 3 : stop])
            except (msgspec.DecodeError, RecursionError):
                record = None
        if record is None or record.finish_reason is None:
            record = _otherwise(data, start, mark, stop)
        if record is None:
            # a blank line is no torn record
            if data[start:stop].strip():
                outcomes.malformed += 1
        elif record.completion_tokens is None and record.finish_reason is None:
            outcomes.skipped += 1
        else:
            keep(record)
            if with_adapters:
                columns.adapters.append(_adapter(data, start, mark, stop))
        start = following
    outcomes.ok = len(columns.records)
    return columns


def _is_one(data: bytes, start: int, mark: int) -> bool:
    """True when the line surely holds one record: the id behind the prompt is the id in front of it.

    A torn record with another behind it on the same line has two. Looking for a second start costs a scan of the
    whole prompt, so it is done only where this does not settle it.
    """
    if mark < 0:
        return False
    first, last = start + len(RID_START), mark + len(TAIL_MARK) + 1
    end = data.find(b'"', last)
    return end - last >= ID_BYTES and data.startswith(data[last:end] + b"\\", first)


def _otherwise(data: bytes, start: int, mark: int, stop: int) -> _Record | None:
    """A record of another shape, or with what the engine's writer lets pass and JSON does not know."""
    record = decode_leniently(_decode, b"{" + data[mark + 3 : stop]) if mark >= 0 else None
    if record is None or record.finish_reason is None:
        record = decode_leniently(_decode, data[start:stop])
    return record


def _adapter(data: bytes, start: int, mark: int, stop: int) -> str | None:
    """The adapter that the request asked for; None without one, or when it cannot be read."""
    try:
        text = _decode_string(data[start + len(START_MARK) - 1 : mark + 1]) if mark >= 0 else None
    except msgspec.DecodeError:
        text = None  # the mark was that of a nested key
    if text is None:
        whole = decode_leniently(_decode_with_parameters, data[start:stop])
        text = "" if whole is None else whole.request_parameters
    found = decode_leniently(_decode_parameters, text.encode(errors="replace"))
    return None if found is None else found.lora_path


def to_batch(
    columns: RecordColumns,
    *,
    profiles: Ints | int,
    modified: float,
    engine_window: int | None,
    adaptive: bool = False,
) -> RequestBatch:
    """Columns of the decoded records.

    `profiles` is the profile index of each record, or one for all. `modified` stands in for the finish time that
    records lack without --enable-metrics. `engine_window` is the engine's verify window now; None where it is
    unknown, then a record's own counts give it: proposed = steps × (window − 1). With an `adaptive` window neither
    holds for the whole of a request: the record computes with the window of the launch, and nothing bounds a step.
    """
    records = columns.records
    n = len(records)
    histogram = _matrix([r.spec_correct_drafts_histogram for r in records])

    def column(name: str) -> Ints:
        values = [getattr(record, name) for record in records]
        return np.array([UNKNOWN if value is None else value for value in values], dtype=np.int64)

    steps, proposed = column("spec_verify_ct"), column("spec_num_proposed_drafts")
    if engine_window is not None or adaptive:
        window = np.full(n, UNKNOWN if engine_window is None else engine_window, dtype=np.int64)
    else:
        window = np.where((steps > 0) & (proposed >= 0), proposed // np.maximum(steps, 1) + 1, UNKNOWN)
    return RequestBatch(
        finished_at=np.array(
            [r.request_finished_ts or r.response_sent_to_client_ts or modified for r in records], dtype=np.float64
        ),
        output_tokens=column("completion_tokens"),
        prompt_tokens=column("prompt_tokens"),
        cached_tokens=column("cached_tokens"),
        aborted=np.array([r.finish_reason is None or r.finish_reason.type == "abort" for r in records], dtype=np.bool_),
        steps=steps,
        accepted=_accepted(column("spec_num_correct_drafts"), steps, histogram),
        proposed=_proposed_as_scheduled(records, proposed),
        window=window,
        bound=np.full(n, UNKNOWN, dtype=np.int64) if adaptive else window,
        rank=np.maximum(column("dp_rank"), 0),
        profile=np.broadcast_to(np.asarray(profiles, dtype=np.int64), (n,)).copy(),
        histogram=histogram,
    )


def _accepted(told: Ints, steps: Ints, histogram: Ints) -> Ints:
    """Accepted drafts; where only the histogram tells them, and counts the same steps, its sum."""
    known = (told != UNKNOWN) | (steps <= 0) | (histogram_steps(histogram) != steps)
    return np.where(known, told, histogram_accepted(histogram))


def _proposed_as_scheduled(records: list[_Record], proposed: Ints) -> Ints:
    """Drafts really sent to verification.

    The record's own number is steps × (window − 1) of the static configuration; where DSpark capped the window,
    the histogram of scheduled windows (bonus slot included) says how many drafts there were.
    """
    capped = _matrix([r.spec_cap_lens_histogram for r in records])
    if not capped.shape[1]:
        return proposed
    drafts = np.maximum(np.arange(capped.shape[1], dtype=np.int64) - 1, 0)
    return np.where(capped.any(axis=1), capped @ drafts, proposed)


def _matrix(rows: list[list[int] | None]) -> Ints:
    """Ragged rows as one matrix, padded with zeros; None is a row of zeros."""
    sizes = np.array([len(row) if row else 0 for row in rows], dtype=np.int64)
    width = int(sizes.max(initial=0))
    matrix = np.zeros((len(rows), width), dtype=np.int64)
    if width:
        matrix[np.arange(width) < sizes[:, None]] = [value for row in rows if row for value in row]
    return matrix
