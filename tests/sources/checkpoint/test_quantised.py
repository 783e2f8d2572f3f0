"""Quantised checkpoints: stored bytes to the byte, and the weights that packed elements stand for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbudget.sources.checkpoint import read_checkpoint

Writer = Callable[..., Path]
Tensors = dict[str, tuple[str, tuple[int, ...]]]

CONFIG = {"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 512, "torch_dtype": "bfloat16"}
UP = "model.layers.0.mlp.experts.3.up_proj"
NORM: Tensors = {"model.norm.weight": ("BF16", (512,))}
ROWS, COLUMNS = 256, 512
WEIGHTS = ROWS * COLUMNS

FORMATS: list[tuple[str, dict[str, Any], Tensors, str]] = [
    (
        "gptq",
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
        {
            f"{UP}.qweight": ("I32", (COLUMNS // 8, ROWS)),
            f"{UP}.qzeros": ("I32", (COLUMNS // 128, ROWS // 8)),
            f"{UP}.scales": ("F16", (COLUMNS // 128, ROWS)),
            f"{UP}.g_idx": ("I32", (COLUMNS,)),
        },
        "gptq int4 in int32",
    ),
    (
        "gptq of three bits",
        {"quantization_config": {"quant_method": "gptq", "bits": 3}},
        {f"{UP}.qweight": ("I32", (COLUMNS * 3 // 32, ROWS))},
        "gptq int3 in int32",
    ),
    (
        "awq",
        {"quantization_config": {"quant_method": "awq", "w_bit": 4}},
        {
            f"{UP}.qweight": ("I32", (COLUMNS, ROWS // 8)),
            f"{UP}.qzeros": ("I32", (COLUMNS // 128, ROWS // 8)),
            f"{UP}.scales": ("F16", (COLUMNS // 128, ROWS)),
        },
        "awq int4 in int32",
    ),
    (
        "compressed-tensors int4",
        {
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
            }
        },
        {
            f"{UP}.weight_packed": ("I32", (ROWS, COLUMNS // 8)),
            f"{UP}.weight_scale": ("BF16", (ROWS, COLUMNS // 32)),
            f"{UP}.weight_shape": ("I64", (2,)),
        },
        "compressed-tensors int4 in int32",
    ),
    (
        "compressed-tensors nvfp4",
        {
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "format": "nvfp4-pack-quantized",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float"}}},
            }
        },
        {
            f"{UP}.weight_packed": ("U8", (ROWS, COLUMNS // 2)),
            f"{UP}.weight_scale": ("F8_E4M3", (ROWS, COLUMNS // 16)),
            f"{UP}.weight_global_scale": ("F32", (1,)),
            f"{UP}.input_global_scale": ("F32", (1,)),
        },
        "compressed-tensors nvfp4 in uint8",
    ),
    (
        "modelopt nvfp4",
        {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}},
        {
            f"{UP}.weight": ("U8", (ROWS, COLUMNS // 2)),
            f"{UP}.weight_scale": ("F8_E4M3", (ROWS, COLUMNS // 16)),
            f"{UP}.weight_scale_2": ("F32", ()),
            f"{UP}.input_scale": ("F32", ()),
            "model.layers.0.self_attn.k_proj.k_scale": ("F32", ()),
        },
        "modelopt nvfp4 in uint8",
    ),
    (
        "mxfp4 in blocks",
        {"quantization_config": {"quant_method": "mxfp4"}},
        {
            "model.layers.0.mlp.experts.gate_up_proj_blocks": ("U8", (4, ROWS // 4, COLUMNS // 32, 16)),
            "model.layers.0.mlp.experts.gate_up_proj_scales": ("U8", (4, ROWS // 4, COLUMNS // 32)),
        },
        "mxfp4 in uint8",
    ),
    (
        "fp8 in blocks",
        {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
        {f"{UP}.weight": ("F8_E4M3", (ROWS, COLUMNS)), f"{UP}.weight_scale_inv": ("F32", (2, 4))},
        "fp8 in blocks of 128 x 128",
    ),
    (
        "fp8 with fp4 experts",
        {"quantization_config": {"quant_method": "fp8"}, "expert_dtype": "fp4"},
        {
            "layers.0.ffn.experts.3.w1.weight": ("I8", (ROWS, COLUMNS // 2)),
            "layers.0.ffn.experts.3.w1.scale": ("F8_E8M0", (ROWS, COLUMNS // 32)),
        },
        "fp8, experts in fp4",
    ),
    (
        "bitsandbytes",
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
        {
            f"{UP}.weight": ("U8", (WEIGHTS // 2, 1)),
            f"{UP}.weight.absmax": ("U8", (WEIGHTS // 64,)),
            f"{UP}.weight.quant_map": ("F32", (16,)),
            f"{UP}.weight.quant_state.bitsandbytes__nf4": ("U8", (80,)),
        },
        "bitsandbytes 4 bit in uint8",
    ),
    (
        "int8",
        {"quantization_config": {"quant_method": "w8a8_int8"}},
        {f"{UP}.weight": ("I8", (ROWS, COLUMNS)), f"{UP}.weight_scale": ("F32", (ROWS, 1))},
        "w8a8_int8",
    ),
    ("plain", {}, {f"{UP}.weight": ("BF16", (ROWS, COLUMNS)), "d2t": ("I64", (32,))}, "bfloat16"),
]


@pytest.mark.parametrize(
    ("config", "tensors", "words"), [case[1:] for case in FORMATS], ids=[case[0] for case in FORMATS]
)
def test_packed_weights_are_counted_out(
    config: dict[str, Any], tensors: Tensors, words: str, tmp_path: Path, write_safetensors: Writer
) -> None:
    """One projection of 256 x 512 weights and a norm of 512, however they are stored; bytes as the headers say."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | config))
    path = write_safetensors(tmp_path / "model.safetensors", {**NORM, **tensors})
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.problems == ()
    assert checkpoint.logical_parameters == WEIGHTS + 512
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    assert checkpoint.tensor_bytes == path.stat().st_size - header
    assert checkpoint.disk_bytes == path.stat().st_size
    assert checkpoint.storage == words


@pytest.mark.parametrize(
    ("config", "tensors"),
    [
        ({}, {f"{UP}.qweight": ("I32", (64, 256))}),
        ({"quantization_config": {"quant_method": "gptq"}}, {f"{UP}.qweight": ("I32", (64, 256))}),
        ({"quantization_config": {"quant_method": "riddle"}}, {f"{UP}.weight": ("U8", (64, 256))}),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, {f"{UP}.weight": ("I32", (64, 256))}),
    ],
)
def test_a_format_that_does_not_tell_leaves_the_count_unknown(
    config: dict[str, Any], tensors: Tensors, tmp_path: Path, write_safetensors: Writer
) -> None:
    """Elements are counted all the same, and marked as packed."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | config))
    write_safetensors(tmp_path / "model.safetensors", {**NORM, **tensors})
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.logical_parameters is None
    assert checkpoint.parameters == 64 * 256 + 512
    assert checkpoint.packed


def test_settings_of_a_quantised_language_model_inside_another(tmp_path: Path, write_safetensors: Writer) -> None:
    """In a model of several kinds of input they stand in text_config, together with everything else."""
    inner = CONFIG | {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["X"], "text_config": inner}))
    write_safetensors(tmp_path / "model.safetensors", {f"model.language_{UP}.qweight": ("I32", (64, 256))})
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.logical_parameters == WEIGHTS
    assert checkpoint.geometry is not None


def test_quantisation_in_a_file_of_its_own(tmp_path: Path, write_safetensors: Writer) -> None:
    """NVIDIA's exporter writes it beside the config: it decides on packing and on the KV dtype, and is watched."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model.safetensors", {f"{UP}.weight": ("U8", (ROWS, COLUMNS // 2))})
    before = read_checkpoint(tmp_path)
    assert before.logical_parameters is None
    quantization = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(quantization))
    after = read_checkpoint(tmp_path)
    assert after.logical_parameters == WEIGHTS
    assert after.facts is not None
    assert (after.facts.quantization_method, after.facts.kv_quantization) == ("NVFP4", "FP8")
    assert after.fingerprint != before.fingerprint


def test_experts_with_digits_in_their_names_are_told_apart(tmp_path: Path, write_safetensors: Writer) -> None:
    """w1, w2 and w3 are three modules, the numbers of layer and expert are none; scales go with each."""
    tensors: Tensors = {}
    for expert in range(12):
        for module, shape in (("w1", (8, 4)), ("w2", (4, 8)), ("w3", (8, 4))):
            tensors[f"layers.0.ffn.experts.{expert}.{module}.weight"] = ("BF16", shape)
            tensors[f"layers.0.ffn.experts.{expert}.{module}.bias"] = ("BF16", (shape[0],))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model.safetensors", tensors)
    groups = read_checkpoint(tmp_path).tensor_groups
    assert groups is not None
    by_sharding = {group.sharding.value: (group.tensors, group.parameters) for group in groups}
    # The bias of w2 is whole on every rank, all else is split.
    assert by_sharding == {"split": (60, 12 * (3 * 32 + 2 * 8)), "replicated": (12, 12 * 4)}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("model.layers.0.self_attn.k_scale", True),
        ("model.layers.0.self_attn.k_proj.k_scale", True),
        ("model.layers.0.self_attn.kv_scale", True),
        ("model.layers.0.self_attn.k_proj.output_scale", True),
        ("model.layers.0.self_attn.q_proj.weight_scale", False),
    ],
)
def test_scales_of_a_quantised_kv_cache(name: str, found: bool, tmp_path: Path, write_safetensors: Writer) -> None:
    """Named by an index even where no shard is there, else by the headers; unknown without both."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert read_checkpoint(tmp_path).kv_scales is None
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: "model-00001-of-00001.safetensors"}}))
    assert read_checkpoint(tmp_path).kv_scales is found
    index.unlink()
    write_safetensors(tmp_path / "model.safetensors", {name: ("F32", (1,))})
    assert read_checkpoint(tmp_path).kv_scales is found
