"""The KV geometry of a config: each layer's kind joined with its heads, dimensions and window.

Source: SGLang 0.5.23 `configs/model_config.py` (`_derive_model_shapes`, `get_total_num_kv_heads`).
"""

from __future__ import annotations

from specbudget.domain.kv_geometry import (
    AttentionLayer,
    LatentLayer,
    Layer,
    ModelGeometry,
    RecurrentLayer,
    SharedKvLayer,
)
from specbudget.domain.recurrent_state import NO_STATE
from specbudget.sources.checkpoint.config_file import ConfigReader
from specbudget.sources.checkpoint.layer_kinds import LayerKind, layer_kinds
from specbudget.sources.checkpoint.model import ConfigFacts, ProblemKind
from specbudget.sources.checkpoint.recurrent_shapes import read_recurrent_state

_KV_HEAD_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
_OWN_LAYOUTS = ("compress_ratios", "sparse_attention_config")
"""Caches that are no plain rows per token: DeepSeek V4 and MiniMax M3."""
_NEEDED_KEYS = frozenset(
    {
        *("num_hidden_layers", "num_layers", "n_layer", "num_attention_heads", "hidden_size", "head_dim"),
        *("attention_head_dim", "v_head_dim", "swa_head_dim", "swa_v_head_dim", "swa_num_key_value_heads"),
        *("kv_lora_rank", "qk_rope_head_dim", "use_mla", "use_mla_nope", "multi_query", "index_topk"),
        *("index_head_dim", "indexer_types", "cli_factor", "index_topk_freq", "index_topk_pattern"),
        *("index_skip_topk_offset", "num_kv_shared_layers", "num_global_key_value_heads", "global_head_dim"),
        *("layer_types", "layers_block_type", "layer_group_size", "kda_layers", "full_attention_interval"),
        *("attn_layer_period", "attn_layer_offset", "sliding_window", "sliding_window_size"),
        *("sliding_window_pattern", "use_sliding_window", "max_window_layers", *_KV_HEAD_KEYS),
    }
)
"""With a broken one of these the remaining keys may still give a geometry, but a wrong one."""

_SPARSE_ARCHITECTURES = frozenset(
    {
        *("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "MistralLarge3ForCausalLM"),
        *("PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "Glm5NextForConditionalGeneration"),
        *("LongcatFlashForCausalLM", "Dots3NoteForCausalLM", "HYV4ForCausalLM"),
    }
)


def read_geometry(config: ConfigReader, facts: ConfigFacts) -> tuple[ModelGeometry | None, ModelGeometry | None]:
    """The model's geometry and that of its bundled MTP layers; None with a problem where it cannot be known."""
    unusual = config.lookup(*(place for key in _OWN_LAYOUTS for place in config.places(key)))
    if unusual is not None:
        message = "means a compressed cache of its own layout; its bytes per token are not predicted"
        config.report(unusual[0], message, ProblemKind.INCOMPLETE)
        return None, None
    kinds = layer_kinds(config, facts)
    if kinds is None:
        return None, None
    shapes = _Shapes(config, facts)
    layers: list[Layer] = []
    for index, kind in enumerate(kinds):
        layer = shapes.layer(index, kind)
        if layer is None:
            return None, None
        layers.append(layer)
    shared = config.whole("num_kv_shared_layers", least=0) or 0
    if shared:
        layers[-shared:] = [SharedKvLayer()] * min(shared, len(layers))
    if "LongcatFlashForCausalLM" in (facts.architectures or ()):
        layers = [layer for layer in layers for _ in range(2)]
    bundled = shapes.bundled()
    if any((problem.key or "").rpartition(".")[2] in _NEEDED_KEYS for problem in config.problems):
        return None, None
    return ModelGeometry(layers=tuple(layers)), bundled


class _Shapes:
    def __init__(self, config: ConfigReader, facts: ConfigFacts) -> None:
        self._config = config
        self._facts = facts
        self._cache: dict[tuple[LayerKind, bool], Layer | None] = {}
        self._rank = None if config.flag("use_mla") is False else config.whole("kv_lora_rank")

    def layer(self, index: int, kind: LayerKind) -> Layer | None:
        owns_index = self._rank is not None and self._owns_index(index)
        key = (kind, owns_index)
        if key not in self._cache:
            self._cache[key] = self._make(kind, owns_index=owns_index)
        return self._cache[key]

    def bundled(self) -> ModelGeometry | None:
        """An MTP layer is a full-attention layer of the target's own shape, with its own index keys."""
        count = self._facts.num_nextn_predict_layers
        if not count:
            return None
        layer = self._make(LayerKind.FULL, owns_index=self._rank is not None and self._is_sparse())
        return None if layer is None else ModelGeometry(layers=(layer,) * count)

    def _make(self, kind: LayerKind, *, owns_index: bool) -> Layer | None:
        if kind is LayerKind.STATELESS:
            return RecurrentLayer(state=read_recurrent_state(self._config, self._facts))
        if kind is LayerKind.EMPTY:
            return RecurrentLayer(state=NO_STATE)
        window = None
        if kind is LayerKind.SLIDING:
            window = self._facts.sliding_window
            if window is None:
                self._lacks("sliding_window", "a layer slides, but no window is given")
                return None
        return self._attention(kind, window) if self._rank is None else self._latent(owns_index, window)

    def _latent(self, owns_index: bool, window: int | None) -> Layer | None:
        rope = self._config.whole("qk_rope_head_dim", least=0)
        if rope is None or self._rank is None:
            self._lacks("qk_rope_head_dim", "is needed beside kv_lora_rank")
            return None
        bailing = any(name.startswith("BailingMoeV3") for name in self._facts.architectures or ())
        if bailing and self._config.flag("use_mla_nope"):
            rope = 0
        width = (self._config.whole("index_head_dim") or 128) if owns_index else None
        return LatentLayer(kv_lora_rank=self._rank, qk_rope_head_dim=rope, index_head_dim=width, window=window)

    def _attention(self, kind: LayerKind, window: int | None) -> Layer | None:
        heads, head_dim = self._kv_heads(), self._head_dim()
        v_head_dim = self._config.whole("v_head_dim", least=0) or head_dim
        if kind is LayerKind.SLIDING:
            heads = self._config.whole("swa_num_key_value_heads") or heads
            own = self._config.whole("swa_head_dim")
            v_head_dim = self._config.whole("swa_v_head_dim") or own or v_head_dim
            head_dim = own or head_dim
        elif self._facts.model_type is not None and self._facts.model_type.startswith("gemma4"):
            heads = self._config.whole("num_global_key_value_heads") or heads
            head_dim = v_head_dim = self._config.whole("global_head_dim") or head_dim
        if heads is None:
            self._lacks("num_key_value_heads", "is needed for the KV geometry")
            return None
        if head_dim is None or v_head_dim is None:
            self._lacks("head_dim", "is needed for the KV geometry")
            return None
        return AttentionLayer(kv_heads=heads, head_dim=head_dim, v_head_dim=v_head_dim, window=window)

    def _kv_heads(self) -> int | None:
        if self._config.flag("multi_query") and not self._config.flag("new_decoder_architecture"):
            return 1
        for key in _KV_HEAD_KEYS:
            heads = self._config.whole(key)
            if heads is not None:
                return heads
        return self._facts.num_attention_heads

    def _head_dim(self) -> int | None:
        own = self._facts.head_dim or self._config.whole("attention_head_dim")
        if own is not None:
            return own
        hidden, heads = self._facts.hidden_size, self._facts.num_attention_heads
        if hidden is None or heads is None or hidden < heads:
            return None
        return hidden // heads

    def _lacks(self, key: str, message: str) -> None:
        self._config.report(key, f"{message}; add it to the config", ProblemKind.INCOMPLETE)

    def _is_sparse(self) -> bool:
        names = self._facts.architectures or ()
        return bool(names) and names[0] in _SPARSE_ARCHITECTURES and self._config.whole("index_topk") is not None

    def _owns_index(self, index: int) -> bool:
        """Whether a layer of a sparse model stores index keys or reuses those of an earlier one."""
        if not self._is_sparse():
            return False
        kinds = self._config.texts("indexer_types")
        if kinds is not None:
            return not (index < len(kinds) and kinds[index] == "shared")
        every = self._config.whole("cli_factor") or 1
        if every > 1:
            return index % every == 0
        pattern = self._config.text("index_topk_pattern")
        if pattern is not None:
            return not (index < len(pattern) and pattern[index] == "S")
        every = self._config.whole("index_topk_freq") or 1
        offset = self._config.whole("index_skip_topk_offset")
        return max(index - (1 if offset is None else offset - 1), 0) % every == 0
