"""A checkpoint folder, read from its config, its weight index and its tensor headers; weights are never read."""

from specbudget.sources.checkpoint.config_parameters import block_drafter_shape
from specbudget.sources.checkpoint.loaded_weights import (
    DeviceWeights,
    LoadedWeights,
    Role,
    loaded_weights,
    weights_per_device,
)
from specbudget.sources.checkpoint.model import (
    BundledFolder,
    Checkpoint,
    CheckpointProblem,
    ConfigFacts,
    Digests,
    Landmark,
    NotLoaded,
    ProblemKind,
    Sharding,
    TensorGroup,
    TensorPart,
    Unused,
)
from specbudget.sources.checkpoint.reader import CheckpointReader, read_checkpoint

__all__ = [
    "BundledFolder",
    "Checkpoint",
    "CheckpointProblem",
    "CheckpointReader",
    "ConfigFacts",
    "DeviceWeights",
    "Digests",
    "Landmark",
    "LoadedWeights",
    "NotLoaded",
    "ProblemKind",
    "Role",
    "Sharding",
    "TensorGroup",
    "TensorPart",
    "Unused",
    "block_drafter_shape",
    "loaded_weights",
    "read_checkpoint",
    "weights_per_device",
]
