"""Walk a flat JSON object entry by entry, so that a large one never becomes a tree of Python objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Possessive quantifiers: no backtracking, so time and memory stay linear whatever the input.
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_ENTRY = re.compile(
    rb"[ \t\r\n]*+(?P<key>" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+"
    rb"(?P<value>" + _STRING + rb'|\{(?:[^{}"]++|' + _STRING + rb")*+\})"
    rb"[ \t\r\n]*+(?P<after>[,}])",
    re.DOTALL,
)
_EMPTY = re.compile(rb"[ \t\r\n]*+\}")
_START = re.compile(rb"[ \t\r\n]*+\{")
_REST = re.compile(rb"[ \t\r\n\0]*+")


class FlatObjectError(ValueError):
    """The text is not a flat object: not JSON, or nested deeper. `position` is the byte where it stops."""

    def __init__(self, position: int) -> None:
        super().__init__(f"unexpected text at byte {position}")
        self.position = position


@dataclass(frozen=True, slots=True)
class FirstEntry:
    """The first entry of an object: its raw key, the bytes where it begins and ends, and what follows (, or })."""

    key: bytes
    start: int
    end: int
    after: bytes


def first_entry(text: bytes | memoryview) -> FirstEntry | None:
    """The first entry of an object; None for an empty one or for anything else."""
    start = _START.match(text)
    entry = None if start is None else _ENTRY.match(text, start.end())
    if start is None or entry is None:
        return None
    return FirstEntry(entry["key"], start.end(), entry.end(), entry["after"])


def iter_entries(text: bytes | memoryview, position: int | None = None) -> Iterator[tuple[bytes, bytes]]:
    """Yield each (key, value) of an object whose values are strings or objects of scalars and arrays.

    Key and value are raw JSON, quotes included. With `position` the walk goes on where an entry must begin. Raises
    FlatObjectError; entries before the error are yielded.
    """
    if position is None:
        start = _START.match(text)
        if start is None:
            raise FlatObjectError(0)
        position = start.end()
        empty = _EMPTY.match(text, position)
        if empty is not None:
            _check_rest(text, empty.end())
            return
    while True:
        entry = _ENTRY.match(text, position)
        if entry is None:
            raise FlatObjectError(position)
        yield entry["key"], entry["value"]
        position = entry.end()
        if entry["after"] == b"}":
            _check_rest(text, position)
            return


def _check_rest(text: bytes | memoryview, position: int) -> None:
    rest = _REST.match(text, position)
    if rest is not None and rest.end() != len(text):
        raise FlatObjectError(rest.end())
