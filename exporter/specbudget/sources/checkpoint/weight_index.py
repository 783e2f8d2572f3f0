"""Which files hold the weights: the index and its shards, one file, or none."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

from specbudget.sources.checkpoint.bounded_file import failure, read_bounded
from specbudget.sources.checkpoint.flat_object import FlatObjectError, iter_entries
from specbudget.sources.checkpoint.kv_scale_names import is_kv_scale
from specbudget.sources.checkpoint.model import CheckpointError, CheckpointProblem, ProblemKind

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
LARGEST_INDEX = 128 * 2**20
MOST_FILES = 10_000
"""Published checkpoints stay under a few hundred shards; more than this many are not weights of one model."""

_PART_OF = re.compile(r"-(\d{1,6})-of-(\d{1,6})\.safetensors$")


class _Index(msgspec.Struct):
    weight_map: msgspec.Raw


@dataclass(slots=True)
class WeightFiles:
    """`files` holds name -> tensors the index puts there (None without an index), in name order.

    `index_digest` is a digest of the index as read; `listed` is True when the folder's listing decided the choice;
    `pickles` are the weights of a checkpoint that has no safetensors at all. `kv_scales` says whether the index names
    scales of a quantised KV; None without an index.
    """

    files: dict[str, int | None] = field(default_factory=dict)
    index_digest: bytes | None = None
    listed: bool = False
    pickles: tuple[str, ...] = ()
    kv_scales: bool | None = None
    problems: list[CheckpointProblem] = field(default_factory=list)


def find_weight_files(folder: Path) -> WeightFiles:
    """Choose the files that hold the weights, so that a second copy in the folder is never counted.

    An index decides alone: consolidated.safetensors, original/ and pytorch_model.bin beside it are copies.
    Then model.safetensors, then every other *.safetensors but consolidated ones, then consolidated ones.
    """
    found = WeightFiles()
    index = folder / INDEX_NAME
    if os.path.lexists(index):
        try:
            text = read_bounded(index, LARGEST_INDEX)
            found.index_digest = hashlib.sha256(text).digest()
            files, found.kv_scales = _read_weight_map(index, text)
            found.files = dict(sorted(files.items()))
        except CheckpointError as error:
            found.problems.append(error.problem)
        return found
    if os.path.lexists(folder / SINGLE_NAME):
        found.files = {SINGLE_NAME: None}
        return found
    found.listed = True
    try:
        names = _list_names(folder)
    except CheckpointError as error:
        found.problems.append(error.problem)
        return found
    tensors = [name for name in names if name.endswith(".safetensors")]
    chosen = [name for name in tensors if not name.startswith("consolidated")] or tensors
    found.files = dict.fromkeys(sorted(chosen))
    found.problems.extend(_missing_parts(folder, chosen))
    if not chosen:
        found.pickles = tuple(sorted(name for name in names if name.startswith("pytorch_model")))
        found.problems.extend(_pickle_problem(folder, found.pickles))
    return found


def _read_weight_map(path: Path, text: bytes) -> tuple[dict[str, int], bool]:
    counts: Counter[bytes] = Counter()
    scales = False
    try:
        # A view: the map of a large checkpoint has many megabytes.
        raw = memoryview(msgspec.json.decode(text, type=_Index).weight_map)
        for tensor, value in iter_entries(raw):
            counts[value] += 1
            scales = scales or is_kv_scale(tensor)
            if len(counts) > MOST_FILES:
                raise failure(path, ProblemKind.TOO_LARGE, f"names more than {MOST_FILES} files", key="weight_map")
        files = {msgspec.json.decode(value, type=str): count for value, count in counts.items()}
    except FlatObjectError as error:
        message = f"must map tensor names to file names: {error}"
        raise failure(path, ProblemKind.MALFORMED, message, key="weight_map") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"no valid weight index: {error}; download it again"
        raise failure(path, ProblemKind.MALFORMED, message) from error
    if not files:
        raise failure(path, ProblemKind.MALFORMED, "names no tensor; download the index again", key="weight_map")
    for name in files:
        _check_name(path, name)
    return files, scales


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name)
    inside = name and not pure.is_absolute() and ".." not in pure.parts and "\0" not in name
    if not inside or not name.endswith(".safetensors"):
        shown = "".join(char if char.isprintable() else "?" for char in name[:80])
        message = f"{shown!r} is no safetensors file inside the checkpoint; correct the index"
        raise failure(path, ProblemKind.MALFORMED, message, key="weight_map")


def _list_names(folder: Path) -> list[str]:
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((".safetensors", ".bin")):
                    names.append(entry.name)
                if len(names) > MOST_FILES:
                    raise failure(folder, ProblemKind.TOO_LARGE, f"holds more than {MOST_FILES} weight files")
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise failure(folder, ProblemKind.UNREADABLE, f"cannot be listed: {reason}") from error
    return names


def _missing_parts(folder: Path, names: list[str]) -> list[CheckpointProblem]:
    """Shards named NNNNN-of-MMMMM without an index still say how many there must be."""
    parts = [(name, match) for name in names if (match := _PART_OF.search(name))]
    totals = {int(match[2]) for _, match in parts}
    numbers = {int(match[1]) for _, match in parts}
    if len(totals) != 1 or len(numbers) == (total := totals.pop()):
        return []
    message = f"{len(numbers)} of {total} shards are here and there is no index; download the checkpoint again"
    return [CheckpointProblem(file=folder / INDEX_NAME, message=message, kind=ProblemKind.MISSING)]


def _pickle_problem(folder: Path, pickles: tuple[str, ...]) -> list[CheckpointProblem]:
    if not pickles:
        return []
    message = "pickled weights cannot be measured without running them; convert the checkpoint to safetensors"
    return [CheckpointProblem(file=folder / pickles[0], message=message, kind=ProblemKind.UNSUPPORTED)]
