"""The parameters of a block drafter from its shape alone, for when there is a config and no tensors yet.

Source: SGLang 0.5.23 `models/dflash.py` and `models/dspark.py` (modules and their sizes); exact on the published counts
of Ling-3.0-flash-dspark and of the DSpark drafters of Kimi-K3 and GLM-5.2.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDrafterShape:
    """A DSpark or DFlash drafter with Qwen3-shaped layers; a DFlash one has `markov_rank` 0 and no confidence head.

    `target_hidden` is the width of the features it is given, its own where it is not stated otherwise.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    taps: int
    vocabulary: int
    target_hidden: int | None = None
    markov_rank: int = 0
    markov_type: str = "vanilla"
    confidence_head: bool = False
    confidence_with_markov: bool = True
    attention_bias: bool = False

    @property
    def vocabulary_matrix(self) -> int:
        """Parameters of an embedding or a head: an engine takes both from the target, a checkpoint may hold them."""
        return self.vocabulary * self.hidden


def drafter_parameters(shape: BlockDrafterShape, *, vocabulary_matrices: int = 0) -> int | None:
    """All parameters, with so many matrices of vocabulary times hidden size; without them it is what is loaded.

    None for a Markov head of a type that is not known.
    """
    markov = _markov_head(shape)
    if markov is None:
        return None
    projection = shape.taps * (shape.target_hidden or shape.hidden) * shape.hidden
    norms = 2 * shape.hidden
    confidence = 0
    if shape.confidence_head:
        confidence = shape.hidden + (shape.markov_rank if shape.confidence_with_markov else 0) + 1
    body = shape.layers * _layer(shape) + projection + norms + markov + confidence
    return body + vocabulary_matrices * shape.vocabulary_matrix


def _layer(shape: BlockDrafterShape) -> int:
    hidden, queries, keys = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = 2 * hidden * queries + 2 * hidden * keys
    biases = queries + 2 * keys + hidden if shape.attention_bias else 0
    return attention + biases + 3 * hidden * shape.intermediate + 2 * hidden + 2 * shape.head_dim


def _markov_head(shape: BlockDrafterShape) -> int | None:
    rank, hidden = shape.markov_rank, shape.hidden
    tables = 2 * shape.vocabulary * rank
    if rank == 0 or shape.markov_type == "vanilla":
        return tables
    if shape.markov_type == "gated":
        return tables + (hidden + rank) * rank + rank
    if shape.markov_type == "rnn":
        return tables + (2 * rank + hidden) * 3 * rank + 3 * rank
    return None
