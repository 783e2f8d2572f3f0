"""Tokenizers side by side: what they say, what they cost, and what a hostile file may not do."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from specbudget.domain.codesign import TokenComparison, TokenizerState
from specbudget.pair.side import Side, read_side
from specbudget.pair.tokens import TokenizerWatch, compare_tokenizers
from specbudget.sources.checkpoint import read_checkpoint, tokenizer
from specbudget.sources.checkpoint import tokenizer as reading

THREE = {"a": 0, "b": 1, "c": 2}


def model(folder: Path, content: dict[str, Any] | str | None, name: str = "tokenizer.json") -> Side:
    """A folder that has only a tokenizer."""
    folder.mkdir(exist_ok=True)
    if content is not None:
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return read_side(read_checkpoint(folder))


def bpe(vocab: dict[str, int], **added: int) -> dict[str, Any]:
    """A tokenizer.json in small."""
    return {
        "version": "1.0",
        "added_tokens": [{"id": index, "content": f"<{name}>", "special": True} for name, index in added.items()],
        "model": {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]]},
    }


def compared(tmp_path: Path, target: Any, drafter: Any) -> TokenComparison:
    """What a comparison of two contents says."""
    return compare_tokenizers(model(tmp_path / "target", target), model(tmp_path / "drafter", drafter))


def test_two_tokens_that_changed_places(tmp_path: Path) -> None:
    """Equal sizes prove nothing."""
    found = compared(tmp_path, bpe(THREE), bpe({"b": 0, "a": 1, "c": 2}))
    assert found.first == (0, "'a'", "'b'")
    assert (found.differing, found.shared, found.special, found.same) == (2, 3, 0, False)


def test_the_same_bytes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal digests are enough."""
    monkeypatch.setattr(tokenizer, "read_tokens", lambda path: pytest.fail("read"))
    found = compared(tmp_path, bpe(THREE), bpe(THREE))
    assert (found.state, found.same) == (TokenizerState.SAME_FILE, True)


def test_other_bytes_that_mean_the_same(tmp_path: Path) -> None:
    """Order, merges and further keys are no difference, and neither is a token that only one side has."""
    found = compared(tmp_path, bpe(THREE), json.dumps(bpe({"c": 2, "b": 1, "a": 0}, mask=3), indent=1))
    assert (found.same, found.shared, found.target_ids, found.drafter_ids) == (True, 3, 3, 4)


def test_a_token_may_be_written_in_two_ways(tmp_path: Path) -> None:
    """Escapes are the letters that they stand for."""
    found = compared(tmp_path, '{"model": {"vocab": {"\\u00e9\\n": 0}}}', '{"model":{"vocab":{"é\\u000a":0}}}')
    assert (found.same, found.shared) == (True, 1)


def test_added_tokens_are_told_apart(tmp_path: Path) -> None:
    """A renamed control token is another fault than another language."""
    found = compared(tmp_path, bpe(THREE, pad=3), bpe(THREE, fim=3))
    assert (found.differing, found.special, found.first) == (1, 1, (3, "'<pad>'", "'<fim>'"))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.5], ["c", -2]]}}, "tokenizer.json"),
        (THREE, "vocab.json"),
        (json.dumps(THREE), "vocab.json"),
    ],
    ids=["pieces in order of their ids", "a bare vocabulary", "the same as text"],
)
def test_other_layouts(tmp_path: Path, content: Any, name: str) -> None:
    """Each says which token an id means."""
    found = compare_tokenizers(model(tmp_path / "target", bpe(THREE)), model(tmp_path / "drafter", content, name))
    assert (found.same, found.shared) == (True, 3)


def test_tokens_are_shown_short_and_escaped(tmp_path: Path) -> None:
    """Nothing in a token reaches a terminal or a page as it stands."""
    found = compared(tmp_path, bpe({"\x1b[2J" + "é" * 90: 0}), bpe({"<script>": 0}))
    assert found.first is not None
    _, target, drafter = found.first
    assert target == r"'\x1b[2J" + r"\xe9" * 16 + "...'"
    assert drafter == "'<script>'"


@pytest.mark.parametrize(
    ("target", "drafter", "state"),
    [
        (bpe(THREE), None, TokenizerState.NO_DRAFTER),
        (None, bpe(THREE), TokenizerState.NO_TARGET),
        (bpe(THREE), "{", TokenizerState.UNREADABLE),
        (bpe(THREE), '{"model": {"vocab": 7}}', TokenizerState.UNREADABLE),
        (bpe(THREE), '{"model": {"vocab": ' + "[" * 5000, TokenizerState.UNREADABLE),
        (bpe(THREE), '{"model": {"vocab": {"\\ud800": 0}}}', TokenizerState.UNREADABLE),
        (bpe(THREE), '{"model": {"vocab": {"\\x": 0}}}', TokenizerState.UNREADABLE),
        (bpe(THREE), {"model": {"vocab": {"a": -1}}}, TokenizerState.UNREADABLE),
        (bpe(THREE), {"model": {"vocab": {"a": 2_000_000}}}, TokenizerState.UNREADABLE),
        (bpe(THREE), {"model": {"vocab": {"a": {"b": 0}}}}, TokenizerState.UNREADABLE),
        (bpe(THREE), {"model": {"vocab": []}}, TokenizerState.COMPARED),
    ],
    ids=["no drafter's", "no target's", "no JSON", "no table", "nested without end", "half a character",
         "no character", "an id below zero", "an id beyond all", "a table in a table", "an empty list"],
)  # fmt: skip
def test_what_cannot_be_compared(tmp_path: Path, target: Any, drafter: Any, state: TokenizerState) -> None:
    """It is unknown, never a fault and never the same."""
    found = compared(tmp_path, target, drafter)
    assert (found.state, found.same) == (state, False)


def test_other_formats_are_compared_by_their_bytes(tmp_path: Path) -> None:
    """A sentencepiece model is the same file or not known."""
    same = [model(tmp_path / name, "pieces", "tokenizer.model") for name in ("target", "drafter")]
    other = model(tmp_path / "other", "others", "tokenizer.model")
    assert compare_tokenizers(*same).same
    assert compare_tokenizers(same[0], other).state is TokenizerState.UNREADABLE


def test_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in bytes nor in tokens."""
    monkeypatch.setattr(reading, "LARGEST_TOKENIZER", 100)
    assert compared(tmp_path, bpe(THREE), bpe(THREE, mask=3)).state is TokenizerState.UNREADABLE
    monkeypatch.setattr(reading, "LARGEST_TOKENIZER", 10_000)
    monkeypatch.setattr(reading, "MOST_TOKENS", 1)
    found = compared(tmp_path, bpe(THREE), bpe(THREE, mask=3))
    assert (found.state, "id 1 is none of 1 tokens" in (found.reason or "")) == (TokenizerState.UNREADABLE, True)


def test_a_damaged_file_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """A megabyte of quotes in a text without end is given up at once."""
    text = '{"model": {"vocab": {"a": 0, ' + '"\\"": 1 ' * 150_000 + "}}}"
    started = time.monotonic()
    assert compared(tmp_path, bpe(THREE), text).state is TokenizerState.UNREADABLE
    assert time.monotonic() - started < 5


def test_an_unchanged_pair_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one of the two files is another."""
    watch, target = TokenizerWatch(), model(tmp_path / "target", bpe(THREE))
    first = watch.compare(target, model(tmp_path / "drafter", bpe(THREE, mask=3)))
    assert watch.compare(target, model(tmp_path / "drafter", None)) is first
    second = watch.compare(target, model(tmp_path / "drafter", bpe({"b": 0, "a": 1})))
    assert (first.same, second.same) == (True, False)
