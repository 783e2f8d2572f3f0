"""Samples of many series over a stretch of time as one packed block, and back, bit for bit.

Most columns of a stretch are constant or counts that grow by little: a column is kept as one value, as whole
differences in the narrowest width, or as the bits that changed from one value to the next, bytes of equal weight side
by side; zlib does the rest.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec
import numpy as np

from specbudget.domain.acceptance import Floats

LEVEL = 6
_WHOLE = float(1 << 53)
"""Beyond this a number of eight bytes does not tell whole numbers apart."""
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")


class BlockError(ValueError):
    """A block cannot be unpacked: its bytes are damaged."""


class _Column(msgspec.Struct, array_like=True):
    """`form` 0: one value (8 bytes); 1-4: first value (8 bytes), then differences of that width; 5: changed bits.

    `missing` are the bits of the rows without a sample; empty where there are none.
    """

    series: int
    form: int
    missing: bytes
    data: bytes


class _Block(msgspec.Struct, array_like=True):
    rows: int
    times: bytes
    columns: list[_Column]


def pack(times_ms: np.ndarray, columns: Mapping[int, Floats]) -> bytes:
    """A block of the columns by series number. `times_ms` are whole milliseconds since the epoch, ascending.

    A column of nothing but NaN is left out.
    """
    packed = [_packed(series, values) for series, values in columns.items() if not np.isnan(values).all()]
    times = np.diff(times_ms.astype("<i8"), prepend=0).astype("<i8")
    block = _Block(rows=len(times_ms), times=_side_by_side(times), columns=packed)
    return zlib.compress(msgspec.msgpack.encode(block), LEVEL)


def unpack(data: bytes, wanted: frozenset[int] | None = None) -> tuple[np.ndarray, dict[int, Floats]]:
    """Times in milliseconds and the columns of the wanted series, or of all; BlockError when it is damaged."""
    try:
        block = msgspec.msgpack.decode(zlib.decompress(data), type=_Block)
        times = np.cumsum(_one_by_one(block.times, "<i8", block.rows))
        columns = {
            column.series: _unpacked(column, block.rows)
            for column in block.columns
            if wanted is None or column.series in wanted
        }
    except (zlib.error, msgspec.DecodeError, msgspec.ValidationError, ValueError, IndexError) as error:
        raise BlockError(f"a block cannot be unpacked: {type(error).__name__}") from error
    return times, columns


def _packed(series: int, values: Floats) -> _Column:
    gone = np.isnan(values)
    missing = b""
    if gone.any():
        missing = np.packbits(gone).tobytes()
        values = values[~gone]
    if (values == values[0]).all() and not (values[0] == 0 and np.signbit(values).any()):
        return _Column(series, 0, missing, values[:1].astype("<f8").tobytes())
    # "equal" says nothing of the sign of a zero, and infinities have no differences
    whole = np.isfinite(values).all() and (values == np.trunc(values)).all() and np.abs(values).max() < _WHOLE
    if whole and not np.signbit(values[values == 0]).any():
        numbers = values.astype(np.int64)
        steps = np.diff(numbers)
        for form, width in enumerate(_WIDTHS, 1):
            narrow = steps.astype(width)
            if (narrow == steps).all():
                return _Column(series, form, missing, numbers[:1].astype("<i8").tobytes() + _side_by_side(narrow))
    bits = values.astype("<f8").view("<u8")
    changed = bits ^ np.append(np.zeros(1, dtype="<u8"), bits[:-1])
    return _Column(series, 5, missing, _side_by_side(changed))


def _unpacked(column: _Column, rows: int) -> Floats:
    gone = np.zeros(rows, dtype=np.bool_)
    if column.missing:
        gone = np.unpackbits(np.frombuffer(column.missing, dtype=np.uint8), count=rows).astype(np.bool_)
    count = int(rows - gone.sum())
    if column.form == 0:
        known = np.full(count, np.frombuffer(column.data, dtype="<f8", count=1)[0])
    elif column.form < 5:
        first = np.frombuffer(column.data, dtype="<i8", count=1)
        steps = _one_by_one(column.data[8:], _WIDTHS[column.form - 1], count - 1)
        known = np.cumsum(np.append(first, steps.astype(np.int64))).astype(np.float64)
    else:
        changed = _one_by_one(column.data, "<u8", count)
        known = np.bitwise_xor.accumulate(changed).view("<f8")
    values: Floats = np.full(rows, np.nan)
    values[~gone] = known
    return values


def _side_by_side(numbers: np.ndarray) -> bytes:
    """Bytes of equal weight together: those that hardly change become long runs."""
    return numbers.view(np.uint8).reshape(len(numbers), numbers.itemsize).T.tobytes()


def _one_by_one(data: bytes, kind: str, count: int) -> np.ndarray:
    size = np.dtype(kind).itemsize
    return np.frombuffer(data, dtype=np.uint8).reshape(size, count).T.copy().view(kind).reshape(count)
