"""KV slots that a running request holds beyond its committed tokens, for the drafts of its next verify step.

Sources: SGLang 0.5.18 and 0.5.23 `mem_cache/allocation_sizing.py` (`get_alloc_len_per_decode`,
`get_alloc_reserve_per_decode`) and `speculative/eagle_worker_v2.py`; before 0.5.18 the worker without overlap
(`eagle_worker.py`, `_draft_preprocess_decode`), which takes one step's slots and gives them back.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.drafter import DraftAlgorithm

_READ = ((0, 5, 18), (0, 5, 23))
_FIRST_DOUBLED, _FIRST_SPREAD = _READ


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReserve:
    """Slots per request: what one step may take, how often it is held, and what the drafter's passes write.

    `times` is 2 where the next step is prepared while one still runs. `is_read` says whether the rule was read in
    this very release or is taken from its neighbour.
    """

    step: int
    times: int
    written: int
    is_read: bool

    @property
    def reserved(self) -> int:
        """Slots held per request."""
        return self.step * self.times


def step_reserve(
    release: tuple[int, ...],
    *,
    algorithm: DraftAlgorithm,
    num_steps: int,
    topk: int,
    draft_tokens: int,
    page: int,
    decode_context_parallel: int = 1,
) -> StepReserve:
    """The reserve of one request. `release` is the engine's version as numbers; empty: the latest that was read.

    The first draft of a chain comes from the pass that extends the drafter over the accepted tokens, so that only the
    others write slots of their own: one step's less than what is reserved.
    """
    release = release[:3] or _FIRST_SPREAD
    doubled = release >= _FIRST_DOUBLED
    # from 0.5.23 on pages count over all ranks of decode context parallelism
    page *= decode_context_parallel if release >= _FIRST_SPREAD else 1
    if page == 1 or topk == 1 or algorithm is DraftAlgorithm.NGRAM:
        drafts = num_steps * topk
    else:
        # each branch of the tree begins within a page of its own
        drafts = (page - 1 + num_steps + page - 1) // page * page * topk
    return StepReserve(
        step=max(drafts, draft_tokens),
        times=2 if doubled else 1,
        written=(num_steps - 1) * topk if algorithm.is_chain else draft_tokens,
        is_read=release in _READ,
    )
