"""How many parameters a drafter has by its config alone, for a checkpoint whose tensors are not there."""

from __future__ import annotations

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.drafter_parameters import BlockDrafterShape
from specbudget.domain.kv_geometry import AttentionLayer
from specbudget.sources.checkpoint.model import Checkpoint

_PLAIN_MODELS = ("qwen3", "llama")


def block_drafter_shape(checkpoint: Checkpoint, algorithm: DraftAlgorithm | None) -> BlockDrafterShape | None:
    """The shape that a complete config of a block drafter states, exact for drafters of the plain kind.

    None where a part of it is missing, where modules stand beside the plain ones, and for a drafter inside its
    target's files. How many vocabulary matrices a checkpoint holds no config says: an engine loads none of them.
    """
    facts, geometry = checkpoint.facts, checkpoint.geometry
    if facts is None or geometry is None or algorithm is None or not algorithm.is_block:
        return None
    if facts.bundles_dspark or facts.extra_modules or not (facts.model_type or "qwen3").startswith(_PLAIN_MODELS):
        return None
    layers = [layer for layer in geometry.layers if isinstance(layer, AttentionLayer)]
    kinds = {(layer.kv_heads, layer.head_dim, layer.v_head_dim) for layer in layers}
    if len(kinds) != 1 or len(layers) != len(geometry.layers):
        return None
    kv_heads, head_dim, v_head_dim = kinds.pop()
    hidden, heads, inter, vocabulary = (
        facts.hidden_size,
        facts.num_attention_heads,
        facts.intermediate_size,
        facts.vocab_size,
    )
    taps, dspark = facts.target_layer_ids, algorithm is DraftAlgorithm.DSPARK
    if hidden is None or heads is None or inter is None or vocabulary is None or not taps or head_dim != v_head_dim:
        return None
    if dspark and not facts.markov_rank:
        return None
    return BlockDrafterShape(
        layers=len(layers),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=inter,
        taps=len(taps),
        vocabulary=vocabulary,
        target_hidden=facts.target_hidden_size,
        markov_rank=(facts.markov_rank or 0) if dspark else 0,
        markov_type=(facts.markov_head_type or "vanilla").lower(),
        # A config that does not say so has one: engines take it for enabled then.
        confidence_head=dspark and facts.confidence_head is not False,
        confidence_with_markov=facts.confidence_with_markov is not False,
        attention_bias=facts.attention_bias is True,
    )
