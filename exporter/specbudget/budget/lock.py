"""`budget.lock`: the pair that passed, as it was when it passed. Strict reading, atomic writing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, field_validator

from specbudget.budget.acceptance import BreakEvenPoint
from specbudget.budget.declared import Kind
from specbudget.budget.document import read_document, validated
from specbudget.budget.engine import EngineKind
from specbudget.budget.model import ServiceName
from specbudget.budget.section import Length, Positive, Section
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.pair_change import Fingerprints
from specbudget.errors import BudgetError, Problem

LOCK_NAME = "budget.lock"

_Digest = Annotated[
    str,
    Field(pattern=r"^[0-9a-f]{8,64}$"),
    Kind(words="digest", asks="should be 8 to 64 hexadecimal digits in small letters"),
]
_Text = Annotated[str, Field(max_length=4096)]
_HEADER = "# The pair that passed its checks. Written by `specbudget check --approve`; commit it beside the budget.\n"


class LockedFingerprints(Section):
    """Digests of one checkpoint; `whole` covers config, weight index and tensor headers."""

    whole: _Digest
    config: _Digest | None = None
    tokenizer: _Digest | None = None
    index: _Digest | None = None
    headers: _Digest | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _digest_is_text(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError("put the digest in quotes, or it is read as a number")
        return value


class LockedModel(Section):
    """One model of the pair; sizes are what the KV budget was computed from.

    `config` holds the settings of its config.json by dotted key, each as JSON or, where that is long, as a digest.
    Locks of earlier versions have none.
    """

    fingerprints: LockedFingerprints
    path: _Text | None = None
    architecture: _Text | None = None
    layers: Positive | None = None
    hidden_size: Positive | None = None
    vocab_size: Positive | None = None
    parameters: Positive | None = None
    kv_bytes_per_token: Annotated[int, Field(ge=0)] | None = None
    config: dict[_Text, _Text] = Field(default_factory=dict)

    @property
    def compared(self) -> Fingerprints:
        """Its digests and settings, for comparing."""
        return Fingerprints(**self.fingerprints.model_dump(), settings=self.config or None)


class LockedEngine(Section):
    """The engine on which the pair passed."""

    kind: EngineKind = "sglang"
    version: _Text | None = None
    algorithm: DraftAlgorithm | None = None
    num_draft_tokens: Positive | None = None
    tensor_parallel: Positive | None = None

    @field_validator("version", mode="before")
    @classmethod
    def _version_is_text(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError(f'put the version in quotes, like "{value}", or it is read as a number')
        return value


class LockedAcceptance(Section):
    """A measured acceptance length and the verify steps behind it."""

    length: Length
    verify_steps: Positive


class Lock(Section):
    """A whole lock. `drafter` is left out where the drafter is part of the target's checkpoint."""

    lock: Annotated[
        Literal[1], Kind(words="1", asks="another layout of the lock: approve the pair again with this version")
    ]
    service: ServiceName
    approved_at: str
    target: LockedModel
    drafter: LockedModel | None = None
    engine: LockedEngine = LockedEngine()
    acceptance: dict[str, LockedAcceptance] = Field(default_factory=dict)
    break_even: list[BreakEvenPoint] = Field(default_factory=list)

    @field_validator("approved_at")
    @classmethod
    def _time_with_zone(cls, value: str) -> str:
        try:
            zoned = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            zoned = False
        if not zoned:
            raise ValueError("write a time with its zone, like 2026-01-31T12:00:00Z")
        return value

    @field_validator("break_even")
    @classmethod
    def _points_rise(cls, value: list[BreakEvenPoint]) -> list[BreakEvenPoint]:
        runs = [point.running for point in value]
        if runs != sorted(set(runs)):
            raise ValueError("`running` must rise from point to point")
        return value

    @property
    def target_fingerprints(self) -> Fingerprints:
        """The target's digests, for comparing."""
        return self.target.compared

    @property
    def drafter_fingerprints(self) -> Fingerprints:
        """The drafter's digests; the target's where one checkpoint holds both."""
        return (self.target if self.drafter is None else self.drafter).compared


@dataclass(frozen=True, slots=True)
class LoadedLock:
    """A lock, the file it came from and the hash of the content that was read."""

    lock: Lock
    path: Path
    digest: str


def lock_path(budget: Path) -> Path:
    """Where the lock of a budget file lies: beside it."""
    return budget.parent / LOCK_NAME


def is_named_as_lock(path: Path) -> bool:
    """Whether a file that cannot be read as a lock is one by its name, so that a new lock may replace it."""
    return path.suffix == Path(LOCK_NAME).suffix


def load_lock(path: Path) -> LoadedLock | None:
    """Reads and checks a lock; None when there is no such file. Raises BudgetError with one Problem per fault."""
    try:
        document = read_document(path, what="lock", begin="write it with `specbudget check --approve`")
    except FileNotFoundError:
        return None
    return LoadedLock(validated(Lock, document), path, document.digest)


def write_lock(path: Path, lock: Lock) -> None:
    """Replaces the lock at `path`, whole or not at all; a link keeps pointing where it did.

    Raises BudgetError when it cannot be written; the old lock then stands.
    """
    text = _HEADER + yaml.dump(
        lock.model_dump(mode="json", exclude_none=True, exclude_defaults=False),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        width=1000,
    )
    place = Path(os.path.realpath(path))
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{LOCK_NAME}-", dir=place.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(temporary, place)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        message = f"cannot be written: {error.strerror or error}: make its folder writable"
        raise BudgetError([Problem(str(path), None, "", message)]) from error


class _Dumper(yaml.SafeDumper):
    """YAML in which every value that is text stands in quotes: digests of digits only would be numbers."""


def _quoted(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"')


_Dumper.add_representer(str, _quoted)
