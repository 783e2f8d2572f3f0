"""What the contents of small files and tensors showed: tokenizers side by side, and the map of a draft vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TokenizerState(StrEnum):
    """How two tokenizers were compared, or why they could not be."""

    SAME_FILE = "same_file"
    """Both files have the same bytes; nothing was read further."""
    COMPARED = "compared"
    NO_DRAFTER = "no_drafter"
    """The drafter has none, which it may: engines take the target's."""
    NO_TARGET = "no_target"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenComparison:
    """Two tokenizers over the token ids that both use.

    `target_ids` and `drafter_ids` are one more than the highest id in use; None where no content was read.
    `differing` counts ids that mean different tokens, `special` those of them that both sides declare as added
    tokens. `first` is the first such id with both tokens, short and escaped. `reason` says what is unreadable.
    """

    state: TokenizerState
    shared: int = 0
    differing: int = 0
    special: int = 0
    first: tuple[int, str, str] | None = None
    target_ids: int | None = None
    drafter_ids: int | None = None
    reason: str | None = None

    @property
    def same(self) -> bool:
        """Whether every id that both use is known to mean the same token."""
        return self.state is TokenizerState.SAME_FILE or (
            self.state is TokenizerState.COMPARED and self.differing == 0 and self.shared > 0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyMap:
    """The tensors d2t and t2d. Draft id i stands for the target's token i + d2t[i].

    `least` and `most` are the lowest and the highest token; `worst` the first draft id that is not above its
    predecessor, with both tokens; `distinct` how many tokens there are. `flagged` counts the true entries of t2d,
    which has `flags` of them in all; `agrees` says whether they are d2t's tokens; all three are None without a t2d.
    """

    rows: int
    least: int
    most: int
    distinct: int
    worst: tuple[int, int, int] | None = None
    flags: int | None = None
    flagged: int | None = None
    agrees: bool | None = None
