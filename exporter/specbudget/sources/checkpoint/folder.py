"""What lies in a checkpoint's folder: names only, with bounds, and what of it no engine loads.

Which files are loaded: SGLang 0.5.23 `model_loader/loader.py` (`_prepare_weights`) and `model_loader/weight_utils.py`
(`filter_duplicate_safetensors_files`, `maybe_add_mtp_safetensors`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from specbudget.sources.checkpoint.bounded_file import failure, printable, reason
from specbudget.sources.checkpoint.model import BundledFolder, CheckpointError, NotLoaded, ProblemKind, Unused

MOST_NAMES = 20_000
"""Published checkpoints stay under a few hundred files; a folder of more than this many is not one model."""

MOST_LISTED = 20
"""Files that are told by name; the others of a long list are told as a number."""

TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tiktoken.model",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
)
PART_OF = re.compile(r"-(\d{1,6})-of-(\d{1,6})\.(?:safetensors|bin)$")

_COPY_FOLDERS = ("original", "consolidated")
_DRAFTER_FOLDERS = ("dspark", "mtp")
_READ_BY_SGLANG = "dspark"
_CONFIG = "config.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_OTHERS = (".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".npz")
_UNFINISHED = (".incomplete", ".part", ".aria2", ".tmp", ".crdownload")
_WEIGHTS = (".safetensors", ".gguf", *_PICKLES, *_OTHERS)


@dataclass(frozen=True, slots=True)
class Listing:
    """The names in a folder, in order: files that look like weights, and everything else in `others`."""

    weights: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()

    def key(self) -> tuple[object, ...]:
        """What must stay the same for a reading of the folder to hold."""
        known = (*_COPY_FOLDERS, *_DRAFTER_FOLDERS, *TOKENIZERS, _CONFIG)
        return (*self.weights, None, *(name for name in known if name in self.others))


def list_folder(folder: Path) -> Listing:
    """The names in a folder, without looking into it further. Raises CheckpointError."""
    weights, others = [], set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_WEIGHTS) or entry.name.endswith(_UNFINISHED):
                    weights.append(entry.name)
                else:
                    others.add(entry.name)
                if len(weights) + len(others) > MOST_NAMES:
                    message = f"holds more than {MOST_NAMES} files; give the folder of one model"
                    raise failure(folder, ProblemKind.TOO_LARGE, message)
    except (OSError, ValueError) as error:
        raise failure(folder, ProblemKind.UNREADABLE, f"the folder {reason(error)}") from error
    return Listing(tuple(sorted(weights)), frozenset(others))


def find_not_loaded(folder: Path, listing: Listing, loaded: Collection[str], *, indexed: bool) -> list[NotLoaded]:
    """Weights that lie there and are not among the loaded ones, the largest first."""
    splits = {match[2] for name in loaded if (match := PART_OF.search(name))}
    found = [
        NotLoaded(name=printable(name), bytes=_size(folder / name), why=_why(name, splits, indexed=indexed))
        for name in listing.weights
        if name not in loaded
    ]
    for sub in _COPY_FOLDERS:
        if sub in listing.others:
            found += [
                NotLoaded(name=f"{sub}/{printable(name)}", bytes=_size(folder / sub / name), why=Unused.COPY)
                for name in _weights_in(folder / sub)
            ]
    return sorted(found, key=lambda unused: (-(unused.bytes or 0), unused.name))


def find_bundled(folder: Path, listing: Listing) -> tuple[BundledFolder, ...]:
    """Drafters in folders of their own inside the target's, each with a config of its own."""
    return tuple(
        BundledFolder(path=folder / sub, read_without_path=sub == _READ_BY_SGLANG)
        for sub in _DRAFTER_FOLDERS
        if sub in listing.others and os.path.isfile(folder / sub / _CONFIG)
    )


def _why(name: str, splits: Iterable[str], *, indexed: bool) -> Unused:
    if name.endswith(_UNFINISHED):
        return Unused.UNFINISHED
    if name.endswith(".gguf"):
        return Unused.GGUF
    if name.endswith(_PICKLES):
        return Unused.PICKLE
    if name.endswith(_OTHERS):
        return Unused.OTHER_FORMAT
    if not indexed:
        return Unused.UNINDEXED_COPY
    part = PART_OF.search(name)
    if part is not None and splits and part[2] not in splits:
        return Unused.OTHER_SPLIT
    return Unused.COPY if name.startswith("consolidated") or name == "model.safetensors" else Unused.STALE


def _weights_in(folder: Path) -> tuple[str, ...]:
    try:
        return list_folder(folder).weights
    except CheckpointError:
        return ()


def _size(path: Path) -> int | None:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return None
