"""The geometry of a model's KV cache and the bytes one token takes of it on one device.

Formulas: SGLang 0.5.18 and 0.5.23, `model_executor/pool_configurator.py` (`_compute_cell_size`),
`configs/model_config.py` (`get_num_kv_heads`) and `mem_cache/memory_pool.py` (the padding page).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from specbudget.domain.recurrent_state import RecurrentState

_INDEX_QUANT_BLOCK = 128
_SCALE_BYTES = 4
_ROPE_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayer:
    """A layer with keys and values per head: MHA, GQA or MQA, by the number of KV heads.

    `window` is the attention window in tokens, the current token included; None: the whole context.
    """

    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentLayer:
    """A layer with one compressed latent per token (MLA), which every rank holds in full.

    `latent_dim` is kv_lora_rank + qk_rope_head_dim. `index_head_dim` is the width of the quantised index keys
    of sparse attention (DSA), for a layer that stores its own; None for a layer without.
    """

    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int | None = None
    window: int | None = None

    @property
    def latent_dim(self) -> int:
        """Elements per token."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @property
    def index_bytes(self) -> int:
        """Bytes per token of the index keys: one byte per element and one scale per 128 of them."""
        width = self.index_head_dim
        return 0 if width is None else width + width // _INDEX_QUANT_BLOCK * _SCALE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentLayer:
    """A linear-attention, Mamba, convolution or pure MLP layer: it holds no KV.

    `state` is what it keeps per request slot instead; None where that is not known.
    """

    state: RecurrentState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKvLayer:
    """A layer that reads the KV of another layer and stores none."""


Layer = AttentionLayer | LatentLayer | RecurrentLayer | SharedKvLayer
KvLayer = AttentionLayer | LatentLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGeometry:
    """The layers of one model, first to last."""

    layers: tuple[Layer, ...]

    @property
    def kv_layers(self) -> tuple[KvLayer, ...]:
        """The layers that hold KV of their own."""
        return tuple(layer for layer in self.layers if isinstance(layer, AttentionLayer | LatentLayer))

    @property
    def is_sparse(self) -> bool:
        """Whether some latent layer keeps index keys (DSA)."""
        return any(isinstance(layer, LatentLayer) and layer.index_head_dim is not None for layer in self.layers)

    @property
    def has_windows(self) -> bool:
        """Whether some layer forgets what lies outside its window."""
        return any(layer.window is not None for layer in self.kv_layers)


def attention_tensor_parallel(
    tensor_parallel: int, *, attention_data_parallel: int = 1, context_parallel: int = 1
) -> int:
    """Ranks that share one copy of the attention heads: tp / (attention-DP x attention-CP)."""
    return max(1, tensor_parallel // (attention_data_parallel * context_parallel))


def kv_heads_per_device(kv_heads: int, tensor_parallel: int) -> int:
    """KV heads one device holds: with fewer heads than ranks every rank keeps one."""
    return max(1, kv_heads // tensor_parallel)


def layer_bytes_per_token(
    layer: Layer, *, tensor_parallel: int, element_bytes: int, scaled_fp8_latent: bool = False
) -> int:
    """Bytes one token takes in one layer on one device; the arguments are those of `bytes_per_token`.

    `scaled_fp8_latent` is of the layer's model here: its layers that share an index are laid out alike.
    """
    match layer:
        case AttentionLayer():
            heads = kv_heads_per_device(layer.kv_heads, tensor_parallel)
            return heads * (layer.head_dim + layer.v_head_dim) * element_bytes
        case LatentLayer():
            if scaled_fp8_latent:
                rank = layer.kv_lora_rank
                scales = rank // _INDEX_QUANT_BLOCK * _SCALE_BYTES
                return rank + scales + layer.qk_rope_head_dim * _ROPE_BYTES + layer.index_bytes
            return layer.latent_dim * element_bytes + layer.index_bytes
        case RecurrentLayer() | SharedKvLayer():
            return 0
        case _:
            assert_never(layer)


def bytes_per_token(
    geometry: ModelGeometry, *, tensor_parallel: int, element_bytes: int, scaled_fp8_latent: bool = False
) -> int:
    """Bytes one token takes on one device, over all layers.

    `tensor_parallel` is the number of ranks that share the heads (`attention_tensor_parallel`),
    `element_bytes` the size of one KV element. `scaled_fp8_latent` is for sparse MLA with an fp8_e4m3 cache
    in SGLang's scaled layout (512 fp8 + scales + bf16 rope), which its CUDA backends other than trtllm and
    tilelang use.
    """
    scaled = scaled_fp8_latent and geometry.is_sparse
    return sum(
        layer_bytes_per_token(
            layer,
            tensor_parallel=tensor_parallel,
            element_bytes=element_bytes,
            scaled_fp8_latent=scaled,
        )
        for layer in geometry.layers
    )


def kv_layer_bytes(
    geometry: ModelGeometry, *, tensor_parallel: int, element_bytes: int
) -> Iterator[tuple[KvLayer, int]]:
    """Each layer with KV of its own beside its bytes per token on one device."""
    for layer in geometry.kv_layers:
        yield (
            layer,
            layer_bytes_per_token(layer, tensor_parallel=tensor_parallel, element_bytes=element_bytes),
        )


def pool_bytes(tokens: int, page: int, token_bytes: int) -> int:
    """Bytes of a pool of `tokens` slots: SGLang allocates one padding page beside them."""
    return (tokens + page) * token_bytes


def floor_to_page(tokens: int, page: int) -> int:
    """The most whole pages within `tokens`, in tokens."""
    return tokens // page * page


_ELEMENT_BYTES = {
    "float32": 4,
    "float": 4,
    "fp32": 4,
    "bfloat16": 2,
    "bf16": 2,
    "float16": 2,
    "half": 2,
    "fp16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_e4m3fn": 1,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "int8": 1,
}


def kv_element_bytes(kv_dtype: str, *, model_dtype: str | None = None) -> int | None:
    """Bytes of one KV element for an engine's name of the KV dtype; `auto` is the dtype the model runs in.

    None for a name this table does not know and for block-scaled layouts (mxfp8, nvfp4, fp4_mx_block16),
    whose scales make the bytes per token more than elements times a size.
    """
    name = kv_dtype.strip().lower().removeprefix("torch.")
    if name == "auto":
        return None if model_dtype is None else kv_element_bytes(serving_dtype(model_dtype))
    return _ELEMENT_BYTES.get(name)


def serving_dtype(config_dtype: str, *, requested: str = "auto") -> str:
    """The dtype the engine runs a model in: float32 weights are served as float16 unless a dtype is
    requested.

    Source: SGLang 0.5.23 model_config.py `_get_and_verify_dtype` (Gemma gets bfloat16: the size is the same).
    """
    if requested.strip().lower() != "auto":
        return requested
    name = config_dtype.strip().lower().removeprefix("torch.")
    return "float16" if name in ("float32", "float", "fp32") else name
