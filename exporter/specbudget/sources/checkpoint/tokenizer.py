"""Which token each id means, read from tokenizer.json or vocab.json in little memory.

A vocabulary is walked entry by entry and kept as one number per id, so that a quarter of a million tokens cost two
megabytes and the thread lets others run; the text of a token is looked up again when it has to be shown.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from specbudget.sources.checkpoint.bounded_file import failure, read_bounded
from specbudget.sources.checkpoint.model import CheckpointError, ProblemKind

LARGEST_TOKENIZER = 64 * 2**20
MOST_TOKENS = 2_000_000
"""Published vocabularies stay under 300,000; an id beyond this is none of a token."""

_MOST_ADDED_BYTES = 8 * 2**20
_VOCABULARY = "vocab.json"
_WHOLE = "tokenizer.json"

# Possessive quantifiers: no backtracking, so time stays linear whatever the input.
_SPACE = rb"[ \t\r\n]*+"
_STRING = rb'("(?:[^"\\]++|\\.)*+")'
_NAMED = re.compile(_SPACE + _STRING + _SPACE + b":" + _SPACE + rb"(\d{1,9})" + _SPACE + b"([,}])", re.DOTALL)
_SCORED = re.compile(
    _SPACE
    + rb"\["
    + _SPACE
    + _STRING
    + _SPACE
    + b","
    + _SPACE
    + rb"[-+.eE\d]++"
    + _SPACE
    + rb"\]"
    + _SPACE
    + rb"([,\]])",
    re.DOTALL,
)
_OPEN = re.compile(_SPACE + rb"([\[{])" + _SPACE + rb"([\]}])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """One number per id that stands for its token within this process, 0 for an id that is not used; and the ids
    that are declared as added tokens.
    """

    path: Path
    marks: NDArray[np.int64]
    added: frozenset[int]


_decode_text = msgspec.json.Decoder(str).decode


class _Model(msgspec.Struct):
    vocab: msgspec.Raw = msgspec.Raw(b"{}")


class _Added(msgspec.Struct):
    id: int
    content: str


class _Tokenizer(msgspec.Struct):
    model: _Model
    added_tokens: msgspec.Raw = msgspec.Raw(b"[]")


def read_tokens(path: Path) -> Tokens:
    """The tokens of a tokenizer.json or vocab.json. Raises CheckpointError, for other formats too."""
    marks = array("q")
    added = set()
    for index, token, declared in _entries(path):
        if index >= len(marks):
            if index >= MOST_TOKENS:
                message = f"id {index} is none of {MOST_TOKENS} tokens; check the file"
                raise failure(path, ProblemKind.TOO_LARGE, message)
            marks.frombytes(bytes(8 * (index + 1 - len(marks))))
        marks[index] = hash(token) or 1
        if declared:
            added.add(index)
    return Tokens(path=path, marks=np.array(marks, dtype=np.int64), added=frozenset(added))


def token_text(path: Path, index: int) -> str:
    """The text of one token, the last that has this id; empty when none has. Raises CheckpointError."""
    found = b""
    for other, token, _ in _entries(path):
        if other == index:
            found = token
    return found.decode("utf-8", "replace")


def _entries(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Each (id, token in UTF-8, whether it is an added one) in the order of the file, added tokens last."""
    if path.name not in (_WHOLE, _VOCABULARY):
        raise failure(path, ProblemKind.UNSUPPORTED, f"only {_WHOLE} and {_VOCABULARY} are read; add one")
    text = read_bounded(path, LARGEST_TOKENIZER)
    if path.name == _VOCABULARY:
        yield from _vocabulary(path, memoryview(text))
        return
    try:
        tokenizer = msgspec.json.decode(text, type=_Tokenizer)
        if len(memoryview(tokenizer.added_tokens)) > _MOST_ADDED_BYTES:
            raise failure(path, ProblemKind.TOO_LARGE, "has too much text", key="added_tokens")
        declared = msgspec.json.decode(tokenizer.added_tokens, type=list[_Added])
    except CheckpointError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise failure(path, ProblemKind.MALFORMED, f"is no tokenizer: {error}; restore the file") from error
    yield from _vocabulary(path, memoryview(tokenizer.model.vocab))
    for token in declared:
        if token.id >= 0:
            yield token.id, token.content.encode(), True


def _vocabulary(path: Path, text: memoryview) -> Iterator[tuple[int, bytes, bool]]:
    """A table of token -> id (BPE, WordPiece), or a list of (token, score) by id (Unigram)."""
    start = _OPEN.match(text)
    if start is None:
        raise _malformed(path, 0)
    if start[2] is not None:
        return
    named, position, count = start[1] == b"{", start.start(1) + 1, 0
    pattern, last = (_NAMED, b"}") if named else (_SCORED, b"]")
    while True:
        # anchored, entry by entry: a search would try every later quote of a damaged file
        entry = pattern.match(text, position)
        if entry is None:
            raise _malformed(path, position)
        yield int(entry[2]) if named else count, _plain(path, entry[1]), False
        if entry[3 if named else 2] == last:
            return
        position, count = entry.end(), count + 1


def _plain(path: Path, raw: bytes) -> bytes:
    """The token behind a JSON string."""
    if b"\\" not in raw:
        return raw[1:-1]
    try:
        return _decode_text(raw).encode()
    except (msgspec.DecodeError, UnicodeError) as error:
        raise failure(path, ProblemKind.MALFORMED, f"a token is no valid text: {error}", key="vocab") from error


def _malformed(path: Path, position: int) -> CheckpointError:
    return failure(path, ProblemKind.MALFORMED, f"unexpected text at byte {position} of the vocabulary", key="vocab")
