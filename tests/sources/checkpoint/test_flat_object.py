"""The walker over flat JSON objects agrees with a JSON decoder."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.sources.checkpoint.flat_object import FlatObjectError, iter_entries

VALUES = st.text() | st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.integers(), max_size=3))


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]), st.booleans())
def test_entries_are_those_of_a_decoder(table: dict[str, object], indent: int | None, ascii_only: bool) -> None:
    """Any flat object, spaced in any way and with any escapes, comes back entry by entry."""
    text = json.dumps(table, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    found = {json.loads(key): json.loads(value) for key, value in iter_entries(text)}
    assert found == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b'{"a"}',
        b'{"a":1}',
        b'{"a":"b"',
        b'{"a":"b",}',
        b'{"a":{"b":{}}}',
        b'{"a":"b"} x',
        b'{"a":"b}',
    ],
)
def test_what_is_no_flat_object_is_an_error(text: bytes) -> None:
    """Broken JSON, deeper nesting and text behind the object are told by position."""
    with pytest.raises(FlatObjectError):
        list(iter_entries(text))


@pytest.mark.parametrize("text", [b'{"a":"' + b"\\" * 300_000, b'{"a":{' + b'"' * 300_001, b'{"' + b"a" * 300_000])
def test_hostile_text_does_not_backtrack(text: bytes) -> None:
    """A pattern that tries every split of such text would never end."""
    with pytest.raises(FlatObjectError):
        list(iter_entries(text))
