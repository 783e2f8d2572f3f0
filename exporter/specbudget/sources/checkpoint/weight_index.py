"""Which files hold the weights: the index and its shards, one file, or none."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

from specbudget.sources.checkpoint.bounded_file import failure, printable, read_bounded
from specbudget.sources.checkpoint.flat_object import FlatObjectError, iter_entries
from specbudget.sources.checkpoint.folder import PART_OF, Listing
from specbudget.sources.checkpoint.kv_scale_names import names_kv_scale
from specbudget.sources.checkpoint.model import CheckpointError, CheckpointProblem, ConfigFacts, ProblemKind

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
LARGEST_INDEX = 96 * 2**20
"""An index takes about 100 bytes for a tensor; a model of half a million tensors stays below."""

MOST_FILES = 10_000
"""Published checkpoints stay under a few hundred shards; more than this many are not weights of one model."""

_MTP_NAME = "mtp.safetensors"
_MTP_BESIDE_INDEX = frozenset({"Glm4MoeForCausalLM", "Glm4MoeLiteForCausalLM"})
"""Targets for which SGLang loads mtp.safetensors although the index does not name it."""

_PIECE = 2**18


class _Index(msgspec.Struct):
    weight_map: msgspec.Raw
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class _Metadata(msgspec.Struct):
    total_size: float | int | None = None


@dataclass(slots=True)
class WeightFiles:
    """`files` holds name -> tensors the index puts there (None without an index), in name order.

    `index_digest` is a digest of the index as read; `declared_bytes` the size of all tensors that the index states;
    `kv_scales` says whether it names scales of a quantised KV; `pickles` are the weights of a checkpoint that has no
    safetensors at all.
    """

    files: dict[str, int | None] = field(default_factory=dict)
    index_digest: bytes | None = None
    declared_bytes: int | None = None
    kv_scales: bool | None = None
    pickles: tuple[str, ...] = ()
    problems: list[CheckpointProblem] = field(default_factory=list)

    @property
    def indexed(self) -> bool:
        """Whether an index decided."""
        return self.index_digest is not None


def find_weight_files(folder: Path, listing: Listing, facts: ConfigFacts | None) -> WeightFiles:
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
            files, found.declared_bytes = _read_index(index, text)
            found.files = dict(sorted(files.items()))
            found.kv_scales = names_kv_scale(text)
        except CheckpointError as error:
            found.problems.append(error.problem)
            return found
        if _MTP_NAME in listing.weights and _loads_mtp_beside_index(facts):
            found.files.setdefault(_MTP_NAME, None)
        return found
    if os.path.lexists(folder / SINGLE_NAME):
        found.files = {SINGLE_NAME: None}
        return found
    tensors = [name for name in listing.weights if name.endswith(".safetensors")]
    if len(tensors) > MOST_FILES:
        message = f"holds more than {MOST_FILES} weight files"
        found.problems.append(CheckpointProblem(file=folder, message=message, kind=ProblemKind.TOO_LARGE))
        return found
    chosen = [name for name in tensors if not name.startswith("consolidated")] or tensors
    try:
        found.files = _with_missing_parts(folder, chosen)
    except CheckpointError as error:
        found.problems.append(error.problem)
    if not chosen:
        found.pickles = tuple(name for name in listing.weights if name.startswith("pytorch_model"))
        found.problems.extend(_pickle_problem(folder, found.pickles))
    return found


def _loads_mtp_beside_index(facts: ConfigFacts | None) -> bool:
    names = (facts.architectures or ()) if facts is not None else ()
    return bool(names) and names[0] in _MTP_BESIDE_INDEX and bool(facts and facts.num_nextn_predict_layers)


def _read_index(path: Path, text: bytes) -> tuple[dict[str, int | None], int | None]:
    """Tensors by file, and the declared bytes. Raises CheckpointError."""
    try:
        index = msgspec.json.decode(text, type=_Index)
        counts = _count_files(path, memoryview(index.weight_map))
    except FlatObjectError as error:
        message = f"must map tensor names to file names: {error}"
        raise failure(path, ProblemKind.MALFORMED, message, key="weight_map") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"no valid weight index: {printable(str(error))}; download it again"
        raise failure(path, ProblemKind.MALFORMED, message) from error
    if not counts:
        raise failure(path, ProblemKind.MALFORMED, "names no tensor; download the index again", key="weight_map")
    for name in counts:
        _check_name(path, name)
    return dict(counts), _declared_bytes(index.metadata)


def _declared_bytes(metadata: msgspec.Raw) -> int | None:
    """The index's own word on the size of all tensors; some writers leave it out, some get it wrong."""
    try:
        size = msgspec.json.decode(metadata, type=_Metadata).total_size
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return int(size) if size is not None and 0 < size < 2**62 else None


def _count_files(path: Path, text: memoryview) -> Counter[str]:
    """How many tensors the map puts into each file. Raises CheckpointError and what its decoders raise."""
    counts: Counter[str] = Counter()
    for names in _iter_file_names(text):
        counts.update(names)
        if len(counts) > MOST_FILES:
            raise failure(path, ProblemKind.TOO_LARGE, f"names more than {MOST_FILES} files", key="weight_map")
    return counts


def _iter_file_names(text: memoryview) -> Iterator[list[str]]:
    """The map's values, a piece of it at a time: it has many megabytes, as objects ten times as many.

    A cut inside a string leaves it open, so that the piece is no JSON; then, and wherever else a piece is not what
    it is expected to be, the whole map is walked entry by entry from there.
    """
    position = 0
    while True:
        head = bytes(text[position : position + _PIECE])
        last = position + _PIECE >= len(text)
        cut = len(head) if last else head.rfind(b'",') + 1
        piece = (b"" if position == 0 else b"{") + head[:cut] + (b"" if last else b"}")
        try:
            names = list(msgspec.json.decode(piece, type=dict[str, str]).values()) if cut else []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            names = []
        if not names:
            break
        yield names
        if last:
            return
        position += cut + 1
    for _, value in iter_entries(text, position or None):
        yield [msgspec.json.decode(value, type=str)]


def _check_name(path: Path, name: str) -> None:
    pure = PurePosixPath(name)
    inside = name and not pure.is_absolute() and ".." not in pure.parts and "\0" not in name
    if not inside or not name.endswith(".safetensors") or len(name) > 1024:
        message = f"{printable(name, 80)!r} is no safetensors file inside the checkpoint; correct the index"
        raise failure(path, ProblemKind.MALFORMED, message, key="weight_map")


def _with_missing_parts(folder: Path, names: list[str]) -> dict[str, int | None]:
    """Shards named NNNNN-of-MMMMM without an index, and those that their names say are missing.

    Raises CheckpointError where the names do not say which shards belong together.
    """
    files: dict[str, int | None] = dict.fromkeys(names)
    totals: dict[str, str] = {}
    for name in names:
        match = PART_OF.search(name)
        if match is None:
            continue
        stem, total = name[: match.start()], match[2]
        if int(total) > MOST_FILES:
            raise failure(folder / name, ProblemKind.TOO_LARGE, f"is one of more than {MOST_FILES} files")
        if totals.setdefault(stem, total) != total:
            message = f"shards of {totals[stem]} and of {total} files are here, and there is no index; remove one split"
            raise failure(folder / INDEX_NAME, ProblemKind.MALFORMED, message)
    for stem, total in totals.items():
        # Most writers count from 1, some from 0.
        first = 0 if any(f"{stem}-{0:0{width}d}-of-{total}.safetensors" in files for width in (5, len(total))) else 1
        for number in range(first, first + int(total)):
            files.setdefault(f"{stem}-{number:0{max(5, len(total))}d}-of-{total}.safetensors", None)
    return dict(sorted(files.items()))


def _pickle_problem(folder: Path, pickles: tuple[str, ...]) -> list[CheckpointProblem]:
    if not pickles:
        return []
    message = "pickled weights cannot be measured without running them; convert the checkpoint to safetensors"
    return [CheckpointProblem(file=folder / pickles[0], message=message, kind=ProblemKind.UNSUPPORTED)]
