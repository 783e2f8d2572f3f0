"""Read the headers of all weight files of a folder into sums."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from specbudget.sources.checkpoint.bounded_file import printable
from specbudget.sources.checkpoint.model import CheckpointError, CheckpointProblem, ProblemKind
from specbudget.sources.checkpoint.tensor_header import FIRST_READ, iter_batches, read_header
from specbudget.sources.checkpoint.tensor_totals import TensorTotals
from specbudget.sources.checkpoint.weight_index import WeightFiles

Progress = Callable[[int, int], None]
"""Called with the number of weight files read so far and the number of all of them."""

Signature = tuple[int, int, int, int, int] | None

_SLOW_SECONDS = 0.002
"""A header that takes longer comes from a disk or a network, where several at a time come sooner."""
_TRIED = 8
_READERS = 8
_NAMED = 3


@dataclass(slots=True)
class Weights:
    """What the weight files of a folder say. `known` is True when tensors were read, all of them."""

    totals: TensorTotals
    disk_bytes: int | None = None
    present_bytes: int | None = None
    headers_digest: bytes | None = None
    missing: list[str] = field(default_factory=list)
    known: bool = False
    problems: list[CheckpointProblem] = field(default_factory=list)
    signatures: dict[str, Signature] = field(default_factory=dict)


def signature(folder: Path, name: str) -> Signature:
    """What tells a file from another one and from its own earlier state; None where there is none."""
    try:
        status = os.stat(os.path.join(folder, name))
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def read_weights(path: Path, files: WeightFiles, totals: TensorTotals, on_progress: Progress | None) -> Weights:
    """Read each header once, in the order of the names, so that the result never depends on timing."""
    weights = Weights(totals=totals, problems=list(files.problems))
    digest = hashlib.sha256()
    present, whole, disk_bytes = 0, True, 0
    missing: CheckpointProblem | None = None
    with _ReadAhead(path, list(files.files)) as ahead:
        for done, (name, expected) in enumerate(files.files.items(), start=1):
            # The signature is older than the reading: a file that changes meanwhile is read again next time.
            weights.signatures[name] = signature(path, name)
            try:
                header = read_header(path / name)
                digest.update(header.text)
                count = sum(totals.add(batch, header) for batch in iter_batches(header))
            except CheckpointError as error:
                whole = False
                if error.problem.kind is ProblemKind.MISSING:
                    weights.missing.append(name)
                    missing = missing or error.problem
                else:
                    weights.problems.append(error.problem)
            else:
                present += header.size - header.start
                disk_bytes += header.size
                if expected is not None and count != expected:
                    message = f"holds {count} tensors, while the index lists {expected}; download the checkpoint again"
                    problem = CheckpointProblem(file=path / name, message=message, kind=ProblemKind.MALFORMED)
                    weights.problems.append(problem)
            ahead.after(done)
            if on_progress is not None:
                on_progress(done, len(files.files))
    if files.files:
        weights.present_bytes = present
        weights.headers_digest = digest.digest() if whole else None
        weights.disk_bytes = disk_bytes if whole else None
    elif files.pickles:
        weights.disk_bytes = _pickle_bytes(path, files, weights)
    if missing is not None:
        weights.problems.insert(0, _all_missing(files, weights, missing))
    weights.known = bool(files.files) and not weights.problems
    return weights


def _pickle_bytes(path: Path, files: WeightFiles, weights: Weights) -> int | None:
    total = 0
    for name in files.pickles:
        found = weights.signatures[name] = signature(path, name)
        if found is None:
            return None
        total += found[3]
    return total


def _all_missing(files: WeightFiles, weights: Weights, first: CheckpointProblem) -> CheckpointProblem:
    """All missing files in one problem, with what is there of what the index declares."""
    names, declared, present = weights.missing, files.declared_bytes, weights.present_bytes or 0
    message = first.message
    if len(names) > 1:
        named = ", ".join(printable(name, 80) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        links = ", links that point to nothing" if os.path.islink(first.file) else ""
        message = f"{len(names)} of {len(files.files)} weight files are missing{links}: {named}{more}"
        message += "; download the checkpoint again"
    if declared is not None and present <= declared:
        message += f" ({present:,} of {declared:,} bytes of tensors are here, {100 * present / declared:.1f} %)"
    return CheckpointProblem(file=first.file, message=message, kind=ProblemKind.MISSING)


class _ReadAhead:
    """Brings headers into the page cache from several threads once reading them one by one proves slow.

    The threads only touch files; what counts is read afterwards, in order. A file that hangs holds up no end of
    process: the threads are daemons.
    """

    def __init__(self, folder: Path, names: list[str]) -> None:
        self._folder = folder
        self._left = iter(names[_TRIED:])
        self._lock = threading.Lock()
        self._start = time.perf_counter()

    def __enter__(self) -> _ReadAhead:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left = iter(())

    def after(self, done: int) -> None:
        """Called after each file; decides once."""
        if done == _TRIED and time.perf_counter() - self._start > _TRIED * _SLOW_SECONDS:
            for _ in range(_READERS):
                threading.Thread(target=self._touch, name="checkpoint-read-ahead", daemon=True).start()

    def _touch(self) -> None:
        while True:
            with self._lock:
                name = next(self._left, None)
            if name is None:
                return
            try:
                descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except (OSError, ValueError):
                continue
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    os.pread(descriptor, FIRST_READ, 0)
            except OSError:
                pass
            finally:
                os.close(descriptor)
