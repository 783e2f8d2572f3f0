"""The many ways in which configs describe layers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, RecurrentLayer, SharedKvLayer, bytes_per_token
from specbudget.domain.recurrent_state import NO_STATE
from specbudget.sources.checkpoint import Checkpoint, ProblemKind, read_checkpoint

GQA = {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512, "head_dim": 64}
FULL = AttentionLayer(kv_heads=2, head_dim=64, v_head_dim=64)
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_attention_heads": 128, "hidden_size": 7168}
LATENT = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64)
INDEXED = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
NONE = RecurrentLayer()
MLP = RecurrentLayer(state=NO_STATE)


def windowed(window: int) -> AttentionLayer:
    """The GQA layer above with a window."""
    return AttentionLayer(kv_heads=2, head_dim=64, v_head_dim=64, window=window)


def read(folder: Path, config: object) -> Checkpoint:
    """The checkpoint of a folder with this config alone."""
    (folder / "config.json").write_text(json.dumps(config))
    return read_checkpoint(folder)


CASES: list[tuple[str, dict[str, Any], tuple[object, ...]]] = [
    ("plain GQA", {**GQA, "num_hidden_layers": 2}, (FULL, FULL)),
    (
        "head_dim defaults to hidden size over heads",
        {"num_attention_heads": 8, "hidden_size": 512, "num_key_value_heads": 2, "num_hidden_layers": 1},
        (FULL,),
    ),
    (
        "without KV heads every head has its own",
        {"num_attention_heads": 8, "hidden_size": 512, "num_hidden_layers": 1},
        (AttentionLayer(kv_heads=8, head_dim=64, v_head_dim=64),),
    ),
    (
        "values narrower than keys",
        {**GQA, "head_dim": 192, "v_head_dim": 128, "num_hidden_layers": 1},
        (AttentionLayer(kv_heads=2, head_dim=192, v_head_dim=128),),
    ),
    (
        "multi-query attention",
        {**GQA, "multi_query": True, "num_hidden_layers": 1},
        (AttentionLayer(kv_heads=1, head_dim=64, v_head_dim=64),),
    ),
    (
        "a vision model keeps its language model's settings nested",
        {"text_config": {**GQA, "num_hidden_layers": 1}, "num_hidden_layers": 99},
        (FULL,),
    ),
    (
        "an omni model nests them twice",
        {"thinker_config": {"text_config": {**GQA, "num_hidden_layers": 1}}},
        (FULL,),
    ),
    ("llm_config", {"llm_config": {**GQA, "num_hidden_layers": 1}}, (FULL,)),
    (
        "layer_types of a hybrid model",
        {
            **GQA,
            "num_hidden_layers": 3,
            "layer_types": ["linear_attention", "full_attention", "sliding_attention"],
            "sliding_window": 128,
        },
        (NONE, FULL, windowed(128)),
    ),
    (
        "layer_types may go on with the MTP layers",
        {**GQA, "num_hidden_layers": 1, "layer_types": ["full_attention", "full_attention"]},
        (FULL,),
    ),
    (
        "every fourth layer of Qwen3-Next attends",
        {**GQA, "num_hidden_layers": 4, "full_attention_interval": 4, "linear_num_key_heads": 16},
        (NONE, NONE, NONE, FULL),
    ),
    (
        "Qwen3-Next without the interval keeps its default",
        {**GQA, "num_hidden_layers": 4, "model_type": "qwen3_next"},
        (NONE, NONE, NONE, FULL),
    ),
    (
        "Bailing hybrid by group size",
        {**MLA, "num_hidden_layers": 4, "layer_group_size": 2},
        (NONE, LATENT, NONE, LATENT),
    ),
    (
        "Bailing hybrid by list, 1 is linear",
        {**MLA, "num_hidden_layers": 3, "layer_group_size": [1, 0, 1]},
        (NONE, LATENT, NONE),
    ),
    (
        "Kimi Linear counts its linear layers from 1",
        {**MLA, "num_hidden_layers": 3, "linear_attn_config": {"kda_layers": [1, 2], "full_attn_layers": [3]}},
        (NONE, NONE, LATENT),
    ),
    (
        "Nemotron-H as a pattern of letters",
        {
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "attention_head_dim": 64,
            "hybrid_override_pattern": "M*-E",
        },
        (NONE, FULL, MLP, MLP),
    ),
    (
        "Jamba by period and offset",
        {**GQA, "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 16},
        (NONE, FULL, NONE, FULL),
    ),
    (
        "MiMo by pattern, with its own window shape",
        {
            **GQA,
            "num_hidden_layers": 2,
            "hybrid_layer_pattern": [1, 0],
            "sliding_window": 128,
            "swa_num_key_value_heads": 4,
            "swa_head_dim": 32,
        },
        (AttentionLayer(kv_heads=4, head_dim=32, v_head_dim=32, window=128), FULL),
    ),
    (
        "Gemma 2 alternates",
        {**GQA, "num_hidden_layers": 2, "model_type": "gemma2", "sliding_window": 4096},
        (windowed(4096), FULL),
    ),
    (
        "Gemma 3 has five windows to one full layer",
        {**GQA, "num_hidden_layers": 6, "model_type": "gemma3_text", "sliding_window": 512},
        (*[windowed(512)] * 5, FULL),
    ),
    (
        "Gemma 4 has wider heads in its full layers, and its last layers share KV",
        {
            **GQA,
            "num_hidden_layers": 3,
            "model_type": "gemma4_text",
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "sliding_window": 512,
            "num_global_key_value_heads": 1,
            "global_head_dim": 512,
            "num_kv_shared_layers": 1,
        },
        (windowed(512), AttentionLayer(kv_heads=1, head_dim=512, v_head_dim=512), SharedKvLayer()),
    ),
    (
        "Mistral's window needs no switch",
        {**GQA, "num_hidden_layers": 1, "model_type": "mistral", "sliding_window": 4096},
        (windowed(4096),),
    ),
    (
        "a window that is switched off",
        {**GQA, "num_hidden_layers": 1, "model_type": "mistral", "sliding_window": 4096, "use_sliding_window": False},
        (FULL,),
    ),
    (
        "Qwen2 windows start at max_window_layers",
        {**GQA, "num_hidden_layers": 2, "use_sliding_window": True, "sliding_window": 4096, "max_window_layers": 1},
        (FULL, windowed(4096)),
    ),
    (
        "DeepSeek latent attention ignores KV heads",
        {**MLA, "num_key_value_heads": 128, "num_hidden_layers": 1},
        (LATENT,),
    ),
    (
        "DeepSeek-VL2 small switches MLA off",
        {**MLA, **GQA, "use_mla": False, "num_hidden_layers": 1},
        (FULL,),
    ),
    (
        "Bailing V3 without rotary keys stores the latent alone",
        {**MLA, "architectures": ["BailingMoeV3ForCausalLM"], "use_mla_nope": True, "num_hidden_layers": 1},
        (LatentLayer(kv_lora_rank=512, qk_rope_head_dim=0),),
    ),
    (
        "sparse attention adds index keys",
        {
            **MLA,
            "architectures": ["DeepseekV32ForCausalLM"],
            "index_topk": 2048,
            "index_head_dim": 128,
            "num_hidden_layers": 1,
        },
        (LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128),),
    ),
    (
        "sparse layers that share their index own none",
        {
            **MLA,
            "architectures": ["GlmMoeDsaForCausalLM"],
            "index_topk": 2048,
            "index_head_dim": 128,
            "indexer_types": ["full", "shared"],
            "num_hidden_layers": 2,
        },
        (LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128), LATENT),
    ),
    (
        "sparse layers that own an index by frequency and offset",
        {
            **MLA,
            "architectures": ["GlmMoeDsaForCausalLM"],
            "index_topk": 2048,
            "index_head_dim": 128,
            "index_topk_freq": 2,
            "index_skip_topk_offset": 3,
            "num_hidden_layers": 5,
        },
        (*[INDEXED] * 3, LATENT, INDEXED),
    ),
    (
        "LongCat attends twice per layer",
        {**MLA, "architectures": ["LongcatFlashForCausalLM"], "num_layers": 1},
        (LATENT, LATENT),
    ),
]


@pytest.mark.parametrize(("config", "layers"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_layers_of_a_config(config: dict[str, Any], layers: tuple[object, ...], tmp_path: Path) -> None:
    """Each family's way to describe its layers gives the geometry its engine allocates."""
    checkpoint = read(tmp_path, config)
    assert checkpoint.problems == ()
    assert checkpoint.geometry is not None
    assert checkpoint.geometry.layers == layers


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no layer count", GQA, "num_hidden_layers"),
    ("layers as text", {**GQA, "num_hidden_layers": "36"}, "num_hidden_layers"),
    ("more layers than any model has", {**GQA, "num_hidden_layers": 10**9}, "num_hidden_layers"),
    ("negative heads", {**GQA, "num_hidden_layers": 1, "num_key_value_heads": -2}, "num_key_value_heads"),
    ("no heads at all", {"num_hidden_layers": 1, "hidden_size": 8}, "num_key_value_heads"),
    ("no head dimension", {"num_hidden_layers": 1, "num_attention_heads": 8}, "head_dim"),
    ("rank without rope", {"kv_lora_rank": 512, "num_hidden_layers": 1}, "qk_rope_head_dim"),
    (
        "too few layer types",
        {**GQA, "num_hidden_layers": 3, "layer_types": ["full_attention"]},
        "layer_types",
    ),
    ("an unknown layer type", {**GQA, "num_hidden_layers": 1, "layer_types": ["quantum"]}, "layer_types"),
    (
        "sliding layers without a window",
        {**GQA, "num_hidden_layers": 1, "layer_types": ["sliding_attention"]},
        "sliding_window",
    ),
    ("signs of recurrent layers alone", {**GQA, "num_hidden_layers": 4, "mamba_d_state": 16}, "mamba_d_state"),
    ("a compressed cache", {**GQA, "num_hidden_layers": 1, "compress_ratios": [4]}, "compress_ratios"),
]


@pytest.mark.parametrize(("config", "key"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_geometry_that_is_not_certain_is_unknown(config: dict[str, Any], key: str, tmp_path: Path) -> None:
    """A config that leaves the layers open gives no geometry, and a problem that names the key."""
    checkpoint = read(tmp_path, config)
    assert checkpoint.geometry is None
    assert key in {problem.key for problem in checkpoint.problems}
    assert all("\n" not in str(problem) for problem in checkpoint.problems)


def test_a_fact_of_the_wrong_type_is_unknown_and_the_others_stay(tmp_path: Path) -> None:
    """One bad key takes only itself away."""
    checkpoint = read(tmp_path, {**GQA, "num_hidden_layers": 1, "vocab_size": "big", "block_size": True})
    assert checkpoint.facts is not None
    assert checkpoint.geometry is not None
    assert checkpoint.facts.vocab_size is None
    assert checkpoint.facts.block_size is None
    assert {problem.key for problem in checkpoint.problems} == {"vocab_size", "block_size"}
    assert {problem.kind for problem in checkpoint.problems} == {ProblemKind.MALFORMED}


def test_drafter_keys_are_looked_up_as_the_engine_does(tmp_path: Path) -> None:
    """dspark_config lies over dflash_config, which lies over the top level; bundled keys win over all."""
    config = {
        **GQA,
        "num_hidden_layers": 1,
        "block_size": 3,
        "dflash_config": {"block_size": 5, "target_layer_ids": [1, 2]},
        "dspark_config": {"block_size": 7},
        "mask_token_id": 0,
    }
    facts = read(tmp_path, config).facts
    assert facts is not None
    assert facts.block_size == 7
    assert facts.target_layer_ids == (1, 2)
    assert facts.mask_token_id == 0
    bundled = read(tmp_path, {**config, "dspark_block_size": 9}).facts
    assert bundled is not None
    assert bundled.block_size == 9
    assert bundled.where("block_size") == "dspark_block_size"


def test_dtype_and_quantisation_are_read_in_their_old_and_new_places(tmp_path: Path) -> None:
    """torch_dtype and dtype mean the same, and a quantised config says its method and KV dtype."""
    config = {
        **GQA,
        "num_hidden_layers": 1,
        "torch_dtype": "torch.bfloat16",
        "quantization_config": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"},
    }
    facts = read(tmp_path, config).facts
    assert facts is not None
    assert (facts.dtype, facts.quantization_method, facts.kv_quantization) == ("bfloat16", "NVFP4", "FP8")
    newer = read(tmp_path, {**config, "dtype": "float16"}).facts
    assert newer is not None
    assert newer.dtype == "float16"


def test_infinity_in_a_config_is_no_damage(tmp_path: Path) -> None:
    """Mamba configs hold Infinity, which is not JSON, and are read all the same."""
    checkpoint = read(tmp_path, {**GQA, "num_hidden_layers": 1, "time_step_limit": [0.0, float("inf")]})
    assert checkpoint.geometry is not None
    assert checkpoint.problems == ()


def test_mtp_layers_of_a_sparse_target_hold_their_own_index(tmp_path: Path) -> None:
    """The drafter's layer keeps index keys even where the target's layers share them."""
    checkpoint = read(
        tmp_path,
        {
            **MLA,
            "architectures": ["GlmMoeDsaForCausalLM"],
            "index_topk": 2048,
            "indexer_types": ["full", "shared"],
            "num_hidden_layers": 2,
            "num_nextn_predict_layers": 1,
        },
    )
    assert checkpoint.mtp_geometry is not None
    assert bytes_per_token(checkpoint.mtp_geometry, tensor_parallel=8, element_bytes=2) == 576 * 2 + 132
