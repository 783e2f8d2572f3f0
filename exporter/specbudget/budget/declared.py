"""What a key of the budget file says of itself: its kind of value, meaning, example, and which commands read it.

The reader's messages and the reference page are made from these declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

CHECK: Final = "check"
SERVE: Final = "serve"
GENERATE: Final = "generate"

BOTH = (CHECK, SERVE)
ALL = (CHECK, SERVE, GENERATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of value, as metadata of an annotation.

    `words` name it for people, `unit` is the base unit it is read into. `asks` is what to write instead of a value
    that breaks the kind's rule, where the rule's own words say too little.
    """

    words: str
    unit: str = ""
    asks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyNotes:
    """What is said of one key beside its type, default and meaning.

    `example` is its value as a file spells it, `without` what holds where the key is left out and has no default,
    `read_by` the commands that read it.
    """

    example: str
    read_by: tuple[str, ...]
    without: str = ""


_NOTES = "specbudget"


def key(default: Any, meaning: str, *, example: str, read_by: tuple[str, ...] = BOTH, without: str = "") -> Any:
    """A key of the file; `default` is `...` for one that must be given. The other words are those of KeyNotes."""
    notes = KeyNotes(example=example, read_by=read_by, without=without)
    return Field(default, description=meaning, json_schema_extra={_NOTES: notes})  # type: ignore[dict-item]


def notes_of(extra: object) -> KeyNotes | None:
    """The notes of a field's `json_schema_extra`; None of a section, which its class describes."""
    notes = extra.get(_NOTES) if isinstance(extra, dict) else None
    return notes if isinstance(notes, KeyNotes) else None
