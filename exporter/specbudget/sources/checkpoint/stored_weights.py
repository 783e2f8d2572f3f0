"""What lies in a checkpoint folder beside and short of the weights that are loaded: for people who must tidy it up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from specbudget.sources.checkpoint.bounded_file import read_bounded
from specbudget.sources.checkpoint.model import CheckpointError
from specbudget.sources.checkpoint.tensor_header import iter_tensors
from specbudget.sources.checkpoint.weight_index import INDEX_NAME, LARGEST_INDEX, MOST_FILES, find_weight_files

_WEIGHTS = (".safetensors", ".pth", ".pt", ".gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWeights:
    """`named` files are loaded; `ignored` ones are copies in other formats that are not.

    `tensor_bytes` are those of the named files that can be read, `declared_bytes` what the index says they come to;
    both None where nobody asked or nothing says it.
    """

    named: int = 0
    ignored: tuple[str, ...] = ()
    tensor_bytes: int | None = None
    declared_bytes: int | None = None

    @property
    def present_share(self) -> float | None:
        """The part of the declared tensors that is here; None where that is not known or cannot be."""
        if self.tensor_bytes is None or not self.declared_bytes or self.tensor_bytes > self.declared_bytes:
            return None
        return self.tensor_bytes / self.declared_bytes


class _Metadata(msgspec.Struct):
    total_size: int | None = None


class _Index(msgspec.Struct):
    metadata: _Metadata | None = None


def stored_weights(folder: Path, *, measured: bool) -> StoredWeights:
    """Reads the folder's listing; with `measured` also the headers of the named files. Never raises for content."""
    files = find_weight_files(folder)
    chosen = {*files.files, *files.pickles}
    return StoredWeights(
        named=len(chosen),
        ignored=tuple(sorted(name for name in _weight_files(folder) if name not in chosen)) if chosen else (),
        tensor_bytes=sum(_tensor_bytes(folder / name) for name in files.files) if measured else None,
        declared_bytes=_declared(folder / INDEX_NAME) if measured else None,
    )


def _weight_files(folder: Path) -> Iterator[str]:
    """Names of weight files in the folder and one level below, as far as it can be listed."""
    left = MOST_FILES
    for inner in ("", *_folders(folder)):
        for name, is_folder in _listed(folder / inner):
            left -= 1
            if left < 0:
                return
            pickled = name.startswith("pytorch_model") and name.endswith(".bin")
            if not is_folder and (pickled or name.endswith(_WEIGHTS)):
                yield f"{inner}/{name}" if inner else name


def _folders(folder: Path) -> list[str]:
    return [name for name, is_folder in _listed(folder) if is_folder and not name.startswith(".")]


def _listed(folder: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]
    except (OSError, ValueError):
        return []


def _tensor_bytes(file: Path) -> int:
    """Bytes of a file's tensors; 0 for one that is not there or not whole."""
    try:
        return sum(tensor.end - tensor.begin for tensor in iter_tensors(file))
    except CheckpointError:
        return 0


def _declared(index: Path) -> int | None:
    try:
        metadata = msgspec.json.decode(read_bounded(index, LARGEST_INDEX), type=_Index).metadata
    except (CheckpointError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if metadata is None else metadata.total_size
