"""The size of SGLang's KV pool before anything runs: inputs, the engine's rule, and what it comes to.

`predict_pool(PoolInputs(...))` is the way in. Releases 0.5.18 and 0.5.23 were read; everything else is not predicted.
"""

from specbudget.domain.pool_sizing.fraction import FractionInputs, estimated_fraction
from specbudget.domain.pool_sizing.inputs import (
    DEFAULT_RUNNING,
    MULTIMODAL_EMBEDDING_MIB,
    MULTIMODAL_TRANSPORT_MIB,
    READ_RELEASES,
    ExtraBuffer,
    PoolInputs,
    ServingRole,
    StatePlan,
)
from specbudget.domain.pool_sizing.memory import (
    ProfiledMemory,
    memory_from_bytes,
    memory_from_label,
    memory_from_log,
)
from specbudget.domain.pool_sizing.outcome import (
    NotEnoughMemory,
    NotPredicted,
    PoolOutcome,
    Prediction,
    StatePool,
    Step,
    TokenCost,
)
from specbudget.domain.pool_sizing.prediction import predict_pool
from specbudget.domain.pool_sizing.span import (
    Certainty,
    LimitVerdict,
    Span,
    TokenSpan,
    at_least,
    at_most,
    exactly,
    within_share,
)
from specbudget.domain.pool_sizing.started import memory_from_start

__all__ = [
    "DEFAULT_RUNNING",
    "MULTIMODAL_EMBEDDING_MIB",
    "MULTIMODAL_TRANSPORT_MIB",
    "READ_RELEASES",
    "Certainty",
    "ExtraBuffer",
    "FractionInputs",
    "LimitVerdict",
    "NotEnoughMemory",
    "NotPredicted",
    "PoolInputs",
    "PoolOutcome",
    "Prediction",
    "ProfiledMemory",
    "ServingRole",
    "Span",
    "StatePlan",
    "StatePool",
    "Step",
    "TokenCost",
    "TokenSpan",
    "at_least",
    "at_most",
    "estimated_fraction",
    "exactly",
    "memory_from_bytes",
    "memory_from_label",
    "memory_from_log",
    "memory_from_start",
    "predict_pool",
    "within_share",
]
