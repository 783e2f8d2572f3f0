"""The tokenizers of a pair side by side, compared by what the ids mean; read again only when one of them changed."""

from __future__ import annotations

import numpy as np

from specbudget.domain.codesign import TokenComparison, TokenizerState
from specbudget.pair.side import Side
from specbudget.sources.checkpoint.model import CheckpointError
from specbudget.sources.checkpoint.tokenizer import Tokens, read_tokens, token_text

_LONGEST_SHOWN = 20


class TokenizerWatch:
    """Compares the tokenizers of two sides, and remembers the last answer for the same two files."""

    def __init__(self) -> None:
        self._last: tuple[tuple[object, ...], TokenComparison] | None = None

    def compare(self, target: Side, drafter: Side) -> TokenComparison:
        """The comparison. Reads both files (up to 64 MiB each) when their digests differ; never raises for content."""
        key = tuple((side.tokenizer, side.fingerprints.tokenizer) for side in (target, drafter))
        if self._last is None or self._last[0] != key:
            self._last = (key, compare_tokenizers(target, drafter))
        return self._last[1]


def compare_tokenizers(target: Side, drafter: Side) -> TokenComparison:
    """The comparison, read now."""
    if drafter.tokenizer is None:
        return TokenComparison(state=TokenizerState.NO_DRAFTER)
    if target.tokenizer is None:
        return TokenComparison(state=TokenizerState.NO_TARGET)
    digests = target.fingerprints.tokenizer, drafter.fingerprints.tokenizer
    if digests[0] is not None and digests[0] == digests[1] and target.tokenizer.name == drafter.tokenizer.name:
        return TokenComparison(state=TokenizerState.SAME_FILE)
    try:
        return _compare(read_tokens(target.tokenizer), read_tokens(drafter.tokenizer))
    except CheckpointError as error:
        problem = error.problem
        return TokenComparison(state=TokenizerState.UNREADABLE, reason=f"{problem.file.name}: {problem.message}")


def _compare(target: Tokens, drafter: Tokens) -> TokenComparison:
    """Id by id, over those that both use."""
    count = min(target.marks.size, drafter.marks.size)
    ours, theirs = target.marks[:count], drafter.marks[:count]
    shared = (ours != 0) & (theirs != 0)
    differing = np.flatnonzero(shared & (ours != theirs))
    first = None
    if differing.size:
        index = int(differing[0])
        first = index, _shown(token_text(target.path, index)), _shown(token_text(drafter.path, index))
    both = target.added & drafter.added
    return TokenComparison(
        state=TokenizerState.COMPARED,
        shared=int(shared.sum()),
        differing=differing.size,
        special=sum(index in both for index in differing.tolist()),
        first=first,
        target_ids=target.marks.size,
        drafter_ids=drafter.marks.size,
    )


def _shown(token: str) -> str:
    """A token for people: short, quoted, and nothing in it that a terminal or a web page would obey."""
    return ascii(token if len(token) <= _LONGEST_SHOWN else token[:_LONGEST_SHOWN] + "...")
