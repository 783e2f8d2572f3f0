"""Where a tensor belongs and how it is spread over ranks, from its name alone.

Names: Hugging Face checkpoints of the model families SGLang serves. Sharding: SGLang 0.5.23 `models/`
(llama.py, deepseek_v2.py, dflash.py, dspark.py, deepseek_v4_dspark.py, dspark_minimax.py, kimi_linear.py,
qwen3_next.py, bailing_moe_v3.py).
"""

from __future__ import annotations

from specbudget.sources.checkpoint.model import Sharding, TensorPart

_EMBEDDINGS = frozenset({"embed_tokens", "word_embeddings", "wte", "tok_embeddings", "embed_in"})
_HEADS = frozenset({"lm_head", "embed_out"})
_SIDE = frozenset({"d2t", "t2d", "rotary_emb", "inv_freq"})
_MTP = frozenset({"mtp", "nextn", "mtp_layers", "mtp_block"})
_DSPARK = "dspark"
"""A block drafter inside its target's files, as MiniMax M3 names it; DeepSeek V4 names its `mtp`."""

_KV = frozenset({"k_proj", "v_proj"})
_QKV = frozenset({"qkv_proj", "query_key_value", "qkv", "c_attn"})
_ROW_SPLIT = frozenset({"o_proj", "down_proj", "out_proj", "dense", "w2", "wo", "dense_4h_to_h"})
"""Split along their input, so that a bias of theirs is whole on every rank."""
_COLUMN_SPLIT = frozenset(
    {
        *("q_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "q_b_proj", "kv_b_proj", "g_proj"),
        *("b_proj", "f_b_proj", "g_b_proj", "in_proj", "in_proj_qkvz", "in_proj_qkv", "in_proj_ba", "in_proj_z"),
        *("in_proj_a", "in_proj_b", "conv1d", "q_conv1d", "k_conv1d", "v_conv1d", "A_log", "dt_bias", "sinks"),
        *("gate_up_proj_blocks", "down_proj_blocks", "gate_up_proj_scales", "down_proj_scales", "dense_h_to_4h"),
        *("wq", "wq_b", "wkv_b", "wo_a", "wo_b", "linear_fc1", "linear_fc2", "fc1", "fc2", "D"),
    }
)
_REPLICATED = frozenset(
    {
        *("fc", "eh_proj", "gate", "router", "shared_expert_gate", "q_a_proj", "kv_a_proj_with_mqa", "kv_a_proj"),
        *("f_a_proj", "g_a_proj", "markov_head", "confidence_head", "indexer", "e_score_correction_bias"),
        *("prefix_gru", "embed_proj", "wq_a", "wkv", "wkv_a", "attn_sink", "enorm", "hnorm", "input_conditioner"),
        *("candidate_selector", "lilicorr", "attention_conv", "mlp_conv", "main_proj"),
    }
)


def place(name: str, *, flat: bool, extra_layer: bool) -> tuple[TensorPart, Sharding]:
    """The part and the sharding of a tensor.

    `flat` says that it has fewer than two dimensions, `extra_layer` that its layer lies beyond the model's own ones,
    as those of bundled MTP layers do.
    """
    words = name.split(".")
    dspark = _DSPARK in words
    mtp = extra_layer or not _MTP.isdisjoint(words)
    if not _SIDE.isdisjoint(words):
        return TensorPart.SIDE, Sharding.REPLICATED
    short = _short_module(words)
    embedding = not _EMBEDDINGS.isdisjoint(words) or short == "embed"
    head = not _HEADS.isdisjoint(words) or "shared_head.head." in name or words[0] == "output" or short == "head"
    if embedding or head:
        own = TensorPart.EMBEDDING if embedding else TensorPart.HEAD
        return (TensorPart.MTP_COPY if mtp or dspark else own), Sharding.VOCABULARY
    if dspark:
        return TensorPart.DSPARK, _sharding(words, flat=flat)
    return (TensorPart.MTP if mtp else TensorPart.BODY), _sharding(words, flat=flat)


def _short_module(words: list[str]) -> str | None:
    """The module of `embed.weight` and `mtp.0.head.weight`, DeepSeek V4's own names; none of `markov_head.head`."""
    if len(words) < 2:
        return None
    inside = words[:-2]
    outermost = not inside or inside == ["model"] or (inside[-1].isdigit() and inside[-2:-1] == ["mtp"])
    return words[-2] if outermost else None


def _sharding(words: list[str], *, flat: bool) -> Sharding:
    if any(word in _REPLICATED or "norm" in word for word in words):
        return Sharding.REPLICATED
    for word in reversed(words):
        if word in _KV:
            return Sharding.KV
        if word in _QKV:
            return Sharding.QKV
        if word in _ROW_SPLIT:
            return Sharding.REPLICATED if flat else Sharding.SPLIT
        if word in _COLUMN_SPLIT:
            return Sharding.SPLIT
    if "experts" in words:
        return Sharding.SPLIT
    return Sharding.REPLICATED if flat else Sharding.UNKNOWN
