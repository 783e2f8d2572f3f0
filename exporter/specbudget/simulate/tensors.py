"""The tensors of the pair that the stand-in serves: Ling-3.0-flash and its DSpark drafter, names and shapes.

Names follow the loaders of SGLang 0.5.23 (models/bailing_moe_v3.py, models/bailing_moe_nextn.py,
models/dspark.py); shapes follow the two configurations in `configs`. Nothing here reads or writes files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from specbudget.simulate.configs import DRAFTER_CONFIG as D
from specbudget.simulate.configs import TARGET_CONFIG as T

ELEMENT_BYTES = {"BF16": 2, "F32": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a checkpoint.

    `sharded` says whether tensor parallelism splits it (SGLang's column, row and vocabulary parallel layers)
    or every rank holds it whole (norms, routers, low-rank input projections).
    `loaded` is False for tensors that the engine skips: a DSpark drafter's embedding and head, and the MTP
    layer when another drafter is used.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "BF16"
    sharded: bool = True
    loaded: bool = True

    @property
    def parameters(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size on disk in bytes."""
        return self.parameters * ELEMENT_BYTES[self.dtype]


def is_linear_attention(layer: int) -> bool:
    """True for the KDA layers; every `layer_group_size`-th layer is MLA (BailingHybridConfig.layers_block_type)."""
    return bool((layer + 1) % T["layer_group_size"])


def _kda(prefix: str) -> Iterator[Tensor]:
    hidden, heads, dim = T["hidden_size"], T["num_attention_heads"], T["head_dim"]
    wide = heads * dim
    for name in ("q_proj", "k_proj", "v_proj"):
        yield Tensor(name=f"{prefix}.{name}.weight", shape=(wide, hidden))
    for name in ("q_conv1d", "k_conv1d", "v_conv1d"):
        yield Tensor(name=f"{prefix}.{name}.weight", shape=(wide, 1, T["short_conv_kernel_size"]))
    for name in ("f", "g"):
        yield Tensor(name=f"{prefix}.{name}_a_proj.weight", shape=(dim, hidden), sharded=False)
        yield Tensor(name=f"{prefix}.{name}_b_proj.weight", shape=(wide, dim))
    yield Tensor(name=f"{prefix}.b_proj.weight", shape=(heads, hidden))
    yield Tensor(name=f"{prefix}.A_log", shape=(heads,), dtype="F32")
    yield Tensor(name=f"{prefix}.dt_bias", shape=(wide,), dtype="F32")
    yield Tensor(name=f"{prefix}.o_norm.weight", shape=(dim,), sharded=False)
    yield Tensor(name=f"{prefix}.dense.weight", shape=(hidden, wide))


def _mla(prefix: str, *, loaded: bool = True) -> Iterator[Tensor]:
    hidden, heads, rank = T["hidden_size"], T["num_attention_heads"], T["kv_lora_rank"]
    nope, rope, value = T["qk_nope_head_dim"], T["qk_rope_head_dim"], T["v_head_dim"]
    yield Tensor(name=f"{prefix}.q_proj.weight", shape=(heads * (nope + rope), hidden), loaded=loaded)
    yield Tensor(name=f"{prefix}.kv_a_proj_with_mqa.weight", shape=(rank + rope, hidden), sharded=False, loaded=loaded)
    yield Tensor(name=f"{prefix}.kv_a_layernorm.weight", shape=(rank,), sharded=False, loaded=loaded)
    yield Tensor(name=f"{prefix}.kv_b_proj.weight", shape=(heads * (nope + value), rank), loaded=loaded)
    yield Tensor(name=f"{prefix}.dense.weight", shape=(hidden, heads * value), loaded=loaded)


def _mlp(prefix: str, width: int, *, loaded: bool = True) -> Iterator[Tensor]:
    hidden = T["hidden_size"]
    yield Tensor(name=f"{prefix}.gate_proj.weight", shape=(width, hidden), loaded=loaded)
    yield Tensor(name=f"{prefix}.up_proj.weight", shape=(width, hidden), loaded=loaded)
    yield Tensor(name=f"{prefix}.down_proj.weight", shape=(hidden, width), loaded=loaded)


def _experts(prefix: str, *, loaded: bool = True) -> Iterator[Tensor]:
    hidden, width, count = T["hidden_size"], T["moe_intermediate_size"], T["num_experts"]
    yield Tensor(name=f"{prefix}.gate.weight", shape=(count, hidden), sharded=False, loaded=loaded)
    yield Tensor(name=f"{prefix}.gate.expert_bias", shape=(count,), dtype="F32", sharded=False, loaded=loaded)
    yield from _mlp(f"{prefix}.shared_experts", T["moe_shared_expert_intermediate_size"], loaded=loaded)
    for expert in range(count):
        yield from _mlp(f"{prefix}.experts.{expert}", width, loaded=loaded)


def _layer_norms(prefix: str, *, loaded: bool = True) -> Iterator[Tensor]:
    for name in ("input_layernorm", "post_attention_layernorm"):
        yield Tensor(name=f"{prefix}.{name}.weight", shape=(T["hidden_size"],), sharded=False, loaded=loaded)


def target_layers() -> Iterator[list[Tensor]]:
    """The target's tensors, one list per part: embedding, each layer, the MTP layer, final norm and head."""
    hidden, vocab, layers = T["hidden_size"], T["vocab_size"], T["num_hidden_layers"]
    yield [Tensor(name="model.word_embeddings.weight", shape=(vocab, hidden))]
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        attention = _kda if is_linear_attention(layer) else _mla
        dense = layer < T["first_k_dense_replace"]
        mlp = _mlp(f"{prefix}.mlp", T["intermediate_size"]) if dense else _experts(f"{prefix}.mlp")
        yield [*_layer_norms(prefix), *attention(f"{prefix}.attention"), *mlp]
    yield mtp_layer(loaded=False)
    yield [
        Tensor(name="model.norm.weight", shape=(hidden,), sharded=False),
        Tensor(name="lm_head.weight", shape=(vocab, hidden)),
    ]


def mtp_layer(*, loaded: bool) -> list[Tensor]:
    """The target's MTP layer, which the engine loads when it is the drafter."""
    hidden = T["hidden_size"]
    prefix = f"model.layers.{T['num_hidden_layers']}"
    return [
        *(
            Tensor(name=f"{prefix}.{name}.weight", shape=(hidden,), sharded=False, loaded=loaded)
            for name in ("enorm", "hnorm", "final_layernorm")
        ),
        Tensor(name=f"{prefix}.eh_proj.weight", shape=(hidden, 2 * hidden), sharded=False, loaded=loaded),
        *_layer_norms(prefix, loaded=loaded),
        *_mla(f"{prefix}.attention", loaded=loaded),
        *_experts(f"{prefix}.mlp", loaded=loaded),
    ]


def drafter_tensors() -> list[Tensor]:
    """The DSpark drafter's tensors: 1,363,707,905 parameters, of which 558,925,825 are loaded."""
    hidden, vocab, heads, dim = D["hidden_size"], D["vocab_size"], D["num_attention_heads"], D["head_dim"]
    kv, rank, taps = D["num_key_value_heads"], D["markov_rank"], len(D["target_layer_ids"])
    tensors = [
        Tensor(name="embed_tokens.weight", shape=(vocab, hidden), loaded=False),
        Tensor(name="fc.weight", shape=(hidden, taps * hidden), sharded=False),
        Tensor(name="hidden_norm.weight", shape=(hidden,), sharded=False),
    ]
    for layer in range(D["num_hidden_layers"]):
        prefix = f"layers.{layer}"
        attention = f"{prefix}.self_attn"
        tensors += [
            Tensor(name=f"{attention}.q_proj.weight", shape=(heads * dim, hidden)),
            Tensor(name=f"{attention}.k_proj.weight", shape=(kv * dim, hidden)),
            Tensor(name=f"{attention}.v_proj.weight", shape=(kv * dim, hidden)),
            Tensor(name=f"{attention}.o_proj.weight", shape=(hidden, heads * dim)),
            Tensor(name=f"{attention}.q_norm.weight", shape=(dim,), sharded=False),
            Tensor(name=f"{attention}.k_norm.weight", shape=(dim,), sharded=False),
            *_mlp(f"{prefix}.mlp", D["intermediate_size"]),
            *_layer_norms(prefix),
        ]
    return [
        *tensors,
        Tensor(name="norm.weight", shape=(hidden,), sharded=False),
        Tensor(name="markov_head.markov_w1.weight", shape=(vocab, rank), sharded=False),
        Tensor(name="markov_head.markov_w2.weight", shape=(vocab, rank), sharded=False),
        Tensor(name="confidence_head.proj.weight", shape=(1, hidden + rank), sharded=False),
        Tensor(name="confidence_head.proj.bias", shape=(1,), sharded=False),
        Tensor(name="lm_head.weight", shape=(vocab, hidden), loaded=False),
    ]
