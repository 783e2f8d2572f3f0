"""A checkpoint of a terabyte that takes no space: real headers and a real index over sparse files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 128
"""Rows and columns that share one scale, as block-wise fp8 checkpoints have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size of a mixture of experts in block-wise fp8; the defaults take a terabyte in 189,000 tensors."""

    shards: int = 2000
    layers: int = 61
    experts: int = 512
    hidden: int = 7168
    intermediate: int = 1536
    vocabulary: int = 163_840


def write_giant(folder: Path, shape: Shape | None = None) -> int:
    """Write config, index and sparse shards into an empty folder; returns the bytes of all tensors."""
    shape = shape or Shape()
    tensors = list(_tensors(shape))
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(shape.shards):
        part = tensors[number * len(tensors) // shape.shards : (number + 1) * len(tensors) // shape.shards]
        name = f"model-{number + 1:05d}-of-{shape.shards:05d}.safetensors"
        total += _write_shard(folder / name, part)
        weight_map |= dict.fromkeys((tensor[0] for tensor in part), name)
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    config = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "vocab_size": shape.vocabulary,
        "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [_BLOCK, _BLOCK]},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return total


def _tensors(shape: Shape) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Name, dtype, shape and bytes of each tensor, in the order in which shards are cut."""
    hidden, inter = shape.hidden, shape.intermediate
    yield "model.embed_tokens.weight", "BF16", (shape.vocabulary, hidden), 2 * shape.vocabulary * hidden
    for layer in range(shape.layers):
        place = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{place}.{norm}.weight", "BF16", (hidden,), 2 * hidden
        for module, rows, columns in (
            ("self_attn.q_a_proj", 1536, hidden),
            ("self_attn.q_b_proj", 12_288, 1536),
            ("self_attn.kv_a_proj_with_mqa", 576, hidden),
            ("self_attn.kv_b_proj", 16_384, 512),
            ("self_attn.o_proj", hidden, 8192),
        ):
            yield from _quantised(f"{place}.{module}", rows, columns)
        yield f"{place}.mlp.gate.weight", "BF16", (shape.experts, hidden), 2 * shape.experts * hidden
        for expert in range(shape.experts):
            yield from _quantised(f"{place}.mlp.experts.{expert}.gate_proj", inter, hidden)
            yield from _quantised(f"{place}.mlp.experts.{expert}.up_proj", inter, hidden)
            yield from _quantised(f"{place}.mlp.experts.{expert}.down_proj", hidden, inter)
    yield "model.norm.weight", "BF16", (hidden,), 2 * hidden
    yield "lm_head.weight", "BF16", (shape.vocabulary, hidden), 2 * shape.vocabulary * hidden


def _quantised(name: str, rows: int, columns: int) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    blocks = (-(-rows // _BLOCK), -(-columns // _BLOCK))
    yield f"{name}.weight", "F8_E4M3", (rows, columns), rows * columns
    yield f"{name}.weight_scale_inv", "F32", blocks, 4 * blocks[0] * blocks[1]


def _write_shard(path: Path, tensors: list[tuple[str, str, tuple[int, ...], int]]) -> int:
    """One sparse file; returns the bytes of its tensors."""
    entries = ['"__metadata__":{"format":"pt"}']
    offset = 0
    for name, dtype, shape, size in tensors:
        sizes = ",".join(map(str, shape))
        entries.append(f'"{name}":{{"dtype":"{dtype}","shape":[{sizes}],"data_offsets":[{offset},{offset + size}]}}')
        offset += size
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + offset)
    return offset
