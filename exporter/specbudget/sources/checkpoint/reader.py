"""Read a checkpoint folder: config, index and tensor headers, never the weights."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specbudget.sources.checkpoint.config_facts import read_facts
from specbudget.sources.checkpoint.config_file import CONFIG_NAME, ConfigReader, load_config
from specbudget.sources.checkpoint.layer_shapes import read_geometry
from specbudget.sources.checkpoint.model import (
    Checkpoint,
    CheckpointError,
    CheckpointProblem,
    ConfigFacts,
    ProblemKind,
)
from specbudget.sources.checkpoint.tensor_header import iter_tensors
from specbudget.sources.checkpoint.tensor_totals import TensorTotals
from specbudget.sources.checkpoint.weight_index import INDEX_NAME, SINGLE_NAME, WeightFiles, find_weight_files

_MOST_PROBLEMS = 20
_FINGERPRINT_DIGITS = 16

_Signature = tuple[int, int, int, int] | None


@dataclass(slots=True)
class _Weights:
    totals: TensorTotals
    disk_bytes: int | None = None
    known: bool = False
    """Whether tensors were read, all of them."""
    present: bool = False
    problems: list[CheckpointProblem] = field(default_factory=list)


class CheckpointReader:
    """Reads one folder again only when a file it depends on changed; an unchanged folder costs only stats."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: tuple[dict[str, _Signature], Checkpoint] | None = None

    def read(self) -> Checkpoint:
        """The checkpoint as it is now: the same object as before when nothing changed. Never raises for
        content.
        """
        if self._last is not None:
            signatures, checkpoint = self._last
            if all(_signature(self.path / name) == seen for name, seen in signatures.items()):
                return checkpoint
        # Signatures are taken before the reading: a file that changes meanwhile is read again next time.
        signatures = {name: _signature(self.path / name) for name in (CONFIG_NAME, INDEX_NAME, SINGLE_NAME, "")}
        files = find_weight_files(self.path)
        if not files.listed:
            del signatures[""]
        for name in (*files.files, *files.pickles):
            signatures.setdefault(name, _signature(self.path / name))
        checkpoint = _read(self.path, files) if os.path.isdir(self.path) else _no_folder(self.path)
        self._last = (signatures, checkpoint)
        return checkpoint


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a folder once. What cannot be read is None and named in `problems`."""
    return CheckpointReader(path).read()


def _no_folder(path: Path) -> Checkpoint:
    message = "is no folder; give the folder that holds config.json and the weights"
    problem = CheckpointProblem(file=path, message=message, kind=ProblemKind.MISSING)
    return Checkpoint(
        path=path,
        architecture=None,
        dtype=None,
        facts=None,
        geometry=None,
        mtp_geometry=None,
        disk_bytes=None,
        parameters=None,
        packed=False,
        tensor_groups=None,
        unclassified=(),
        landmarks=(),
        fingerprint=None,
        problems=(problem,),
    )


def _signature(path: Path) -> _Signature:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read(path: Path, files: WeightFiles) -> Checkpoint:
    problems: list[CheckpointProblem] = []
    digest = hashlib.sha256()
    config: Mapping[str, Any] | None = None
    facts: ConfigFacts | None = None
    geometry = mtp_geometry = None
    try:
        config, content = load_config(path / CONFIG_NAME)
        digest.update(content)
    except CheckpointError as error:
        problems.append(error.problem)
    if config is not None:
        reader = ConfigReader(path / CONFIG_NAME, config)
        facts = read_facts(reader)
        geometry, mtp_geometry = read_geometry(reader, facts)
        problems.extend(reader.problems)
    if files.index_digest is not None:
        digest.update(files.index_digest)
    layers = None if facts is None else facts.num_hidden_layers
    weights = _read_weights(path, files, TensorTotals(layers, digest))
    problems.extend(weights.problems)
    names = facts.architectures if facts is not None else None
    whole = config is not None and (weights.known or not weights.present)
    totals = weights.totals
    return Checkpoint(
        path=path,
        architecture=names[0] if names else None,
        dtype=(totals.dominant_dtype() if weights.known else None) or (facts.dtype if facts else None),
        facts=facts,
        geometry=geometry,
        mtp_geometry=mtp_geometry,
        disk_bytes=weights.disk_bytes,
        parameters=totals.parameters if weights.known else None,
        packed=totals.packed,
        tensor_groups=totals.groups() if weights.known else None,
        unclassified=tuple(totals.unclassified),
        landmarks=tuple(totals.landmarks),
        fingerprint=digest.hexdigest()[:_FINGERPRINT_DIGITS] if whole else None,
        problems=_limited(path, problems),
        kv_scales=totals.kv_scales if weights.known else files.kv_scales,
    )


def _read_weights(path: Path, files: WeightFiles, totals: TensorTotals) -> _Weights:
    weights = _Weights(totals=totals, problems=list(files.problems))
    # An index that cannot be read means weights that are not known, not a checkpoint without weights.
    weights.present = bool(files.files or files.pickles or files.problems)
    sizes: list[int | None] = []
    for name, expected in files.files.items():
        file = path / name
        signature = _signature(file)
        sizes.append(None if signature is None else signature[2])
        try:
            count = totals.add_file(iter_tensors(file), file)
        except CheckpointError as error:
            weights.problems.append(error.problem)
            # a file that is no whole checkpoint file says nothing of how large the artifact is
            if error.problem.kind is not ProblemKind.UNSUPPORTED:
                sizes[-1] = None
            continue
        if expected is not None and count != expected:
            message = f"holds {count} tensors, while the index lists {expected}; download the checkpoint again"
            weights.problems.append(CheckpointProblem(file=file, message=message, kind=ProblemKind.MALFORMED))
    weights.known = bool(files.files) and not weights.problems
    for name in files.pickles:
        signature = _signature(path / name)
        sizes.append(None if signature is None else signature[2])
    known = [size for size in sizes if size is not None]
    if sizes and len(known) == len(sizes):
        weights.disk_bytes = sum(known)
    return weights


def _limited(path: Path, problems: list[CheckpointProblem]) -> tuple[CheckpointProblem, ...]:
    """The first problems; many broken shards are told once more as a number."""
    if len(problems) <= _MOST_PROBLEMS:
        return tuple(problems)
    rest = len(problems) - _MOST_PROBLEMS
    message = f"{rest} more problems of this kind follow"
    more = CheckpointProblem(file=path, message=message, kind=problems[_MOST_PROBLEMS].kind)
    return (*problems[:_MOST_PROBLEMS], more)
