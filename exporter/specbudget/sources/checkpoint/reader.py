"""Read a checkpoint folder: config, index and tensor headers, never the weights."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from specbudget.domain.kv_geometry import ModelGeometry
from specbudget.sources.checkpoint.bounded_file import open_regular, printable, reason
from specbudget.sources.checkpoint.config_facts import read_facts
from specbudget.sources.checkpoint.config_file import CONFIG_NAME, ConfigReader, load_config
from specbudget.sources.checkpoint.folder import (
    MOST_LISTED,
    TOKENIZERS,
    Listing,
    find_bundled,
    find_not_loaded,
    list_folder,
)
from specbudget.sources.checkpoint.layer_shapes import read_geometry
from specbudget.sources.checkpoint.model import (
    Checkpoint,
    CheckpointError,
    CheckpointProblem,
    ConfigFacts,
    Digests,
    ProblemKind,
)
from specbudget.sources.checkpoint.quantization import Quantization, read_quantization
from specbudget.sources.checkpoint.tensor_totals import TensorTotals
from specbudget.sources.checkpoint.weight_index import INDEX_NAME, SINGLE_NAME, find_weight_files
from specbudget.sources.checkpoint.weights import Progress, Signature, read_weights, signature

_MOST_PROBLEMS = 20
_FINGERPRINT_DIGITS = 16
_QUANTIZATION_NAME = "hf_quant_config.json"
"""Where NVIDIA's model optimizer writes what others put into config.json."""

_WATCHED = (
    *(CONFIG_NAME, _QUANTIZATION_NAME, INDEX_NAME, SINGLE_NAME, *TOKENIZERS),
    *("dspark/config.json", "mtp/config.json"),
)


@dataclass(slots=True)
class _Settings:
    """What the config says; `content` is None when it cannot be read."""

    content: bytes | None = None
    facts: ConfigFacts | None = None
    geometry: ModelGeometry | None = None
    mtp_geometry: ModelGeometry | None = None
    quantization: Quantization = field(default_factory=Quantization)
    problems: list[CheckpointProblem] = field(default_factory=list)


class CheckpointReader:
    """Reads one folder again only when a file it depends on changed; an unchanged folder costs only stats."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: tuple[dict[str, Signature], object, Checkpoint] | None = None

    def read(self, on_progress: Progress | None = None) -> Checkpoint:
        """The checkpoint as it is now: the same object as before when nothing changed. Never raises for
        content.

        `on_progress` is called after each weight file with how many are read and how many there are.
        """
        listing, problem = _list(self.path)
        seen = listing.key(), problem
        if self._last is not None:
            signatures, before, checkpoint = self._last
            if seen == before and all(signature(self.path, name) == old for name, old in signatures.items()):
                return checkpoint
        signatures = {name: signature(self.path, name) for name in _WATCHED}
        if problem is not None and not os.path.isdir(self.path):
            checkpoint = Checkpoint(path=self.path, problems=(problem,))
        else:
            checkpoint = _read(self.path, listing, problem, signatures, on_progress)
        self._last = (signatures, seen, checkpoint)
        return checkpoint


def read_checkpoint(path: Path, on_progress: Progress | None = None) -> Checkpoint:
    """Read a folder once. What cannot be read is None and named in `problems`; `on_progress` as for the reader."""
    return CheckpointReader(path).read(on_progress)


def _list(path: Path) -> tuple[Listing, CheckpointProblem | None]:
    """The folder's listing, or why there is none."""
    try:
        os.stat(path)
        if os.path.isdir(path):
            return list_folder(path), None
    except PermissionError as error:
        return Listing(), CheckpointProblem(file=path, message=reason(error), kind=ProblemKind.UNREADABLE)
    except CheckpointError as error:
        return Listing(), error.problem
    except (OSError, ValueError):
        pass
    what = "is a file, not a folder" if os.path.exists(path) else "is no folder"
    message = f"{what}; give the folder that holds config.json and the weights"
    return Listing(), CheckpointProblem(file=path, message=message, kind=ProblemKind.MISSING)


def _read(
    path: Path,
    listing: Listing,
    unlisted: CheckpointProblem | None,
    signatures: dict[str, Signature],
    on_progress: Progress | None,
) -> Checkpoint:
    problems = [] if unlisted is None else [unlisted]
    settings = _read_settings(path, listing, known=unlisted is None)
    problems.extend(settings.problems)
    facts = settings.facts
    files = find_weight_files(path, listing, facts)
    totals = TensorTotals(None if facts is None else facts.num_hidden_layers, settings.quantization)
    weights = read_weights(path, files, totals, on_progress)
    signatures.update(weights.signatures)
    problems.extend(weights.problems)
    problems.extend(_tokenizer_problems(path, listing))
    loaded = {*files.files, *files.pickles}
    # Beside an index that cannot be read nobody knows what is loaded.
    unused = (
        []
        if files.problems and not loaded
        else find_not_loaded(path, listing, loaded, indexed=files.index_digest is not None)
    )
    names = facts.architectures if facts is not None else None
    dtype = (totals.dominant_dtype() if weights.known else None) or (facts.dtype if facts else None)
    # Weights that cannot be read mean a checkpoint that is not known, not one without weights.
    present = bool(loaded or files.problems or unlisted)
    digest = None if settings.content is None or (present and not weights.known) else hashlib.sha256(settings.content)
    for part in (files.index_digest, weights.headers_digest):
        if digest is not None and part is not None:
            digest.update(part)
    return Checkpoint(
        path=path,
        architecture=names[0] if names else None,
        dtype=dtype,
        storage=settings.quantization.words(dtype),
        facts=facts,
        geometry=settings.geometry,
        mtp_geometry=settings.mtp_geometry,
        disk_bytes=weights.disk_bytes,
        tensor_bytes=totals.bytes if weights.known else None,
        declared_bytes=files.declared_bytes,
        present_bytes=weights.present_bytes,
        shards=len(loaded),
        missing=tuple(printable(name) for name in weights.missing[:MOST_LISTED]),
        missing_count=len(weights.missing),
        not_loaded=tuple(unused[:MOST_LISTED]),
        not_loaded_count=len(unused),
        not_loaded_bytes=sum(one.bytes or 0 for one in unused),
        bundled=find_bundled(path, listing),
        tokenizers=tuple(name for name in TOKENIZERS if name in listing.others),
        parameters=totals.parameters if weights.known else None,
        logical_parameters=totals.logical_parameters if weights.known else None,
        packed=totals.packed,
        tensor_groups=totals.groups() if weights.known else None,
        numbered_layers=totals.numbered_layers if weights.known else None,
        unclassified=tuple(totals.unclassified),
        landmarks=tuple(totals.landmarks),
        fingerprint=None if digest is None else digest.hexdigest()[:_FINGERPRINT_DIGITS],
        digests=Digests(
            config=None if settings.content is None else hashlib.sha256(settings.content).hexdigest(),
            index=None if files.index_digest is None else files.index_digest.hex(),
            headers=None if weights.headers_digest is None else weights.headers_digest.hex(),
        ),
        problems=_limited(path, problems),
        kv_scales=totals.kv_scales if weights.known else files.kv_scales,
    )


def _read_settings(path: Path, listing: Listing, *, known: bool) -> _Settings:
    """The config, with the quantisation that stands in a file of its own."""
    try:
        config, content = load_config(path / CONFIG_NAME)
    except CheckpointError as error:
        return _Settings(problems=[_without_config(path, listing, error.problem) if known else error.problem])
    settings = _Settings(content=content)
    if _QUANTIZATION_NAME in listing.others and config.get("quantization_config") is None:
        try:
            stated, text = load_config(path / _QUANTIZATION_NAME)
            config = {**config, "quantization_config": stated.get("quantization")}
            settings.content = content + text
        except CheckpointError as error:
            settings.problems.append(error.problem)
    reader = ConfigReader(path / CONFIG_NAME, config)
    settings.facts = read_facts(reader)
    settings.geometry, settings.mtp_geometry = read_geometry(reader, settings.facts)
    settings.quantization = read_quantization(reader)
    settings.problems.extend(reader.problems)
    return settings


def _without_config(path: Path, listing: Listing, problem: CheckpointProblem) -> CheckpointProblem:
    """Why there is no config: the folder is empty, or it is the cache's folder around the checkpoint."""
    if problem.kind is not ProblemKind.MISSING or CONFIG_NAME in listing.others:
        return problem
    if not listing.weights and not listing.others:
        message = "the folder is empty; download the checkpoint into it"
    elif {"snapshots", "blobs"} <= listing.others:
        message = "is a cache of checkpoints; give the folder of a revision inside its snapshots/"
    else:
        return problem
    return CheckpointProblem(file=path, message=message, kind=ProblemKind.MISSING)


def _tokenizer_problems(path: Path, listing: Listing) -> list[CheckpointProblem]:
    """Files of the tokenizer that are not there although their names are, such as git-lfs pointers."""
    found = []
    for name in TOKENIZERS:
        if name in listing.others:
            try:
                with open_regular(path / name):
                    pass
            except CheckpointError as error:
                found.append(error.problem)
    return found


def _limited(path: Path, problems: list[CheckpointProblem]) -> tuple[CheckpointProblem, ...]:
    """The first problems; many broken shards are told once more as a number."""
    if len(problems) <= _MOST_PROBLEMS:
        return tuple(problems)
    rest = len(problems) - _MOST_PROBLEMS
    message = f"{rest} more problems of this kind follow"
    more = CheckpointProblem(file=path, message=message, kind=problems[_MOST_PROBLEMS].kind)
    return (*problems[:_MOST_PROBLEMS], more)
