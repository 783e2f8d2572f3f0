"""The reference page of the budget file, made from the declarations of its model."""

from __future__ import annotations

import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from specbudget.budget.declared import KeyNotes, Kind, notes_of
from specbudget.budget.model import Budget
from specbudget.budget.units import format_duration

NAME, ITEM = "NAME", "[]"
"""How a path shows what a file names freely, and the items of a list."""

_WIDTH = 110

_HEAD = """<!-- Generated from exporter/specbudget/budget by `make generate`: do not edit. -->
# The budget file

One YAML file for one service: which engine and which pair, and how much each of the five lines may spend. JSON is YAML,
too. `specbudget init` prints one that fits your checkpoints.

- Only `service` must be given. A line that is left out is not budgeted; a section that is left out has its defaults.
- An unknown key, a size or a duration without a unit, or a rule that is broken is one line with file, line, key and
  fix, and exit code 2.
- Relative paths are taken from the file's folder; `~` is the home folder.
- `serve` reads the file again when its content changes, on SIGHUP and on `POST /-/reload`; a bad new file leaves the
  old one in force.
- Sizes take B, KiB, MiB, GiB, TiB, PiB (powers of 1024) or KB, MB, GB, TB, PB (powers of 1000): `12GiB`. Durations take
  ms, s, m, h, d, w, also together: `1h30m`. A size per second is a bandwidth: `8GiB/s`.
- `true` and `false` are the only words for yes and no.

## A complete example

Every key once, for Ling-3.0-flash with its DSpark drafter on four GPUs of 141 GiB. The
[example of this repository](../../examples/budget.yaml) is shorter.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: its path as messages spell it, and its declaration."""

    path: str
    field: FieldInfo
    notes: KeyNotes


def keys(model: type[BaseModel] = Budget, prefix: str = "") -> Iterator[Key]:
    """Every key that holds a value, in the order of the model; of a list or mapping of sections also theirs."""
    for name, field in model.model_fields.items():
        path, notes = f"{prefix}{field.alias or name}", notes_of(field.json_schema_extra)
        if notes is not None:
            yield Key(path=path, field=field, notes=notes)
        for suffix, inner in _sections(field.annotation):
            yield from keys(inner, f"{path}{suffix}.")


def render() -> str:
    """The whole page."""
    return "".join((_HEAD, "```yaml\n", example(), "```\n", *_tables(Budget, "", "")))


def example() -> str:
    """A budget with every key once, each below its meaning; of a key with several forms the first example."""
    return "\n".join(_example(Budget, 0)) + "\n"


def _example(model: type[BaseModel], depth: int) -> Iterator[str]:
    margin = "  " * depth
    for name, field in model.model_fields.items():
        notes, section = notes_of(field.json_schema_extra), _own_section(field.annotation)
        if section is not None:
            yield from _comment(_summary(section), margin)
            yield f"{margin}{name}:"
            yield from _example(section, depth + 1)
        elif notes is not None:
            yield from _comment(field.description or "", margin)
            yield f"{margin}{name}: {notes.example}"


def _comment(text: str, margin: str) -> list[str]:
    head = f"{margin}# "
    # flags of an engine are one word
    words = textwrap.TextWrapper(width=_WIDTH, initial_indent=head, subsequent_indent=head, break_on_hyphens=False)
    return words.wrap(text.replace("`", ""))


_TABLE = (
    "| key | value | default, or what holds without it | meaning | example | read by |\n|---|---|---|---|---|---|\n"
)


def _tables(model: type[BaseModel], path: str, title: str) -> Iterator[str]:
    """The section's own keys as a table, then the sections within it."""
    own = [key for key in keys(model, path) if "." not in key.path.removeprefix(path)]
    heading = f"\n## `{title}`\n\n{_summary(model)}\n" if title else "\n## The file\n"
    yield heading
    if own:
        yield "\n" + _TABLE + "".join(_row(key) for key in own)
    for name, field in model.model_fields.items():
        for suffix, inner in _sections(field.annotation):
            below = f"{path}{name}{suffix}"
            yield from _tables(inner, f"{below}.", below)


def _row(key: Key) -> str:
    field, notes = key.field, key.notes
    cells = (
        f"`{key.path}`",
        value_words(field),
        _default(field, notes),
        field.description or "",
        f"`{notes.example}`",
        ", ".join(notes.read_by),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def value_words(field: FieldInfo) -> str:
    """What kind of value a key takes, and the unit that it is read into."""
    own = next((item for item in field.metadata if isinstance(item, Kind)), None)
    return _kind_words(own) if own is not None else _words(field.annotation)


def _kind_words(kind: Kind) -> str:
    return f"{kind.words} ({kind.unit})" if kind.unit else kind.words


def _words(annotation: Any) -> str:
    """An annotation for people."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind = next((item for item in arguments[1:] if isinstance(item, Kind)), None)
        return _kind_words(kind) if kind is not None else _words(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(part) for part in arguments if part is not type(None)))
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (list, tuple):
        return f"list of {_items(arguments[0])}"
    if origin is dict:
        return f"names, each with {_items(arguments[1])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "keys of its own, below"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    return {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}[annotation]


def _items(annotation: Any) -> str:
    """What a list or a mapping holds."""
    return "sections, below" if _own_section(annotation) is not None else _words(annotation)


def _default(field: FieldInfo, notes: KeyNotes) -> str:
    if field.is_required():
        return "must be given"
    default = field.default
    if default is None or default in ({}, ()):
        return notes.without or "none"
    kind = next((item for item in field.metadata if isinstance(item, Kind)), None)
    if kind is not None and kind.unit == "seconds":
        return f"`{format_duration(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`[{', '.join(default)}]`" if isinstance(default, tuple) else f"`{default}`"


def _summary(model: type[BaseModel]) -> str:
    """The first paragraph of what a section says of itself."""
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _own_section(annotation: Any) -> type[BaseModel] | None:
    """The section that a key is, be it optional; None for values, and for lists and mappings of sections."""
    parts = [part for part in get_args(annotation) if part is not type(None)] or [annotation]
    return parts[0] if len(parts) == 1 and isinstance(parts[0], type) and issubclass(parts[0], BaseModel) else None


def _sections(annotation: Any, suffix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """The sections in an annotation, each with what stands between the key and theirs."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield suffix, annotation
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        arguments = arguments[:1]
    elif origin in (list, tuple):
        suffix += ITEM
    elif origin is dict:
        suffix, arguments = f"{suffix}.{NAME}", arguments[1:]
    for part in arguments:
        yield from _sections(part, suffix)
