"""A checkpoint folder, read from its config, its weight index and its tensor headers; weights are never read."""

from specbudget.sources.checkpoint.loaded_weights import (
    DeviceWeights,
    LoadedWeights,
    Role,
    loaded_weights,
    weights_per_device,
)
from specbudget.sources.checkpoint.model import (
    Checkpoint,
    CheckpointProblem,
    ConfigFacts,
    Landmark,
    ProblemKind,
    Sharding,
    TensorGroup,
    TensorPart,
)
from specbudget.sources.checkpoint.reader import CheckpointReader, read_checkpoint
from specbudget.sources.checkpoint.stored_weights import StoredWeights, stored_weights

__all__ = [
    "Checkpoint",
    "CheckpointProblem",
    "CheckpointReader",
    "ConfigFacts",
    "DeviceWeights",
    "Landmark",
    "LoadedWeights",
    "ProblemKind",
    "Role",
    "Sharding",
    "StoredWeights",
    "TensorGroup",
    "TensorPart",
    "loaded_weights",
    "read_checkpoint",
    "stored_weights",
    "weights_per_device",
]
