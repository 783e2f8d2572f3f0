"""The map from a reduced draft vocabulary to the target's, from its two small tensors."""

from __future__ import annotations

import numpy as np

from specbudget.domain.codesign import VocabularyMap
from specbudget.sources.checkpoint import Checkpoint
from specbudget.sources.checkpoint.index_tensor import read_index_tensor
from specbudget.sources.checkpoint.model import CheckpointError

_LARGEST_TOKEN = 2**40


def read_vocabulary_map(checkpoint: Checkpoint) -> VocabularyMap | None:
    """What d2t and t2d say together; None without a d2t, or when it cannot be read as an index."""
    mark = checkpoint.landmark("d2t")
    if mark is None:
        return None
    try:
        offsets = read_index_tensor(mark)
    except CheckpointError:
        return None
    if offsets.size == 0 or int(np.abs(offsets).max()) > _LARGEST_TOKEN:
        return None
    tokens = offsets + np.arange(offsets.size)
    falls = np.flatnonzero(np.diff(tokens) <= 0)
    worst = None
    if falls.size:
        index = int(falls[0]) + 1
        worst = (index, int(tokens[index - 1]), int(tokens[index]))
    flags, flagged, agrees = _flags(checkpoint, tokens)
    return VocabularyMap(
        rows=int(offsets.size),
        least=int(tokens.min()),
        most=int(tokens.max()),
        distinct=int(np.unique(tokens).size),
        worst=worst,
        flags=flags,
        flagged=flagged,
        agrees=agrees,
    )


def _flags(checkpoint: Checkpoint, tokens: np.typing.NDArray[np.int64]) -> tuple[int | None, int | None, bool | None]:
    mark = checkpoint.landmark("t2d")
    if mark is None:
        return None, None, None
    try:
        marked = read_index_tensor(mark)
    except CheckpointError:
        return None, None, None
    return marked.size, int(np.count_nonzero(marked)), np.array_equal(np.flatnonzero(marked), np.unique(tokens))
