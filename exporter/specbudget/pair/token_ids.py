"""Two vocabularies side by side, id by id."""

from __future__ import annotations

import numpy as np

from specbudget.domain.codesign import TokenComparison, TokenizerState
from specbudget.sources.checkpoint.tokenizer import Tokens, token_text

_LONGEST_SHOWN = 20


def compare_ids(target: Tokens, drafter: Tokens) -> TokenComparison:
    """Id by id, over those that both use; the first that differ are told with their tokens."""
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
