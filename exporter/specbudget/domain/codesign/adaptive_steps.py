"""Adaptive speculation: what turns it off, and how many steps it may take.

Read from SGLang 0.5.18 and 0.5.23 speculative/adaptive_spec_params.py (`adaptive_unsupported_reason`,
`DEFAULT_ADAPTIVE_CONFIG`).
"""

from __future__ import annotations

from specbudget.domain.codesign.launch import EngineFlags
from specbudget.domain.drafter import DraftAlgorithm

ADAPTS = frozenset({DraftAlgorithm.EAGLE, DraftAlgorithm.MTP, DraftAlgorithm.EAGLE3})

_FIRST_CANDIDATES, _CANDIDATES = (0, 1, 3, 7), (0, 1, 3, 5, 7)


def candidate_steps(*, first: bool) -> tuple[int, ...]:
    """Steps that an adaptive engine without a file of its own may take; `first`: it is 0.5.18."""
    return _FIRST_CANDIDATES if first else _CANDIDATES


def most_steps(flags: EngineFlags) -> int | None:
    """The most steps that it may take, for which the engine sizes its memory; None with a file of its own."""
    return None if flags.speculative_adaptive_config is not None else max(_CANDIDATES)


def hindrances(
    algorithm: DraftAlgorithm | None, *, topk: int | None, attention_dp: bool | None, flags: EngineFlags
) -> list[str]:
    """Why SGLang turns adaptive speculation off and runs fixed steps; empty where it stays on."""
    reasons = (
        (algorithm not in ADAPTS, f"the algorithm is {algorithm}"),
        (topk not in (None, 1), f"--speculative-eagle-topk is {topk}"),
        (bool(attention_dp), "attention is data parallel"),
        (bool(flags.enable_multi_layer_eagle), "--enable-multi-layer-eagle"),
        (bool(flags.enable_two_batch_overlap), "--enable-two-batch-overlap"),
        (bool(flags.enable_pdmux), "--enable-pdmux"),
    )
    return [words for holds, words in reasons if holds]
