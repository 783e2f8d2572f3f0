"""Reference acceptance: what a bench or an earlier day measured, read from the file that `acceptance.reference` names.

Three forms are read: our own JSON with a length and quantiles per profile, the request records of an SGLang engine
(--export-metrics-to-file), which give exact shares, and the result lines of SGLang's bench_serving, which give a mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from specbudget.budget.acceptance import DEFAULT_PROFILE
from specbudget.budget.document import read_document, shown_key, validated
from specbudget.budget.model import Budget
from specbudget.budget.section import Length, Positive, Section
from specbudget.domain.reference_lengths import ReferenceLengths
from specbudget.errors import BudgetError, Problem

_RECORD_START = b'{"request_parameters"'
_CHUNK = 8 << 20
_LONGEST_LINE = 64 << 20
_MOST_BENCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Measured lengths by profile, and where they come from."""

    profiles: Mapping[str, ReferenceLengths]
    source: str

    def of(self, profile: str) -> ReferenceLengths | None:
        """The profile's own measurement, else that of all traffic."""
        return self.profiles.get(profile, self.profiles.get(DEFAULT_PROFILE))


class _Measured(Section):
    """One profile of our own form. `quantiles` maps a share of requests to the length that they stay below."""

    length: Length
    verify_steps: Positive | None = None
    quantiles: dict[Annotated[float, Field(gt=0, lt=1)], Length] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        points = sorted(self.quantiles.items())
        if [length for _, length in points] != sorted(length for _, length in points):
            raise ValueError("a larger share of requests cannot stay below a smaller length: correct the quantiles")
        return self


class _ReferenceFile(Section):
    """Our own form."""

    profiles: dict[str, _Measured] = Field(min_length=1)


def read_reference(path: Path, budget: Budget, *, served_model: str | None = None) -> Reference:
    """The reference in a file or folder; raises BudgetError, one Problem per fault.

    Of request records the valid events of the budget's SLO count, each under the profile that it matches.
    """
    try:
        files = _files(path)
        head = _head(files[0])
        if head.lstrip().startswith(_RECORD_START):
            return _from_records(files, budget, served_model)
        if b'"accept_length"' in head:
            return _from_bench(files[0])
        document = read_document(files[0], what="reference", begin="write `profiles: {default: {length: 4.2}}`")
    except OSError as error:
        raise BudgetError([Problem(str(path), None, "", f"cannot be read: {error.strerror or error}")]) from error
    measured = validated(_ReferenceFile, document)
    unknown = [name for name in measured.profiles if name not in budget.profile_names()]
    if unknown:
        known = ", ".join(budget.profile_names())
        line = document.lines.get(("profiles", unknown[0]))
        message = f"no profile of the budget, which has {known}"
        raise BudgetError([Problem(document.name, line, f"profiles.{shown_key(unknown[0])}", message)])
    return Reference(
        profiles={
            name: ReferenceLengths(
                length=each.length, verify_steps=each.verify_steps, quantiles=tuple(sorted(each.quantiles.items()))
            )
            for name, each in measured.profiles.items()
        },
        source=str(path),
    )


def _files(path: Path) -> list[Path]:
    """The file itself, or the records of a folder; an hour without requests leaves an empty one, which says nothing."""
    if not path.is_dir():
        if path.exists() and not path.is_file():
            raise BudgetError([Problem(str(path), None, "", "cannot be read: not a regular file")])
        return [path]
    files = [file for file in sorted(path.glob("*.log")) if file.is_file() and file.stat().st_size]
    if not files:
        raise BudgetError([Problem(str(path), None, "", "holds no request records (*.log)")])
    return files


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 20)


def _from_bench(path: Path) -> Reference:
    """bench_serving appends one JSON line per run, of which the last one counts; one run may be laid out in lines."""
    with path.open("rb") as file:
        content = file.read(_MOST_BENCH_BYTES)
    lines = [line for line in content.splitlines() if line.strip()]
    length = _accept_length(lines[-1])
    if length is None and len(lines) > 1:
        length = _accept_length(content)
    if isinstance(length, int | float) and not isinstance(length, bool) and length == 0:
        message = "0, so the bench ran without speculation: run it on an engine with --speculative-algorithm"
        raise BudgetError([Problem(str(path), len(lines), "accept_length", message)])
    if isinstance(length, bool) or not isinstance(length, int | float) or not 1 <= length <= 1024:
        raise BudgetError([Problem(str(path), len(lines), "accept_length", "should be a length of at least 1")])
    return Reference(profiles={DEFAULT_PROFILE: ReferenceLengths(length=float(length))}, source=str(path))


def _accept_length(text: bytes) -> object:
    """What a run says of its acceptance length; None where the text is no run."""
    try:
        return json.loads(text).get("accept_length")
    except (ValueError, AttributeError, RecursionError):
        return None


def _from_records(files: list[Path], budget: Budget, served_model: str | None) -> Reference:
    import numpy as np

    from specbudget.budget.slo_policy import slo_policy
    from specbudget.sources.sglang.request_log import decode_lines, to_batch

    names = budget.profile_names()
    places = {name: index for index, name in enumerate(names)}
    policy = slo_policy(budget)
    found: dict[int, tuple[list[float], int, int]] = {}
    for data in _chunks(files):
        columns = decode_lines(data, with_adapters=len(names) > 1)
        adapters = columns.adapters or [None] * len(columns.records)
        profiles = np.array([places[budget.profile_of(served_model, name)] for name in adapters], dtype=np.int64)
        batch = to_batch(columns, profiles=profiles, modified=0.0, engine_window=None)
        counts = ~batch.aborted & ~batch.inconsistent() & batch.has_steps()
        counts &= batch.output_tokens >= policy.request.min_output_tokens[batch.profile]
        lengths = batch.lengths()
        for index in np.unique(batch.profile[counts]):
            chosen = counts & (batch.profile == index)
            kept, steps, accepted = found.get(int(index), ([], 0, 0))
            kept.extend(lengths[chosen].tolist())
            found[int(index)] = (
                kept,
                steps + int(batch.steps[chosen].sum()),
                accepted + int(batch.accepted[chosen].sum()),
            )
    if not found:
        message = "holds no finished request with verify steps and enough output tokens: record healthy traffic"
        raise BudgetError([Problem(str(files[0]), None, "", message)])
    return Reference(
        profiles={
            names[index]: ReferenceLengths(
                length=1.0 + accepted / steps, verify_steps=steps, lengths=tuple(sorted(lengths))
            )
            for index, (lengths, steps, accepted) in found.items()
        },
        source=str(files[0] if len(files) == 1 else files[0].parent),
    )


def _chunks(files: list[Path]) -> Iterator[bytes]:
    """Whole lines of the files, some megabytes at a time; a line beyond 64 MiB is passed over."""
    for path in files:
        rest = b""
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                if newline:
                    yield whole
                elif len(rest) > _LONGEST_LINE:
                    rest = b""
        if rest:
            yield rest
