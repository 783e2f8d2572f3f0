"""config.json of the pair that the stand-in serves.

The target's values are those of Megatron-Bridge's unit test for Ling-3.0-flash. The drafter's are taken from
its model card; `intermediate_size` and `head_dim` are the only ones that give the published count of
1,363,707,905 parameters.
"""

from __future__ import annotations

from typing import Any

TARGET_CONFIG: dict[str, Any] = {
    "architectures": ["BailingMoeV3ForCausalLM"],
    "model_type": "bailing_hybrid",
    "num_hidden_layers": 42,
    "layer_group_size": 6,
    "first_k_dense_replace": 2,
    "hidden_size": 2560,
    "vocab_size": 157184,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "num_experts": 512,
    "num_shared_experts": 1,
    "num_experts_per_tok": 8,
    "n_group": 8,
    "topk_group": 4,
    "moe_intermediate_size": 768,
    "moe_shared_expert_intermediate_size": 768,
    "moe_router_enable_expert_bias": True,
    "intermediate_size": 6144,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_head_dim": 192,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "head_dim": 128,
    "short_conv_kernel_size": 4,
    "num_nextn_predict_layers": 1,
    "mtp_use_kda": False,
    "max_position_embeddings": 262144,
    "rope_theta": 6000000.0,
    "partial_rotary_factor": 0.5,
    "rms_norm_eps": 1e-06,
    "eos_token_id": 156892,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

DRAFTER_CONFIG: dict[str, Any] = {
    "architectures": ["LingDSparkModel"],
    "num_hidden_layers": 5,
    "hidden_size": 2560,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "intermediate_size": 6144,
    "vocab_size": 157184,
    "max_position_embeddings": 262144,
    "block_size": 8,
    "target_layer_ids": [1, 11, 23, 29, 35],
    "num_target_layers": 42,
    "mask_token_id": 156895,
    "markov_rank": 256,
    "markov_head_type": "vanilla",
    "enable_confidence_head": True,
    "confidence_head_with_markov": True,
    "rms_norm_eps": 1e-06,
    "dtype": "bfloat16",
    "tie_word_embeddings": False,
}

GAMMA: int = DRAFTER_CONFIG["block_size"]
"""Draft tokens that DSpark proposes per verify step."""

VERIFY_WINDOW: int = GAMMA + 1
"""Largest acceptance length: the drafts and the target's own token (SGLang dspark_config.py: gamma + 1)."""
