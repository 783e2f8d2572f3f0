"""The content of small index tensors, such as d2t and t2d: the only weights that are ever read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specbudget.sources.checkpoint.bounded_file import failure, open_regular
from specbudget.sources.checkpoint.model import Landmark, ProblemKind

LARGEST_INDEX_TENSOR = 16 * 2**20

_DTYPES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "BOOL": "u1", "U8": "u1"}


def read_index_tensor(mark: Landmark) -> NDArray[np.int64]:
    """A one-dimensional tensor of whole numbers or flags, as whole numbers. Raises CheckpointError.

    At most LARGEST_INDEX_TENSOR bytes; a larger one, or one of another dtype or shape, is no index.
    """
    dtype, size = _DTYPES.get(mark.dtype), mark.end - mark.begin
    if size > LARGEST_INDEX_TENSOR:
        message = f"{size} bytes, while at most {LARGEST_INDEX_TENSOR} of an index are read"
        raise failure(mark.file, ProblemKind.TOO_LARGE, message, key=mark.name)
    if dtype is None or len(mark.shape) != 1 or mark.shape[0] * np.dtype(dtype).itemsize != size:
        message = f"dtype {mark.dtype} and shape {list(mark.shape[:8])} are those of no index"
        raise failure(mark.file, ProblemKind.MALFORMED, message, key=mark.name)
    with open_regular(mark.file) as file:
        data = file.at(mark.begin, size)
    if len(data) < size:
        message = f"its data ends after {len(data)} of {size} bytes; download the file again"
        raise failure(mark.file, ProblemKind.TRUNCATED, message, key=mark.name)
    return np.frombuffer(data, dtype=dtype).astype(np.int64)
