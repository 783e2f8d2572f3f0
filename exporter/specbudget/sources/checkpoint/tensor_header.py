"""The header of a safetensors file: names, dtypes and shapes, with none of the data.

Format: eight bytes little-endian length, then a JSON object, then the data (huggingface/safetensors, README).
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from operator import sub
from pathlib import Path
from typing import Annotated

import msgspec

from specbudget.sources.checkpoint.bounded_file import failure, open_regular, printable
from specbudget.sources.checkpoint.coverage import Coverage
from specbudget.sources.checkpoint.flat_object import FlatObjectError, first_entry, iter_entries
from specbudget.sources.checkpoint.model import ProblemKind

LARGEST_HEADER = 100_000_000
"""The limit of the format's own implementation."""

_LENGTH_BYTES = 8
FIRST_READ = 2**14
"""Most headers of a model in many shards are shorter, so that one read fetches length and text."""
_PIECE = 2**18
"""Bytes of a header that become objects at a time."""
_BATCH = 1000
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
class Header:
    """The text of one file's header, the bytes of the file, and where its data begin."""

    path: Path
    text: bytes
    size: int

    @property
    def start(self) -> int:
        """Position of the first byte of data in the file."""
        return _LENGTH_BYTES + len(self.text)


@dataclass(slots=True)
class TensorBatch:
    """Tensors in header order, one list for each thing that is known of them.

    Names are text as the file has it: it may hold characters that a terminal would obey. `begins` and `ends` are
    byte positions in the data, `sizes` the bytes between them.
    """

    names: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


_decode_entry = msgspec.json.Decoder(_Entry).decode
_decode_entries = msgspec.json.Decoder(dict[str, _Entry]).decode
_decode_name = msgspec.json.Decoder(str).decode


def read_header(path: Path) -> Header:
    """The header's text, unread as yet. Raises CheckpointError."""
    with open_regular(path) as file:
        begin = file.at(0, FIRST_READ)
        if len(begin) < _LENGTH_BYTES:
            message = f"{file.size} bytes are no safetensors file; download it again"
            raise failure(path, ProblemKind.TRUNCATED, message)
        length = int.from_bytes(begin[:_LENGTH_BYTES], "little")
        if length > LARGEST_HEADER:
            message = f"the header claims {length} bytes, at most {LARGEST_HEADER} are allowed; download the file again"
            raise failure(path, ProblemKind.MALFORMED, message)
        text = begin[_LENGTH_BYTES : _LENGTH_BYTES + length]
        # The size is looked at first: a length that lies must not make anyone allocate what it claims.
        if len(text) < length <= file.size - _LENGTH_BYTES:
            text = file.whole_at(_LENGTH_BYTES, length)
        if len(text) < length:
            message = f"the file ends inside its header of {length} bytes; download it again"
            raise failure(path, ProblemKind.TRUNCATED, message)
        return Header(path, text, file.size)


def iter_batches(header: Header) -> Iterator[TensorBatch]:
    """Yield the tensors of one file, in header order; memory is bounded by the header's own bytes.

    That size, dtype and shape of a tensor agree is for `check_stored` to say. Raises CheckpointError for anything else
    that the format does not allow; tensors before it have been yielded.
    """
    covered = Coverage(header.size - header.start)
    position = _first_tensor(header.text)
    while position is not None:
        piece, after = _next_piece(header.text, position)
        batch = None if piece is None else _whole_batch(piece, header)
        if batch is None:
            break
        covered.add(batch.begins, batch.ends)
        yield batch
        if after is None:
            _check_covered(covered, header)
            return
        position = after
    # Whatever is unusual is walked entry by entry: slower, and exact about what is wrong and where.
    for batch in _careful_batches(header, position):
        covered.add(batch.begins, batch.ends)
        yield batch
    _check_covered(covered, header)


def _check_covered(covered: Coverage, header: Header) -> None:
    wrong = covered.first_wrong_byte()
    if wrong is not None:
        message = f"data from byte {header.start + wrong} on belong to two tensors or to none; download the file again"
        raise failure(header.path, ProblemKind.MALFORMED, message)


def _first_tensor(text: bytes) -> int | None:
    """Where the first tensor's entry begins, behind the metadata; None where the header begins in another way."""
    entry = first_entry(text) if text.isascii() else None
    if entry is None:
        return None
    if entry.key != b'"__metadata__"':
        return entry.start
    return entry.end if entry.after == b"," else None


def _next_piece(text: bytes, position: int) -> tuple[bytes | None, int | None]:
    """An object of the next entries, and where those behind it begin; no object where no entry ends in reach.

    A cut inside a string leaves it open, so that the piece is no JSON and is not taken for entries.
    """
    if len(text) - position <= _PIECE:
        return b"{" + text[position:], None
    cut = text.rfind(b"},", position, position + _PIECE)
    if cut < 0:
        return None, None
    return b"{" + text[position : cut + 1] + b"}", cut + 2


def _whole_batch(piece: bytes, header: Header) -> TensorBatch | None:
    """The tensors of a piece; None where one is no tensor or lies outside the file, or where there are none."""
    try:
        entries = _decode_entries(piece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not entries or "__metadata__" in entries:
        return None
    found = list(entries.values())
    offsets = [entry.data_offsets for entry in found]
    begins, ends = [pair[0] for pair in offsets], [pair[1] for pair in offsets]
    batch = TensorBatch(
        list(entries),
        [entry.dtype for entry in found],
        [entry.shape for entry in found],
        begins,
        ends,
        list(map(sub, ends, begins)),
    )
    return None if max(ends) > header.size - header.start else batch


def _careful_batches(header: Header, position: int | None) -> Iterator[TensorBatch]:
    """The tensors from `position` on, or all of them, walked entry by entry. Raises CheckpointError."""
    path, text = header.path, header.text
    _check_utf8(header)
    batch = TensorBatch()
    try:
        for raw_name, raw_entry in iter_entries(text, position):
            if raw_name == b'"__metadata__"':
                continue
            name, entry = _checked(header, raw_name, raw_entry)
            batch.names.append(name)
            batch.dtypes.append(entry.dtype)
            batch.shapes.append(entry.shape)
            batch.begins.append(entry.data_offsets[0])
            batch.ends.append(entry.data_offsets[1])
            batch.sizes.append(entry.data_offsets[1] - entry.data_offsets[0])
            if len(batch.names) == _BATCH:
                yield batch
                batch = TensorBatch()
    except FlatObjectError as error:
        message = f"the header is no table of tensors: {error}; download the file again"
        raise failure(path, ProblemKind.MALFORMED, message) from error
    if batch.names:
        yield batch


def _checked(header: Header, raw_name: bytes, raw_entry: bytes) -> tuple[str, _Entry]:
    path, size = header.path, header.size
    try:
        entry = _decode_entry(raw_entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"no valid tensor entry: {printable(str(error))}"
        raise failure(path, ProblemKind.MALFORMED, message, key=_shown(raw_name)) from error
    begin, end = entry.data_offsets
    stored = end - begin
    if header.start + end > size:
        message = f"its data ends at byte {header.start + end} of a file of {size} bytes; download the file again"
        raise failure(path, ProblemKind.TRUNCATED, message, key=_shown(raw_name))
    name = json_text(raw_name)
    check_stored(path, name, entry.dtype, entry.shape, stored)
    return name, entry


def check_stored(path: Path, name: str, dtype: str, shape: tuple[int, ...], stored: int) -> None:
    """Whether so many bytes can hold such a tensor. Raises CheckpointError.

    Who walks batches asks once for each kind of tensor: nearly all of a model are of a few kinds.
    """
    if not _fits(dtype, shape, stored) or len(name) > _LONGEST_NAME:
        message = f"{stored} bytes of data, dtype and shape {list(shape[:8])} do not fit; the header is damaged"
        raise failure(path, ProblemKind.MALFORMED, message, key=printable(name, 80))


def _fits(dtype: str, shape: tuple[int, ...], stored: int) -> bool:
    """Whether so many bytes can hold a tensor of this kind; of an unknown dtype only what no dtype could be."""
    bits, parameters = _BITS.get(dtype), prod(shape)
    if bits is not None:
        return (parameters * bits + 7) // 8 == stored
    return stored >= 0 and parameters <= 8 * stored and dtype.isidentifier() and len(dtype) <= _LONGEST_DTYPE


def _check_utf8(header: Header) -> None:
    """Piece by piece, so that the text is not there twice. Raises CheckpointError."""
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(header.text), _PIECE):
        try:
            decoder.decode(header.text[start : start + _PIECE], final=start + _PIECE >= len(header.text))
        except UnicodeDecodeError as error:
            message = f"the header is not UTF-8 near byte {start + error.start}; download the file again"
            raise failure(header.path, ProblemKind.MALFORMED, message) from error


def json_text(raw: bytes) -> str:
    """A JSON string that is known to be UTF-8; one with escapes that mean no text is shown as it stands."""
    try:
        return _decode_name(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")


def _shown(raw_name: bytes) -> str:
    return printable(raw_name[:80].decode("utf-8", "replace").strip('"'), 80)
