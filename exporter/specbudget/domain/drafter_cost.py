"""What a drafter takes from its target: the engine's charge per token, and the cost in target tokens.

All bytes are of one device. How the engine charges a drafter: SGLang 0.5.18 and 0.5.23,
`model_executor/pool_configurator.py` and `speculative/dflash_utils.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import (
    AttentionLayer,
    LatentLayer,
    ModelGeometry,
    SharedKvLayer,
    bytes_per_token,
    floor_to_page,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterCost:
    """What the drafter costs in tokens of the target's pool."""

    target_tokens: int
    target_tokens_without_drafter: int
    kv_tokens: int
    weights_tokens: int

    @property
    def cost_tokens(self) -> int:
        """Tokens the target's pool would hold more without the drafter."""
        return self.kv_tokens + self.weights_tokens


def cost_in_target_tokens(
    *,
    available_bytes: int,
    drafter_weights_bytes: int,
    target_token_bytes: int,
    charged_token_bytes: int,
    page: int,
) -> DrafterCost:
    """Split what the drafter takes from the target's pool into its KV and its weights.

    `available_bytes` is what the engine has for KV with the drafter's weights resident,
    `drafter_weights_bytes` what they take then (EAGLE and MTP: with their copies of embedding and head). The
    KV part is what the charge per token takes of that room, the weights part what the weights took before.
    """
    cell = target_token_bytes + charged_token_bytes
    with_drafter = floor_to_page(available_bytes // cell, page)
    without_kv = floor_to_page(available_bytes // target_token_bytes, page)
    without = floor_to_page((available_bytes + drafter_weights_bytes) // target_token_bytes, page)
    return DrafterCost(
        target_tokens=with_drafter,
        target_tokens_without_drafter=without,
        kv_tokens=without_kv - with_drafter,
        weights_tokens=without - without_kv,
    )


def kv_cost_ratio(*, target_token_bytes: int, charged_token_bytes: int) -> float:
    """Share of the target's token budget that the drafter's KV takes, 0-1."""
    return charged_token_bytes / (target_token_bytes + charged_token_bytes)


def charged_bytes_per_token(
    algorithm: DraftAlgorithm | None,
    *,
    version: str,
    target: ModelGeometry,
    drafter: ModelGeometry | None,
    tensor_parallel: int,
    attention_tensor_parallel: int,
    target_element_bytes: int,
    drafter_element_bytes: int,
    nextn_layers: int | None = None,
    own_path: bool = True,
    scaled_fp8_latent: bool = False,
) -> int | None:
    """What the engine takes off the KV budget per target token for the drafter; None: not predicted.

    This is the charge, not the cost of the pool: EAGLE, MTP and standalone drafters are charged as layers of
    the target's own shape. `nextn_layers` is num_nextn_predict_layers of the drafter's config (of the
    target's for a head bundled with it), `own_path` whether the engine has a draft model path. Predicted for
    SGLang 0.5.18 and 0.5.23 and their post releases, for targets without sliding windows or shared KV and
    without context parallelism. `scaled_fp8_latent` is the target's layout, as in `bytes_per_token`.
    """
    release = ".".join(version.strip().removeprefix("v").split("+")[0].split(".")[:3])
    if release not in ("0.5.18", "0.5.23") or algorithm is None:
        return None
    if algorithm is DraftAlgorithm.NGRAM:
        return 0
    if target.has_windows or any(isinstance(layer, SharedKvLayer) for layer in target.layers):
        return None
    if algorithm.is_block:
        if drafter is None or not all(isinstance(layer, AttentionLayer) for layer in drafter.layers):
            return None
        # 0.5.18 divides by the whole tp size, 0.5.23 by the ranks that really share the heads.
        ranks = tensor_parallel if release == "0.5.18" else attention_tensor_parallel
        return bytes_per_token(drafter, tensor_parallel=ranks, element_bytes=drafter_element_bytes)
    if not own_path and release == "0.5.18":
        return 0
    layers = nextn_layers if nextn_layers is not None else _layer_count(drafter)
    target_cell = bytes_per_token(
        target,
        tensor_parallel=attention_tensor_parallel,
        element_bytes=target_element_bytes,
        scaled_fp8_latent=scaled_fp8_latent,
    )
    if layers is None or not target.kv_layers or target_cell <= 0:
        return None
    return _charge_as_target_layers(target, target_cell, layers, release)


def _layer_count(drafter: ModelGeometry | None) -> int | None:
    return None if drafter is None else len(drafter.layers)


def _charge_as_target_layers(target: ModelGeometry, target_cell: int, layers: int, release: str) -> int:
    """Float arithmetic on purpose: the engine rounds this way, to the byte."""
    count = len(target.kv_layers)
    index = [layer.index_bytes for layer in target.kv_layers if isinstance(layer, LatentLayer)]
    if any(index):
        return int((target_cell - sum(index)) * layers / count) + max(index) * layers
    if release == "0.5.18":
        return int(target_cell * (1 + layers / count)) - target_cell
    return int(target_cell * layers / count)
