"""The facts of config.json that budgets and the co-design rules need, and where each may stand.

Precedence of the drafter's keys: SGLang 0.5.23 `speculative/dflash_utils.py` and
`speculative/dspark_components/dspark_config.py`; the speculators format: vllm-project/speculators.
"""

from __future__ import annotations

from specbudget.sources.checkpoint.config_file import MOST_LAYERS, ConfigReader
from specbudget.sources.checkpoint.model import ConfigFacts

_BUNDLED_KEYS = ("dspark_block_size", "dspark_markov_rank", "dspark_noise_token_id", "dspark_target_layer_ids")
"""Any of these on a target's config says that a DSpark drafter lies in its files (`dspark_config.py`)."""

_EXTRA_KEYS = ("conv_kernel_size", "selector_rank", "attention_sink_bias")


def read_facts(config: ConfigReader) -> ConfigFacts:
    """Collect the facts; problems of single keys stay in the reader."""
    architectures = config.texts("architectures", ("architectures",), *config.places("architectures"))
    return ConfigFacts(
        architectures=architectures or None,
        model_type=config.text("model_type", ("model_type",), *config.places("model_type")),
        dtype=_dtype(config),
        num_hidden_layers=config.whole(
            "num_hidden_layers",
            *config.places("num_hidden_layers"),
            *config.places("num_layers"),
            *config.places("n_layer"),
            most=MOST_LAYERS,
        ),
        hidden_size=config.whole("hidden_size"),
        intermediate_size=config.whole("intermediate_size"),
        num_attention_heads=config.whole("num_attention_heads"),
        num_key_value_heads=config.whole("num_key_value_heads"),
        head_dim=config.whole("head_dim"),
        vocab_size=config.whole("vocab_size"),
        max_position_embeddings=config.whole("max_position_embeddings"),
        sliding_window=config.whole(
            "sliding_window", *config.places("sliding_window"), *config.places("sliding_window_size")
        ),
        tie_word_embeddings=config.flag("tie_word_embeddings"),
        num_nextn_predict_layers=config.whole(
            "num_nextn_predict_layers",
            *config.places("num_nextn_predict_layers"),
            *config.places("mtp_num_hidden_layers"),
            *config.places("num_mtp_layers"),
            least=0,
            most=MOST_LAYERS,
        ),
        block_size=config.whole("block_size", *_drafter_places("block_size", bundled="dspark_block_size")),
        target_layer_ids=config.wholes(
            "target_layer_ids",
            *_drafter_places("target_layer_ids", bundled="dspark_target_layer_ids"),
            ("eagle_config", "eagle_aux_hidden_state_layer_ids"),
            ("eagle_aux_hidden_state_layer_ids",),
            ("aux_hidden_state_layer_ids",),
        ),
        num_target_layers=config.whole("num_target_layers", *_drafter_places("num_target_layers")),
        mask_token_id=config.whole(
            "mask_token_id", *_drafter_places("mask_token_id", bundled="dspark_noise_token_id"), least=0
        ),
        markov_rank=config.whole("markov_rank", *_drafter_places("markov_rank", bundled="dspark_markov_rank"), least=0),
        markov_head_type=config.text(
            "markov_head_type", *_drafter_places("markov_head_type", bundled="dspark_markov_head_type")
        ),
        confidence_head=config.flag("confidence_head", *_drafter_places("enable_confidence_head")),
        confidence_with_markov=config.flag("confidence_with_markov", *_drafter_places("confidence_head_with_markov")),
        attention_bias=config.flag("attention_bias"),
        extra_modules=_extra_modules(config),
        projector_type=config.text("projector_type", *_drafter_places("projector_type")),
        draft_vocab_size=config.whole("draft_vocab_size"),
        target_hidden_size=config.whole("target_hidden_size"),
        bundles_dspark=any(config.lookup((key,)) is not None for key in _BUNDLED_KEYS),
        has_embed_tokens=config.flag("has_embed_tokens"),
        has_lm_head=config.flag("has_lm_head"),
        algorithm=config.text("algorithm", ("speculators_model_type",), ("speculators_config", "algorithm")),
        target_name=config.text("target_name", ("speculators_config", "verifier", "name_or_path")),
        quantization_method=_quantization_method(config),
        kv_quantization=config.text(
            "kv_quantization",
            ("quantization_config", "kv_cache_quant_algo"),
            ("quantization_config", "quantization", "kv_cache_quant_algo"),
        ),
        found=tuple(sorted(config.found.items())),
    )


def _drafter_places(key: str, *, bundled: str | None = None) -> tuple[tuple[str, ...], ...]:
    nested = (("dspark_config", key), ("dflash_config", key), (key,), ("text_config", key))
    return nested if bundled is None else ((bundled,), *nested)


def _extra_modules(config: ConfigReader) -> bool:
    found = [config.lookup(*_drafter_places(key)) for key in _EXTRA_KEYS]
    kind = config.lookup(*_drafter_places("projector_type"))
    return any(hit is not None and bool(hit[1]) for hit in found) or (kind is not None and kind[1] == "domino")


def _dtype(config: ConfigReader) -> str | None:
    name = config.text("dtype", *config.places("dtype"), *config.places("torch_dtype"))
    return None if name is None else name.removeprefix("torch.")


def _quantization_method(config: ConfigReader) -> str | None:
    places = [
        (*prefix, section, key)
        for prefix in ((), config.text_path)
        for section in ("quantization_config", "compression_config")
        for key in ("quant_method", "quant_algo")
    ]
    return config.text("quantization_method", *places)
