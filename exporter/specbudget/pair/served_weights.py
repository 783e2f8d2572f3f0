"""Arguments that make the weights on a device others than those in the files.

Source: SGLang 0.5.18 and 0.5.23 configs/model_config.py (`_get_and_verify_dtype`, `_verify_quantization`),
arg_groups/serving_hook.py (a drafter follows --quantization), utils/offloader.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.kv_geometry import kv_element_bytes, serving_dtype
from specbudget.domain.observation import EngineFacts
from specbudget.pair.kv import ModelFacts, Pair
from specbudget.sources.checkpoint import DeviceWeights

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


def as_served(
    weights: DeviceWeights | None, model: ModelFacts, facts: EngineFacts, *, of_drafter: bool
) -> DeviceWeights | None:
    """A model's weights on one device under the engine's arguments; None where how much these save is not known."""
    if weights is None or _offloaded(facts) or _quantised_at_load(model, facts, of_drafter=of_drafter) is not None:
        return None
    share = _share(model, facts.dtype or "auto")
    return DeviceWeights(
        charged_bytes=round(weights.charged_bytes * share), resident_bytes=round(weights.resident_bytes * share)
    )


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
    if _offloaded(facts):
        flag = "--cpu-offload-gb" if facts.sizing.cpu_offload_gb else "--offload-group-size"
        return f"{flag} keeps a part of the weights off the device, how much is the engine's affair"
    told = None if pair.target.geometry is None else _quantised_at_load(pair.target, facts, of_drafter=False)
    if told is not None:
        return f"{told} makes the target's weights smaller than its files as they are loaded; {_LOG}"
    has_drafter = pair.algorithm is not None and pair.drafter.geometry is not None
    told = _quantised_at_load(pair.drafter, facts, of_drafter=True) if has_drafter else None
    if told is not None:
        return f"{told} makes the drafter's weights smaller than its files as they are loaded; {_LOG}"
    return None


def _offloaded(facts: EngineFacts) -> bool:
    return (facts.sizing.cpu_offload_gb or 0) > 0 or (facts.sizing.offload_group_size or 0) > 0


def _quantised_at_load(model: ModelFacts, facts: EngineFacts, *, of_drafter: bool) -> str | None:
    """The argument that quantises weights which are not quantised in their files; a drafter follows the target's."""
    own = facts.flags.speculative_draft_model_quantization if of_drafter else None
    word, flag = (
        (facts.flags.quantization, "--quantization") if own is None else (own, "--speculative-draft-model-quantization")
    )
    asked = word is not None and word.lower() not in _NO_METHOD
    return f"{flag} {word}" if asked and model.quantization is None else None
