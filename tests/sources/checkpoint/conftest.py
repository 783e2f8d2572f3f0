"""Checkpoints made to measure: real headers over sparse files, so that gigabytes cost nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import pytest

Tensors = Mapping[str, tuple[str, tuple[int, ...]]]

_BITS = {
    "F4": 4,
    "BF16": 16,
    "F16": 16,
    "F32": 32,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "U8": 8,
    "I8": 8,
    "I32": 32,
    "I64": 64,
    "BOOL": 8,
}


def _write(path: Path, tensors: Tensors, *, metadata: Mapping[str, str] | None = None) -> Path:
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        size = (prod(shape) * _BITS[dtype] + 7) // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + offset)
    return path


@pytest.fixture
def write_safetensors() -> Callable[..., Path]:
    """Write a sparse safetensors file: write(path, {name: (dtype, shape)})."""
    return _write


@pytest.fixture
def write_sharded() -> Callable[..., None]:
    """Write an index and its shards: write(folder, [tensors of shard 1, tensors of shard 2, ...])."""

    def write(folder: Path, shards: list[Tensors], *, total_size: int = 1) -> None:
        weight_map = {}
        for number, tensors in enumerate(shards, start=1):
            name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            _write(folder / name, tensors, metadata={"format": "pt"})
            weight_map |= dict.fromkeys(tensors, name)
        index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return write


@pytest.fixture
def configs() -> Path:
    """The folder of published configs."""
    return Path(__file__).parents[2] / "fixtures" / "configs"


@pytest.fixture
def block_drafter() -> Callable[..., dict[str, tuple[str, tuple[int, ...]]]]:
    """Tensors of a DSpark drafter with Qwen3-shaped layers, as published checkpoints name them."""

    def tensors(
        *,
        layers: int,
        hidden: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        inter: int,
        taps: int,
        vocab: int,
        rank: int,
        own: tuple[str, ...],
    ) -> dict[str, tuple[str, tuple[int, ...]]]:
        shapes: dict[str, tuple[int, ...]] = {
            "fc.weight": (hidden, taps * hidden),
            "hidden_norm.weight": (hidden,),
            "norm.weight": (hidden,),
            "markov_head.markov_w1.weight": (vocab, rank),
            "markov_head.markov_w2.weight": (vocab, rank),
            "confidence_head.proj.weight": (1, hidden + rank),
            "confidence_head.proj.bias": (1,),
        }
        for index in range(layers):
            shapes |= {
                f"layers.{index}.{name}.weight": shape
                for name, shape in {
                    "self_attn.q_proj": (heads * head_dim, hidden),
                    "self_attn.k_proj": (kv_heads * head_dim, hidden),
                    "self_attn.v_proj": (kv_heads * head_dim, hidden),
                    "self_attn.o_proj": (hidden, heads * head_dim),
                    "self_attn.q_norm": (head_dim,),
                    "self_attn.k_norm": (head_dim,),
                    "mlp.gate_proj": (inter, hidden),
                    "mlp.up_proj": (inter, hidden),
                    "mlp.down_proj": (hidden, inter),
                    "input_layernorm": (hidden,),
                    "post_attention_layernorm": (hidden,),
                }.items()
            }
        shapes |= {f"{name}.weight": (vocab, hidden) for name in own}
        return {name: ("BF16", shape) for name, shape in shapes.items()}

    return tensors
