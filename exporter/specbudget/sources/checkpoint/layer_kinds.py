"""Which kind each layer of a model is, from the many ways in which configs say so.

Sources: SGLang 0.5.23 `configs/` (bailing_hybrid.py, kimi_linear.py, qwen3_next.py, nemotron_h.py, lfm2.py)
and `configs/model_config.py` (`get_hybrid_layer_ids`); transformers' defaults for windows.
"""

from __future__ import annotations

from enum import Enum
from itertools import islice

from specbudget.sources.checkpoint.config_file import MOST_LAYERS, ConfigReader
from specbudget.sources.checkpoint.model import ConfigFacts, ProblemKind


class LayerKind(Enum):
    """What a layer keeps of the context."""

    FULL = "full"
    SLIDING = "sliding"
    STATELESS = "stateless"
    """Recurrent state or a convolution: no KV."""
    EMPTY = "empty"
    """An MLP that stands alone: neither KV nor state."""


_WORDS = {
    "full_attention": LayerKind.FULL,
    "attention": LayerKind.FULL,
    "full": LayerKind.FULL,
    "global": LayerKind.FULL,
    "chunked_attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "sliding": LayerKind.SLIDING,
    "linear_attention": LayerKind.STATELESS,
    "linear": LayerKind.STATELESS,
    "recurrent": LayerKind.STATELESS,
    "mamba": LayerKind.STATELESS,
    "mamba2": LayerKind.STATELESS,
    "conv": LayerKind.STATELESS,
    "short_conv": LayerKind.STATELESS,
    "mlp": LayerKind.EMPTY,
    "moe": LayerKind.EMPTY,
}
_LETTERS = {
    "*": LayerKind.FULL,
    "M": LayerKind.STATELESS,
    "-": LayerKind.EMPTY,
    "E": LayerKind.EMPTY,
}
_RECURRENT_HINTS = ("mamba", "ssm_", "linear_num_", "linear_key_", "linear_attn", "kda_", "lightning_")
_WINDOWED_BY_DEFAULT = ("mistral", "mixtral", "phi3", "starcoder2", "ministral")
_DEFAULT_INTERVAL = {"qwen3_next": 4}
_WINDOW_LAYERS_DEFAULT = 28
_ZERO_BASED_KDA = ("glm5_next", "glm5_next_text")


def layer_kinds(config: ConfigReader, facts: ConfigFacts) -> tuple[LayerKind, ...] | None:
    """One kind per layer; None where the config does not say, which is then a problem of the reader."""
    pattern = config.lookup(*config.places("hybrid_override_pattern"))
    if pattern is not None and isinstance(pattern[1], str) and len(pattern[1]) <= MOST_LAYERS:
        return _from_words(config, pattern[0], list(pattern[1]), _LETTERS, facts.num_hidden_layers)
    count = facts.num_hidden_layers
    for key in ("layer_types", "layers_block_type"):
        hit = config.lookup(*config.places(key))
        if hit is not None:
            listed = config.texts(key)
            return None if listed is None else _from_words(config, hit[0], list(listed), _WORDS, count)
    if count is None:
        config.report("num_hidden_layers", "is needed for the KV geometry; add it", ProblemKind.INCOMPLETE)
        return None
    for rule in (_from_group_size, _from_linear_attention, _from_flags, _from_interval):
        kinds = rule(config, facts, count)
        if kinds is not None:
            return kinds
    hint = next((key for key in islice(_keys(config), 2000) if key.startswith(_RECURRENT_HINTS)), None)
    if hint is not None:
        message = "hints at layers without KV, but nothing says which; add layer_types"
        config.report(hint, message, ProblemKind.INCOMPLETE)
        return None
    return _from_window(config, facts, count)


def _keys(config: ConfigReader) -> list[str]:
    section = config.root
    for step in config.text_path:
        section = section[step]
    return [*section, *config.root]


def _from_words(
    config: ConfigReader, key: str, words: list[str], meaning: dict[str, LayerKind], count: int | None
) -> tuple[LayerKind, ...] | None:
    unknown = next((word for word in words if word not in meaning), None)
    if unknown is not None:
        message = f"{unknown!r} is no kind of layer that is known here; the KV geometry stays unknown"
        config.report(key, message, ProblemKind.INCOMPLETE)
        return None
    if count is not None and len(words) < count:
        message = f"has {len(words)} entries for {count} layers; correct the file"
        config.report(key, message, ProblemKind.INCOMPLETE)
        return None
    # Some lists go on with the bundled MTP layers.
    return tuple(meaning[word] for word in words[:count])


def _from_group_size(config: ConfigReader, facts: ConfigFacts, count: int) -> tuple[LayerKind, ...] | None:
    """Bailing hybrid: the last layer of each group attends; or a list with 1 for each linear layer."""
    hit = config.lookup(*config.places("layer_group_size"))
    if hit is None:
        return None
    if isinstance(hit[1], list):
        return _from_ones(config, hit[0], hit[1], count, one=LayerKind.STATELESS, zero=LayerKind.FULL)
    size = config.whole("layer_group_size")
    return None if size is None else _every(size, count)


def _from_linear_attention(config: ConfigReader, facts: ConfigFacts, count: int) -> tuple[LayerKind, ...] | None:
    """Kimi Linear: lists the linear layers, counted from 1 (GLM-5 Next counts from 0)."""
    listed = config.wholes("kda_layers", *((*place, "kda_layers") for place in config.places("linear_attn_config")))
    if listed is None:
        return None
    first = 0 if facts.model_type in _ZERO_BASED_KDA else 1
    linear = frozenset(listed)
    return tuple(LayerKind.STATELESS if index + first in linear else LayerKind.FULL for index in range(count))


def _from_flags(config: ConfigReader, facts: ConfigFacts, count: int) -> tuple[LayerKind, ...] | None:
    """MiMo's hybrid_layer_pattern (1: window) and MiniMax's attn_type_list (1: attention)."""
    for key, one, zero in (
        ("hybrid_layer_pattern", LayerKind.SLIDING, LayerKind.FULL),
        ("attn_type_list", LayerKind.FULL, LayerKind.STATELESS),
    ):
        hit = config.lookup(*config.places(key))
        if hit is not None and isinstance(hit[1], list):
            return _from_ones(config, hit[0], hit[1], count, one=one, zero=zero)
    return None


def _from_ones(
    config: ConfigReader, key: str, flags: list[object], count: int, *, one: LayerKind, zero: LayerKind
) -> tuple[LayerKind, ...] | None:
    if len(flags) < count:
        config.report(key, f"has {len(flags)} entries for {count} layers; correct the file")
        return None
    return tuple(one if flag == 1 else zero for flag in flags[:count])


def _from_interval(config: ConfigReader, facts: ConfigFacts, count: int) -> tuple[LayerKind, ...] | None:
    """Qwen3-Next: every n-th layer attends, the others are linear. Jamba: period and offset."""
    interval = config.whole("full_attention_interval") or _DEFAULT_INTERVAL.get(facts.model_type or "")
    if interval is not None:
        return _every(interval, count)
    period = config.whole("attn_layer_period")
    offset = config.whole("attn_layer_offset", least=0)
    if period is None or offset is None:
        return None
    return tuple(LayerKind.FULL if index % period == offset else LayerKind.STATELESS for index in range(count))


def _every(interval: int, count: int) -> tuple[LayerKind, ...]:
    return tuple(LayerKind.FULL if (index + 1) % interval == 0 else LayerKind.STATELESS for index in range(count))


def _from_window(config: ConfigReader, facts: ConfigFacts, count: int) -> tuple[LayerKind, ...]:
    """No layer list: windows by the family's rule. `use_sliding_window` false switches them off."""
    flag = config.flag("use_sliding_window")
    if facts.sliding_window is None or flag is False:
        return (LayerKind.FULL,) * count
    pattern = config.whole("sliding_window_pattern")
    model_type = facts.model_type or ""
    if pattern is None and model_type == "gemma2":
        pattern = 2
    if pattern is None and model_type.startswith("gemma3"):
        pattern = 6
    if pattern is not None:
        return tuple(LayerKind.SLIDING if (index + 1) % pattern else LayerKind.FULL for index in range(count))
    if flag is True:
        first = config.whole("max_window_layers", least=0)
        first = _WINDOW_LAYERS_DEFAULT if first is None else first
        return tuple(LayerKind.SLIDING if index >= first else LayerKind.FULL for index in range(count))
    windowed = model_type.startswith(_WINDOWED_BY_DEFAULT)
    return (LayerKind.SLIDING if windowed else LayerKind.FULL,) * count
