"""The recurrent state of a hybrid model's linear layers, as far as its config says it.

Source: SGLang 0.5.23 `configs/` (bailing_hybrid.py, kimi_linear.py, glm5_next.py, qwen3_next.py, nemotron_h.py,
granitemoehybrid.py, lfm2.py), each `mamba2_cache_params`. A family or a key that is not known gives None: the state
is then not known, never approximated.
"""

from __future__ import annotations

from specbudget.domain.recurrent_state import RecurrentState, StateKind
from specbudget.sources.checkpoint.config_file import ConfigReader
from specbudget.sources.checkpoint.model import ConfigFacts

_STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def read_recurrent_state(config: ConfigReader, facts: ConfigFacts) -> RecurrentState | None:
    """The state of each recurrent layer of the model; None where the config does not say it."""
    family = facts.model_type or ""
    names = facts.architectures or ()
    if config.lookup(*config.places("linear_attn_config")) is not None:
        return _kimi(config)
    if family == "bailing_hybrid" or any(name.startswith(("BailingMoeV3", "BailingMoeV2_5")) for name in names):
        return _bailing(config, facts)
    if family.startswith(("qwen3_next", "qwen3_5")):
        return _gated_delta(config)
    if family.startswith("nemotron_h"):
        return _nemotron(config)
    if family == "granitemoehybrid":
        return _granite(config, facts)
    if family.startswith("lfm2"):
        return _short_convolution(config, facts)
    return None


def _delta(heads: int | None, head_dim: int | None, kernel: int | None) -> RecurrentState | None:
    """Kimi delta attention: keys have the values' heads and width, and each is convolved."""
    if heads is None or head_dim is None or kernel is None:
        return None
    return RecurrentState(
        kind=StateKind.KDA,
        heads=heads,
        head_dim=head_dim,
        state_size=head_dim,
        groups=heads,
        conv_channels=heads * head_dim,
        conv_taps=kernel - 1,
    )


def _kimi(config: ConfigReader) -> RecurrentState | None:
    def number(key: str) -> int | None:
        return config.whole(f"linear_{key}", *((*place, key) for place in config.places("linear_attn_config")))

    return _delta(number("num_heads"), number("head_dim"), number("short_conv_kernel_size"))


def _bailing(config: ConfigReader, facts: ConfigFacts) -> RecurrentState | None:
    """A short convolution is what tells KDA (V3) from the lightning attention before it."""
    heads, head_dim = facts.num_attention_heads, facts.head_dim
    kernel = config.whole("short_conv_kernel_size")
    if kernel is not None or heads is None or head_dim is None:
        return _delta(heads, head_dim, kernel)
    if any(name.startswith("BailingMoeV3") for name in facts.architectures or ()):
        return None
    return RecurrentState(kind=StateKind.LIGHTNING, heads=heads, head_dim=head_dim, state_size=head_dim)


def _selective(
    config: ConfigReader,
    kind: StateKind,
    *keys: str,
    channels: int | None = None,
    element_bytes: int = _STATE_BYTES["float32"],
) -> RecurrentState | None:
    """A state whose sizes stand under five keys: heads, width of a head, state size, groups, taps of the convolution.

    `channels` are those that are convolved beside the groups' own, the heads' unless given.
    """
    sizes = [config.whole(key) for key in keys]
    heads, head_dim, state, groups, kernel = sizes
    if heads is None or head_dim is None or state is None or groups is None or kernel is None:
        return None
    return RecurrentState(
        kind=kind,
        heads=heads,
        head_dim=head_dim,
        state_size=state,
        groups=groups,
        conv_channels=heads * head_dim if channels is None else channels,
        conv_taps=kernel - 1,
        ssm_bytes=element_bytes,
    )


def _gated_delta(config: ConfigReader) -> RecurrentState | None:
    return _selective(
        config,
        StateKind.GDN,
        "linear_num_value_heads",
        "linear_value_head_dim",
        "linear_key_head_dim",
        "linear_num_key_heads",
        "linear_conv_kernel_dim",
        element_bytes=_state_bytes(config),
    )


def _nemotron(config: ConfigReader) -> RecurrentState | None:
    return _selective(
        config,
        StateKind.MAMBA2,
        "mamba_num_heads",
        "mamba_head_dim",
        "ssm_state_size",
        "n_groups",
        "conv_kernel",
        element_bytes=_state_bytes(config),
    )


def _granite(config: ConfigReader, facts: ConfigFacts) -> RecurrentState | None:
    """The dtype of the state is the engine's default here, whatever the config says."""
    expand = config.whole("mamba_expand")
    if expand is None or facts.hidden_size is None:
        return None
    return _selective(
        config,
        StateKind.MAMBA2,
        "mamba_n_heads",
        "mamba_d_head",
        "mamba_d_state",
        "mamba_n_groups",
        "mamba_d_conv",
        channels=expand * facts.hidden_size,
    )


def _short_convolution(config: ConfigReader, facts: ConfigFacts) -> RecurrentState | None:
    kernel = config.whole("conv_L_cache")
    if kernel is None or facts.hidden_size is None:
        return None
    return RecurrentState(kind=StateKind.CONVOLUTION, groups=1, conv_channels=facts.hidden_size, conv_taps=kernel - 1)


def _state_bytes(config: ConfigReader) -> int:
    """Bytes of one element of the recurrent part: float32 unless the config says otherwise in a word it may use."""
    word = config.text("mamba_ssm_dtype")
    return _STATE_BYTES.get(word or "", _STATE_BYTES["float32"])
