"""The tokenizers of a pair side by side, compared by what the ids mean; read again only when one of them changed."""

from __future__ import annotations

from specbudget.domain.codesign import TokenComparison, TokenizerState
from specbudget.pair.side import Side
from specbudget.sources.checkpoint.model import CheckpointError


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
    # numpy comes with these: most pairs need neither
    from specbudget.pair.token_ids import compare_ids
    from specbudget.sources.checkpoint.tokenizer import read_tokens

    try:
        return compare_ids(read_tokens(target.tokenizer), read_tokens(drafter.tokenizer))
    except CheckpointError as error:
        problem = error.problem
        return TokenComparison(state=TokenizerState.UNREADABLE, reason=f"{problem.file.name}: {problem.message}")
