"""Which token each id means, read from tokenizer.json or vocab.json within bounds of size and memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from specbudget.sources.checkpoint.bounded_file import failure, read_bounded
from specbudget.sources.checkpoint.model import CheckpointError, ProblemKind

LARGEST_TOKENIZER = 64 * 2**20
MOST_TOKENS = 2_000_000
"""Published vocabularies stay under 300,000. Counted by commas before anything is decoded, so that a small hostile
file cannot become a large table."""

_LARGEST_ID = 2**31
_VOCABULARY = "vocab.json"
_WHOLE = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The token of each id in use, and which ids are declared as added tokens."""

    by_id: dict[int, str]
    added: frozenset[int]


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
    if path.name not in (_WHOLE, _VOCABULARY):
        raise failure(path, ProblemKind.UNSUPPORTED, f"only {_WHOLE} and {_VOCABULARY} are read; add one")
    text = read_bounded(path, LARGEST_TOKENIZER)
    try:
        if path.name == _VOCABULARY:
            return Tokens(by_id=_by_id(path, msgspec.Raw(text)), added=frozenset())
        tokenizer = msgspec.json.decode(text, type=_Tokenizer)
        by_id = _by_id(path, tokenizer.model.vocab)
        added = _counted(path, tokenizer.added_tokens)
        declared = msgspec.json.decode(added, type=list[_Added])
    except CheckpointError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise failure(path, ProblemKind.MALFORMED, f"is no tokenizer: {error}; restore the file") from error
    for token in declared:
        if 0 <= token.id < _LARGEST_ID:
            by_id[token.id] = token.content
    return Tokens(by_id=by_id, added=frozenset(token.id for token in declared))


def _by_id(path: Path, raw: msgspec.Raw) -> dict[int, str]:
    """A table of token -> id (BPE, WordPiece), or a list of (token, score) by id (Unigram)."""
    text = _counted(path, raw)
    if bytes(text[:64]).lstrip().startswith(b"["):
        return {index: pair[0] for index, pair in enumerate(msgspec.json.decode(text, type=list[tuple[str, float]]))}
    table = msgspec.json.decode(text, type=dict[str, int])
    return {index: token for token, index in table.items() if 0 <= index < _LARGEST_ID}


def _counted(path: Path, raw: msgspec.Raw) -> bytes:
    text = bytes(raw)
    if text.count(b",") > MOST_TOKENS:
        raise failure(path, ProblemKind.TOO_LARGE, f"more than {MOST_TOKENS} tokens; check the file", key="vocab")
    return text
