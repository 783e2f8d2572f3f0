"""The header of a safetensors file: names, dtypes and shapes, with none of the data.

Format: eight bytes little-endian length, then a JSON object, then the data (huggingface/safetensors, README).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated

import msgspec

from specbudget.sources.checkpoint.bounded_file import failure, open_regular
from specbudget.sources.checkpoint.flat_object import FlatObjectError, iter_entries
from specbudget.sources.checkpoint.model import ProblemKind

LARGEST_HEADER = 100_000_000
"""The limit of the format's own implementation."""

_LENGTH_BYTES = 8
_LARGEST_RANK = 64
_LARGEST_SIZE = 2**62
_LONGEST_NAME = 4096
_LONGEST_DTYPE = 32
_BITS = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
}


_Size = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_SIZE)]


class _Entry(msgspec.Struct, gc=False):
    dtype: str
    shape: Annotated[tuple[_Size, ...], msgspec.Meta(max_length=_LARGEST_RANK)]
    data_offsets: tuple[_Size, _Size]


@dataclass(slots=True)
class Tensor:
    """One tensor; `begin` and `end` are byte positions in the file, `raw_name` is JSON with its quotes."""

    raw_name: bytes
    dtype: str
    shape: tuple[int, ...]
    parameters: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name as text."""
        return json_text(self.raw_name)


_decode_entry = msgspec.json.Decoder(_Entry).decode
_decode_name = msgspec.json.Decoder(str).decode


def json_text(raw: bytes) -> str:
    """A JSON string that is known to be UTF-8; one with escapes that mean no text is shown as it stands."""
    try:
        return _decode_name(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")


def iter_tensors(path: Path) -> Iterator[Tensor]:
    """Yield the tensors of one file, in header order; memory is bounded by the header's own bytes.

    Raises CheckpointError for anything that the format does not allow; tensors before it have been yielded.
    """
    text, size = _read_header(path)
    start = _LENGTH_BYTES + len(text)
    left = size - start
    try:
        for raw_name, raw_entry in iter_entries(text):
            if raw_name == b'"__metadata__"':
                continue
            tensor = _tensor(path, raw_name, raw_entry, start, size)
            left -= tensor.end - tensor.begin
            if left < 0:
                message = "its data overlaps that of other tensors; the header is damaged"
                raise failure(path, ProblemKind.MALFORMED, message, key=readable_name(raw_name))
            yield tensor
    except FlatObjectError as error:
        message = f"the header is no table of tensors: {error}; download the file again"
        raise failure(path, ProblemKind.MALFORMED, message) from error


def _read_header(path: Path) -> tuple[bytes, int]:
    """The header's text and the size of the file."""
    with open_regular(path) as file:
        prefix = file.read(_LENGTH_BYTES)
        if len(prefix) < _LENGTH_BYTES:
            message = f"{file.size} bytes are no safetensors file; download it again"
            raise failure(path, ProblemKind.TRUNCATED, message)
        length = int.from_bytes(prefix, "little")
        if length > LARGEST_HEADER:
            message = f"the header claims {length} bytes, at most {LARGEST_HEADER} are allowed; download the file again"
            raise failure(path, ProblemKind.MALFORMED, message)
        text = file.read(length)
        if len(text) < length:
            message = f"the file ends inside its header of {length} bytes; download it again"
            raise failure(path, ProblemKind.TRUNCATED, message)
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the header is not UTF-8 at byte {error.start}; download the file again"
        raise failure(path, ProblemKind.MALFORMED, message) from error
    return text, file.size


def _tensor(path: Path, raw_name: bytes, raw_entry: bytes, start: int, size: int) -> Tensor:
    try:
        entry = _decode_entry(raw_entry)
    except msgspec.DecodeError as error:
        message = f"no valid tensor entry: {error}"
        raise failure(path, ProblemKind.MALFORMED, message, key=readable_name(raw_name)) from error
    begin, end = entry.data_offsets
    dtype, parameters = entry.dtype, prod(entry.shape)
    bits = _BITS.get(dtype)
    stored = end - begin
    if start + end > size:
        message = f"its data ends at byte {start + end} of a file of {size} bytes; download the file again"
        raise failure(path, ProblemKind.TRUNCATED, message, key=readable_name(raw_name))
    fits = (
        (parameters * bits + 7) // 8 == stored
        if bits is not None
        else parameters <= 8 * stored and dtype.isidentifier()
    )
    if stored < 0 or not fits or len(raw_name) > _LONGEST_NAME or len(dtype) > _LONGEST_DTYPE:
        message = f"{stored} bytes of data, dtype and shape {list(entry.shape[:8])} do not fit; the header is damaged"
        raise failure(path, ProblemKind.MALFORMED, message, key=readable_name(raw_name))
    return Tensor(raw_name, dtype, entry.shape, parameters, start + begin, start + end)


def readable_name(raw_name: bytes) -> str:
    """A name for people: cut to a bearable length, with nothing in it that a terminal would obey."""
    text = raw_name[:80].decode("utf-8", "replace").strip('"')
    return "".join(char if char.isprintable() else "?" for char in text)
