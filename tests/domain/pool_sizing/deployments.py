"""Deployments that the tests of this folder size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, ModelGeometry, RecurrentLayer
from specbudget.domain.pool_sizing import PoolInputs, PoolOutcome, Prediction, StatePlan, memory_from_bytes
from specbudget.domain.recurrent_state import RecurrentState, StateKind

GIB = 2**30
LATENT = LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64)
DELTA = RecurrentState(
    kind=StateKind.KDA, heads=32, head_dim=128, state_size=128, groups=32, conv_channels=4096, conv_taps=3
)
GATED = RecurrentState(
    kind=StateKind.GDN, heads=32, head_dim=128, state_size=128, groups=16, conv_channels=4096, conv_taps=3
)


def attention(layers: int, heads: int, head_dim: int = 128) -> ModelGeometry:
    """A model of full-attention layers."""
    return ModelGeometry(layers=(AttentionLayer(kv_heads=heads, head_dim=head_dim, v_head_dim=head_dim),) * layers)


def hybrid(state: RecurrentState | None, *, layers: int = 42, interval: int = 6) -> ModelGeometry:
    """A model whose every `interval`-th layer is a latent one."""
    kinds = (LATENT if (index + 1) % interval == 0 else RecurrentLayer(state=state) for index in range(layers))
    return ModelGeometry(layers=tuple(kinds))


LING = hybrid(DELTA)
"""Ling 3.0 flash: 7 latent layers, 35 of delta attention."""

LING_DRAFTER = attention(5, 32)
LING_DRAFTER_WEIGHTS = 2 * (445_644_800 // 4 + 113_281_025)
"""Its drafter's weights on one of four devices."""

DENSE = PoolInputs(
    release="0.5.23",
    memory=memory_from_bytes(before_load=78 * GIB, target_weights=15 * GIB, drafter_weights=GIB),
    target=attention(36, 8),
    drafter=attention(5, 8),
    algorithm=DraftAlgorithm.DFLASH,
    draft_tokens=16,
    fraction=0.85,
)
"""Qwen3-8B with a DFlash drafter on one device."""

LING_PAIR = PoolInputs(
    release="0.5.23",
    memory=memory_from_bytes(before_load=78 * GIB, target_weights=58 * GIB, drafter_weights=LING_DRAFTER_WEIGHTS),
    target=LING,
    drafter=LING_DRAFTER,
    algorithm=DraftAlgorithm.DSPARK,
    draft_tokens=9,
    tensor_parallel=4,
    fraction=0.85,
)
"""Ling 3.0 flash with its DSpark drafter on four devices."""

LATENTS = ModelGeometry(layers=(LATENT,) * 7)
"""Ling's latent layers alone."""

GDN_PAIR = PoolInputs(
    release="0.5.23",
    memory=memory_from_bytes(before_load=100 * GIB, target_weights=69 * GIB, drafter_weights=GIB),
    target=hybrid(GATED, layers=48, interval=4),
    drafter=ModelGeometry(layers=(LATENT,)),
    algorithm=DraftAlgorithm.MTP,
    draft_tokens=4,
    nextn_layers=1,
    fraction=0.9,
    state=StatePlan(replay=True),
)
"""20 GiB for 36 layers of gated delta attention and 12 latent ones, with a bundled head."""


def changed(inputs: PoolInputs, **changes: Any) -> PoolInputs:
    """The deployment with other values."""
    return replace(inputs, **changes)


def predicted(outcome: PoolOutcome) -> Prediction:
    """The outcome, which must be a prediction."""
    assert isinstance(outcome, Prediction), outcome
    return outcome
