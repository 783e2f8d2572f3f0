"""What of one model of a pair stands in its folder beside the budget's facts: taps, rotary fields, digests by part."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specbudget.domain.codesign import Rope, TapStatement, VocabularyMap
from specbudget.domain.pair_change import Fingerprints
from specbudget.pair.config_settings import settings
from specbudget.sources.checkpoint import Checkpoint
from specbudget.sources.checkpoint.bounded_file import open_regular
from specbudget.sources.checkpoint.config_file import CONFIG_NAME, ConfigReader, load_config
from specbudget.sources.checkpoint.model import CheckpointError

if TYPE_CHECKING:
    from specbudget.budget.lock import LockedModel

_TAP_PLACES = (
    ("dspark_target_layer_ids",),
    ("dspark_config", "target_layer_ids"),
    ("dflash_config", "target_layer_ids"),
    ("target_layer_ids",),
    ("eagle_config", "eagle_aux_hidden_state_layer_ids"),
    ("eagle_aux_hidden_state_layer_ids",),
    ("aux_hidden_state_layer_ids",),
)
"""In the order in which engines prefer them."""

_ANCHOR_PLACES = (
    ("sample_from_anchor",),
    ("dspark_config", "sample_from_anchor"),
    ("dflash_config", "sample_from_anchor"),
)

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tiktoken.model", "vocab.json")
_LARGEST_TOKENIZER = 256 * 2**20
_CHUNK = 2**20
_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One model: its checkpoint and what only the co-design rules need of its config.

    `taps` is None when the config cannot be read, empty when it states none. `tokenizer` is the file of its
    tokenizer; None where there is none. `vocabulary_map` is what d2t and t2d hold.
    """

    checkpoint: Checkpoint
    taps: tuple[TapStatement, ...] | None = None
    uses_taps: bool | None = None
    tap_count: int | None = None
    loops: int = 1
    rope: Rope | None = None
    sample_from_anchor: bool | None = None
    tokenizer: Path | None = None
    vocabulary_map: VocabularyMap | None = None
    fingerprints: Fingerprints = field(default_factory=Fingerprints)


class SideReader:
    """Reads a side again only when its checkpoint is another object or its tokenizer file changed."""

    def __init__(self) -> None:
        self._last: tuple[Checkpoint, tuple[int, int, int] | None, Side] | None = None

    def read(self, checkpoint: Checkpoint) -> Side:
        """The side of a checkpoint; it opens small files and index tensors only. Never raises for content."""
        tokenizer = _tokenizer_path(checkpoint.path)
        signature = None if tokenizer is None else _signature(tokenizer)
        if self._last is not None and self._last[0] is checkpoint and self._last[1] == signature:
            return self._last[2]
        side = read_side(checkpoint)
        self._last = (checkpoint, signature, side)
        return side


def read_side(checkpoint: Checkpoint) -> Side:
    """The side of a checkpoint, read once. What cannot be read is None."""
    try:
        config, _ = load_config(checkpoint.path / CONFIG_NAME)
    except CheckpointError:
        return Side(
            checkpoint=checkpoint,
            tokenizer=_tokenizer_path(checkpoint.path),
            fingerprints=_fingerprints(checkpoint, None),
        )
    reader = ConfigReader(checkpoint.path / CONFIG_NAME, config)
    return Side(
        checkpoint=checkpoint,
        taps=_taps(reader),
        uses_taps=reader.flag("use_aux_hidden_state", ("eagle_config", "use_aux_hidden_state")),
        tap_count=reader.whole("num_aux_hidden_states", ("num_aux_hidden_states",)),
        loops=reader.whole("num_loops", *reader.places("num_loops"), most=1000) or 1,
        rope=_rope(reader),
        sample_from_anchor=reader.flag("sample_from_anchor", *_ANCHOR_PLACES),
        tokenizer=_tokenizer_path(checkpoint.path),
        vocabulary_map=_vocabulary_map(checkpoint),
        fingerprints=_fingerprints(checkpoint, settings(config)),
    )


def locked_model(side: Side, *, kv_bytes_per_token: int | None) -> LockedModel | None:
    """What `budget.lock` records of a model; None while its fingerprint is not known."""
    # The lock's schema takes longer to import than a terabyte of headers to read; only who locks pays for it.
    from specbudget.budget.lock import LockedFingerprints, LockedModel

    prints, facts = side.fingerprints, side.checkpoint.facts
    if prints.whole is None or facts is None:
        return None
    return LockedModel(
        fingerprints=LockedFingerprints(
            whole=prints.whole,
            config=prints.config,
            tokenizer=prints.tokenizer,
            index=prints.index,
            headers=prints.headers,
        ),
        config=dict(prints.settings or {}),
        path=str(side.checkpoint.path),
        architecture=side.checkpoint.architecture,
        layers=facts.num_hidden_layers,
        hidden_size=facts.hidden_size,
        vocab_size=facts.vocab_size,
        parameters=side.checkpoint.parameters,
        kv_bytes_per_token=kv_bytes_per_token,
    )


def _vocabulary_map(checkpoint: Checkpoint) -> VocabularyMap | None:
    if checkpoint.landmark("d2t") is None:
        return None
    # numpy comes with it: most drafters have no map
    from specbudget.pair.vocabulary_map import read_vocabulary_map

    return read_vocabulary_map(checkpoint)


def _taps(config: ConfigReader) -> tuple[TapStatement, ...]:
    """Every list of taps; one that is no list of whole numbers is left out."""
    found = []
    for place in _TAP_PLACES:
        ids = config.wholes(".".join(place), place)
        if ids is not None:
            found.append(TapStatement(key=".".join(place), ids=ids))
    return tuple(found)


def _rope(config: ConfigReader) -> Rope | None:
    """The rotary fields of the language model: the newer table, the older scaling table, or the plain keys."""
    table: Mapping[str, Any] = {}
    for key in ("rope_parameters", "rope_scaling"):
        hit = config.lookup(*config.places(key))
        if hit is not None and isinstance(hit[1], dict):
            inner = hit[1].get("full_attention")
            table = inner if isinstance(inner, dict) else hit[1]
            break

    def number(key: str) -> float | None:
        hit = config.lookup(*config.places(key))
        return _number(table.get(key)) if key in table else _number(None if hit is None else hit[1])

    kind = table.get("rope_type", table.get("type"))
    rope = Rope(
        theta=number("rope_theta"),
        partial=number("partial_rotary_factor"),
        kind=kind[:40] if isinstance(kind, str) and kind.isprintable() else None,
    )
    return None if rope == Rope() else rope


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _fingerprints(checkpoint: Checkpoint, config: Mapping[str, str] | None) -> Fingerprints:
    """The digests that were taken while the checkpoint was read, with that of its tokenizer."""
    digests, tokenizer = checkpoint.digests, _tokenizer_path(checkpoint.path)
    return Fingerprints(
        whole=checkpoint.fingerprint,
        config=_short(digests.config),
        tokenizer=None if tokenizer is None else _file_digest(tokenizer),
        index=_short(digests.index),
        headers=_short(digests.headers),
        settings=config,
    )


def _short(digest: str | None) -> str | None:
    return None if digest is None else digest[:_DIGITS]


def _tokenizer_path(folder: Path) -> Path | None:
    return next((folder / name for name in _TOKENIZERS if os.path.lexists(folder / name)), None)


def _file_digest(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            if file.size > _LARGEST_TOKENIZER:
                return None
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except CheckpointError:
        return None
    return digest.hexdigest()[:_DIGITS]


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
