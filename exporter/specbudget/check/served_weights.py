"""Arguments that make the weights on a device others than those in the files.

Source: SGLang 0.5.18 and 0.5.23 configs/model_config.py (`_get_and_verify_dtype`, `_verify_quantization`),
arg_groups/serving_hook.py (a drafter follows --quantization), utils/offloader.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.kv_geometry import kv_element_bytes, serving_dtype
from specbudget.pair.kv import ModelFacts, Pair

_NO_METHOD = frozenset({"", "none", "unquant"})
_LOG = "name the log of such a start in engine.server_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightShares:
    """What a model's weights take, as a share of what they take by their own dtype."""

    target: float
    drafter: float


def weight_shares(pair: Pair) -> WeightShares:
    """The shares under `--dtype`; 1 without it."""
    dtype = pair.facts.dtype or "auto"
    return WeightShares(target=_share(pair.target, dtype), drafter=_share(pair.drafter, dtype))


def _share(model: ModelFacts, dtype: str) -> float:
    """Quantised weights keep their dtype; how much of them is not quantised is within their own error."""
    if model.dtype is None or model.quantization is not None:
        return 1.0
    asked = kv_element_bytes(serving_dtype(model.dtype, requested=dtype))
    own = kv_element_bytes(serving_dtype(model.dtype))
    return asked / own if asked and own else 1.0


def why_weights_unknown(pair: Pair) -> str | None:
    """Why the weights that stay on a device do not follow from the files; None where they do."""
    facts = pair.facts
    flags, sizing = facts.flags, facts.sizing
    if (sizing.cpu_offload_gb or 0) > 0 or (sizing.offload_group_size or 0) > 0:
        flag = "--cpu-offload-gb" if sizing.cpu_offload_gb else "--offload-group-size"
        return f"{flag} keeps a part of the weights off the device, how much is the engine's affair"
    asked = _method(flags.quantization)
    if asked is not None and pair.target.geometry is not None and pair.target.quantization is None:
        return f"--quantization {asked} makes the target's weights smaller than its files as they are loaded; {_LOG}"
    given = flags.speculative_draft_model_quantization
    draft = _method(given if given is not None else flags.quantization)
    has_drafter = pair.algorithm is not None and pair.drafter.geometry is not None
    if draft is not None and has_drafter and pair.drafter.quantization is None:
        flag = "--quantization" if given is None else "--speculative-draft-model-quantization"
        return f"{flag} {draft} makes the drafter's weights smaller than its files as they are loaded; {_LOG}"
    return None


def _method(word: str | None) -> str | None:
    return None if word is None or word.lower() in _NO_METHOD else word
