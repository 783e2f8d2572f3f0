"""The recurrent state of a hybrid model, as its config says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specbudget.domain.kv_geometry import RecurrentLayer
from specbudget.domain.recurrent_state import NO_STATE, RecurrentState, StateKind
from specbudget.sources.checkpoint import read_checkpoint

PAIRS = Path(__file__).parents[2] / "fixtures" / "pairs"
GQA = {"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 512, "head_dim": 64}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_attention_heads": 32, "head_dim": 128}
KIMI = {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4, "kda_layers": [1], "full_attn_layers": [2]}
GDN = {
    "linear_num_value_heads": 32,
    "linear_num_key_heads": 16,
    "linear_value_head_dim": 128,
    "linear_key_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {"mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}
DELTA = RecurrentState(
    kind=StateKind.KDA, heads=32, head_dim=128, state_size=128, groups=32, conv_channels=4096, conv_taps=3
)


def states(folder: Path, config: dict[str, Any]) -> list[RecurrentState | None]:
    """The states of a config's recurrent layers, each once, in order."""
    (folder / "config.json").write_text(json.dumps(config))
    geometry = read_checkpoint(folder).geometry
    assert geometry is not None
    found = [layer.state for layer in geometry.layers if isinstance(layer, RecurrentLayer)]
    return list(dict.fromkeys(found))


CASES: list[tuple[str, dict[str, Any], list[RecurrentState | None]]] = [
    (
        "Ling 3.0",
        {
            **MLA,
            "architectures": ["BailingMoeV3ForCausalLM"],
            "num_hidden_layers": 2,
            "layer_group_size": 2,
            "short_conv_kernel_size": 4,
        },
        [DELTA],
    ),
    (
        "Ling 3.0 without its convolution",
        {**MLA, "architectures": ["BailingMoeV3ForCausalLM"], "num_hidden_layers": 2, "layer_group_size": 2},
        [None],
    ),
    (
        "Ling 2.5 has lightning attention",
        {**MLA, "model_type": "bailing_hybrid", "num_hidden_layers": 2, "layer_group_size": 2},
        [RecurrentState(kind=StateKind.LIGHTNING, heads=32, head_dim=128, state_size=128)],
    ),
    ("Kimi Linear", {**MLA, "num_hidden_layers": 2, "linear_attn_config": KIMI}, [DELTA]),
    (
        "Kimi K3 keeps it in its language model",
        {"text_config": {**MLA, "num_hidden_layers": 2, "linear_attn_config": KIMI}},
        [DELTA],
    ),
    (
        "Qwen3-Next with its own dtype",
        {**GQA, **GDN, "model_type": "qwen3_next", "num_hidden_layers": 4, "mamba_ssm_dtype": "bfloat16"},
        [
            RecurrentState(
                kind=StateKind.GDN,
                heads=32,
                head_dim=128,
                state_size=128,
                groups=16,
                conv_channels=4096,
                conv_taps=3,
                ssm_bytes=2,
            )
        ],
    ),
    (
        "Nemotron-H, whose MLP layers hold nothing",
        {**GQA, **MAMBA, "model_type": "nemotron_h", "hybrid_override_pattern": "M-*"},
        [
            RecurrentState(
                kind=StateKind.MAMBA2,
                heads=128,
                head_dim=64,
                state_size=128,
                groups=8,
                conv_channels=8192,
                conv_taps=3,
            ),
            NO_STATE,
        ],
    ),
    (
        "Granite 4",
        {
            **GQA,
            "model_type": "granitemoehybrid",
            "layer_types": ["mamba", "attention"],
            "num_hidden_layers": 2,
            "mamba_n_heads": 16,
            "mamba_d_head": 64,
            "mamba_d_state": 128,
            "mamba_n_groups": 1,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
        },
        [
            RecurrentState(
                kind=StateKind.MAMBA2, heads=16, head_dim=64, state_size=128, groups=1, conv_channels=1024, conv_taps=3
            )
        ],
    ),
    (
        "LFM2 convolves only",
        {
            **GQA,
            "model_type": "lfm2",
            "layer_types": ["conv", "full_attention"],
            "num_hidden_layers": 2,
            "conv_L_cache": 3,
        },
        [RecurrentState(kind=StateKind.CONVOLUTION, groups=1, conv_channels=512, conv_taps=2)],
    ),
    (
        "a family that is not known",
        {**GQA, **MAMBA, "layer_types": ["mamba", "full_attention"], "num_hidden_layers": 2},
        [None],
    ),
]


@pytest.mark.parametrize(("config", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_states_of_a_config(tmp_path: Path, config: dict[str, Any], expected: list[RecurrentState | None]) -> None:
    """Each family's keys give the state its engine allocates; what is missing gives none."""
    assert states(tmp_path, config) == expected


def test_ling_has_35_layers_of_it() -> None:
    """The published config, read as a whole."""
    geometry = read_checkpoint(PAIRS / "ling" / "target").geometry
    assert geometry is not None
    assert sum(isinstance(layer, RecurrentLayer) and layer.state == DELTA for layer in geometry.layers) == 35
