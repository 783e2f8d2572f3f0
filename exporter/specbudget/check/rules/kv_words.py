"""The layers of a model and what each kind costs per token, in words."""

from __future__ import annotations

from collections import Counter

from specbudget.domain.kv_geometry import (
    AttentionLayer,
    LatentLayer,
    Layer,
    ModelGeometry,
    RecurrentLayer,
    kv_heads_per_device,
    layer_bytes_per_token,
)


def layer_words(
    geometry: ModelGeometry, *, ranks: int, element_bytes: int, scaled_fp8_latent: bool = False
) -> tuple[str, ...]:
    """One line per kind of layer with its arithmetic, and their sum; all on one of `ranks` devices."""
    lines, total = [], 0
    for layer, layers in Counter(geometry.layers).items():
        size = layer_bytes_per_token(
            layer, tensor_parallel=ranks, element_bytes=element_bytes, scaled_fp8_latent=scaled_fp8_latent
        )
        total += size * layers
        kind = _kind(layer, ranks, element_bytes, scaled_fp8_latent)
        lines.append(f"{layers} x {kind} = {size * layers:,} B")
    return (*lines, f"together {total:,} B per token")


def _kind(layer: Layer, ranks: int, element_bytes: int, scaled: bool) -> str:
    match layer:
        case AttentionLayer():
            heads = kv_heads_per_device(layer.kv_heads, ranks)
            window = "" if layer.window is None else f", window {layer.window}"
            return (
                f"attention, {heads} of {layer.kv_heads} KV heads x ({layer.head_dim} + {layer.v_head_dim}) x "
                f"{element_bytes} B{window}"
            )
        case LatentLayer():
            index = f" + {layer.index_bytes} B index" if layer.index_bytes else ""
            if scaled:
                rank, rope = layer.kv_lora_rank, layer.qk_rope_head_dim
                return f"latent attention, {rank} B fp8 + its scales + {rope} x 2 B{index}, on every rank"
            return (
                f"latent attention, ({layer.kv_lora_rank} + {layer.qk_rope_head_dim}) x {element_bytes} B{index}, "
                "on every rank"
            )
        case RecurrentLayer():
            return "recurrent, no KV"
        case _:
            return "shared, no KV of its own"
