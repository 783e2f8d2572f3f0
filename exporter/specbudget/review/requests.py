"""Reads the records of single requests of a stretch from an engine's request log, plain or gzipped, rotated or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from specbudget.domain.requests import UNKNOWN, RequestBatch
from specbudget.errors import SpecbudgetError
from specbudget.review.request_evidence import RequestEvidence, ServedRequest, evidence_of
from specbudget.sources.sglang.request_log import MAX_COUNT, decode_lines, to_batch

CHUNK = 8 << 20
MOST_REQUESTS = 2_000_000
"""Requests that are looked at; beyond that a sample of them says the same."""


class RequestsError(SpecbudgetError):
    """The folder of records cannot be read."""


def read_requests(folder: Path, start: float, end: float) -> RequestEvidence:
    """The evidence of the requests that finished in the stretch. No byte of a prompt is kept. Raises RequestsError."""
    if not folder.is_dir():
        raise RequestsError(f"--requests {folder}: no such folder: give the one of --export-metrics-to-file-dir")
    whole = RequestEvidence()
    for file in sorted(folder.iterdir()):
        # a file that was written to for the last time before the stretch holds none of its requests
        if not file.is_file() or file.stat().st_mtime < start:
            continue
        for requests in _of_file(file):
            whole += evidence_of([r for r in requests if r.finished_at is None or start <= r.finished_at <= end])
            if whole.requests >= MOST_REQUESTS:
                return whole
    return whole


def _of_file(file: Path) -> Iterator[list[ServedRequest]]:
    modified = file.stat().st_mtime
    rest = b""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                lines, separator, tail = (rest + chunk).rpartition(b"\n")
                rest = tail if len(tail) <= CHUNK else b""
                if separator:
                    yield list(_served(lines + separator, modified))
        yield list(_served(rest, modified))
    except (OSError, EOFError, zlib.error) as error:
        raise RequestsError(f"--requests {file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _served(data: bytes, modified: float) -> Iterator[ServedRequest]:
    columns = decode_lines(data)
    if not columns.records:
        return
    batch: RequestBatch = to_batch(columns, profiles=0, modified=modified, engine_window=None)
    steps = np.where(batch.has_histogram(), batch.histogram.sum(axis=1), batch.steps)
    lengths = batch.lengths()
    for place in np.flatnonzero(~batch.aborted).tolist():
        counted = float(steps[place])
        has_length = not np.isnan(lengths[place])
        yield ServedRequest(
            prompt_tokens=_known(batch.prompt_tokens[place]),
            cached_tokens=_known(batch.cached_tokens[place]),
            output_tokens=_known(batch.output_tokens[place]),
            steps=counted if has_length else 0.0 if counted in (0.0, float(UNKNOWN)) else None,
            accepted=(float(lengths[place]) - 1.0) * counted if has_length else None,
            finished_at=None if np.isnan(batch.finished_at[place]) else float(batch.finished_at[place]),
        )


def _known(value: np.int64) -> float | None:
    return float(value) if 0 <= value < MAX_COUNT else None
