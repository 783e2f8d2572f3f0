"""How much device memory each part of the stand-in takes, computed the way SGLang 0.5.23 computes it.

Follows `_profile_available_bytes`, `_handle_max_mamba_cache` (mem_cache/kv_cache_configurator.py),
`replayssm_ring_bytes_per_req` (configs/mamba_utils.py) and the pools of mem_cache/memory_pool.py, so that the
numbers which the stand-in prints agree with a prediction from its own checkpoints and arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from specbudget.simulate.configs import TARGET_CONFIG as T
from specbudget.simulate.drafters import DRAFTERS, GIB, Drafter
from specbudget.simulate.scenarios import Algorithm
from specbudget.simulate.tensors import Tensor, is_linear_attention, target_layers

BF16_BYTES = 2
PAGE_TOKENS = 64
MAMBA_RATIO = 0.9
"""SGLang's default of --mamba-full-memory-ratio."""
STATE_SLOTS_PER_REQUEST = 5
"""`_calculate_mamba_ratio`: 3, and 2 tracking slots with the extra buffer and overlapped scheduling."""
REPLAY_RING_LENGTH = 32
"""--linear-replayssm-cache-len: a power of two, at least twice the verify window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device: its marketing name, its memory and what is free before any weight, in GiB."""

    name: str
    memory_gib: float
    free_before_load_gib: float


B200 = Gpu(name="NVIDIA B200", memory_gib=179.0, free_before_load_gib=177.42)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Memory of one rank of the engine, in bytes unless the name says otherwise.

    `tokens` is max_total_num_tokens: the slots of the target's pool and of the drafter's. `state_slots` is the
    number of recurrent-state slots (max_mamba_cache_size). `drafter_copies` is what the drafter holds beside its
    weights until the pools are allocated.
    """

    free_before_load: int
    target_weights: int
    drafter_weights: int
    tokens: int
    target_token_bytes: int
    drafter_token_bytes: int
    state_slots: int
    conv_state: int
    ssm_state: int
    conv_windows: int
    replay_ring: int
    drafter_copies: int = 0

    @property
    def target_kv(self) -> int:
        """The target's KV pool; one page of padding belongs to it."""
        return (self.tokens + PAGE_TOKENS) * self.target_token_bytes

    @property
    def drafter_kv(self) -> int:
        """The drafter's KV pool, which has the target's slots; 0 without a drafter."""
        return (self.tokens + PAGE_TOKENS) * self.drafter_token_bytes

    @property
    def state(self) -> int:
        """Recurrent state of the KDA layers with all that belongs to its slots."""
        return self.conv_state + self.ssm_state + self.conv_windows + self.replay_ring


def resident_bytes(tensors: Iterable[Tensor], tensor_parallel: int) -> int:
    """Bytes of the loaded tensors on one rank."""
    return sum(
        tensor.nbytes // tensor_parallel if tensor.sharded else tensor.nbytes for tensor in tensors if tensor.loaded
    )


@functools.lru_cache(maxsize=4)
def target_weight_bytes(tensor_parallel: int) -> int:
    """The target's weights on one rank, in bytes."""
    return sum(resident_bytes(layer, tensor_parallel) for layer in target_layers())


def target_bytes_per_token() -> int:
    """MLA latent of the full-attention layers; every rank holds it whole."""
    layers = sum(not is_linear_attention(layer) for layer in range(T["num_hidden_layers"]))
    return int((T["kv_lora_rank"] + T["qk_rope_head_dim"]) * layers * BF16_BYTES)


def size_engine(
    *,
    gpu: Gpu,
    tensor_parallel: int,
    memory_fraction: float,
    speculation: bool,
    max_total_tokens: int | None,
    drafter: Drafter = DRAFTERS[Algorithm.DSPARK],
    verifies: bool = True,
) -> Sizes:
    """Size one rank. `max_total_tokens` caps the pool like --max-total-tokens; None leaves it to memory.

    `verifies` False: a prefill engine, which keeps neither a replay ring nor state per draft token.

    Raises ValueError where the weights leave no memory for the pools, as the engine refuses to start.
    """
    free = int(gpu.free_before_load_gib * GIB)
    target = target_weight_bytes(tensor_parallel)
    own = resident_bytes(drafter.tensors(), tensor_parallel) if speculation else 0
    copies = resident_bytes(drafter.copies, tensor_parallel) if speculation else 0
    rest = memory_fraction * free - target - own - copies
    if rest <= 0:
        raise ValueError(f"memory fraction {memory_fraction} leaves no memory beside the weights on {gpu.name}")

    layers = sum(is_linear_attention(layer) for layer in range(T["num_hidden_layers"]))
    heads = T["num_attention_heads"] // tensor_parallel
    dim, ring = T["head_dim"], REPLAY_RING_LENGTH
    conv = (T["short_conv_kernel_size"] - 1) * 3 * heads * dim * BF16_BYTES * layers
    ssm = heads * dim * dim * 4 * layers
    replay = heads * ring * (4 * dim * BF16_BYTES + dim * 4 + 4) * layers if speculation and verifies else 0
    per_slot = conv + ssm + replay
    slots = int((rest * MAMBA_RATIO / (1 + MAMBA_RATIO) - per_slot) // per_slot)
    rest -= (slots + 1) * per_slot

    target_token = target_bytes_per_token()
    drafter_token = drafter.token_bytes(tensor_parallel) if speculation else 0
    tokens = int(rest) // (target_token + drafter_token)
    if max_total_tokens is not None:
        tokens = min(tokens, max_total_tokens)
    tokens = tokens // PAGE_TOKENS * PAGE_TOKENS
    running = 48
    return Sizes(
        free_before_load=free,
        target_weights=target,
        drafter_weights=own,
        drafter_copies=copies,
        tokens=tokens,
        target_token_bytes=target_token,
        drafter_token_bytes=drafter_token,
        state_slots=slots,
        conv_state=(slots + 1) * conv,
        ssm_state=(slots + 1) * ssm,
        conv_windows=(running + 1) * drafter.widest * conv if speculation and verifies else 0,
        replay_ring=(slots + 1) * replay,
    )
