"""How many request slots of recurrent state the engine plans, and what they leave for KV.

Source: SGLang 0.5.18 and 0.5.23 `mem_cache/kv_cache_configurator.py` (`_handle_max_mamba_cache`,
`_calculate_mamba_ratio`), with the engine's own floating-point operations in GiB.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.kv_geometry import ModelGeometry, RecurrentLayer
from specbudget.domain.pool_sizing.inputs import ExtraBuffer, PoolInputs, ServingRole
from specbudget.domain.pool_sizing.memory import GIB
from specbudget.domain.recurrent_state import DeviceState, StateKind

_BASE_SLOTS = 3
"""Slots per running request that the radix cache needs without a tracking buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSizing:
    """The plan of one device.

    `state_bytes` is one slot's state over all layers, `ring_bytes` the replay ring of each slot, `fixed_bytes` a ring
    whose size does not follow the slots. `scratch_tokens` is the number of states a verify step keeps per request,
    0 where it keeps none. `given_slots` is set where arguments fix the slots; else they follow from the memory.
    """

    state_bytes: int
    ring_bytes: int
    fixed_bytes: int
    scratch_tokens: int
    ratio: int
    full_memory_ratio: float
    running: int | None
    given_slots: int | None

    def slots(self, rest_gib: float) -> int:
        """Request slots, without the padding one; 0 or less where the engine refuses to start."""
        if self.given_slots is not None:
            return self.given_slots
        budget = rest_gib * self.full_memory_ratio / (1 + self.full_memory_ratio) * GIB
        if self.scratch_tokens:
            padding = self.state_bytes * (1 + self.scratch_tokens) + self.ring_bytes
            slot = self.state_bytes * (1 + self.scratch_tokens / self.ratio) + self.ring_bytes
            return int((budget - padding) // slot)
        slot = self.state_bytes + self.ring_bytes
        return int((budget - self.fixed_bytes - slot) // slot)

    def scratch_bytes(self, slots: int) -> int:
        """States kept per step for as many requests as can run, and for the padding slot."""
        if not self.scratch_tokens:
            return 0
        requests = slots // self.ratio if self.running is None else min(self.running, slots // self.ratio)
        return self.state_bytes * (requests + 1) * self.scratch_tokens

    def slot_bytes(self, slots: int) -> int:
        """The slots and the padding one with their rings."""
        return (slots + 1) * (self.state_bytes + self.ring_bytes)

    def left_gib(self, rest_gib: float, slots: int) -> float:
        """GiB left for KV with this many slots."""
        if self.scratch_tokens:
            rest_gib -= self.scratch_bytes(slots) / GIB
        return rest_gib - (self.slot_bytes(slots) + self.fixed_bytes) / GIB


def has_recurrent_layers(geometry: ModelGeometry) -> bool:
    """Whether some layer keeps state, or may keep some that is not known."""
    return any(_keeps_state(layer) for layer in geometry.layers if isinstance(layer, RecurrentLayer))


def _keeps_state(layer: RecurrentLayer) -> bool:
    return layer.state is None or layer.state.kind is not StateKind.NOTHING


def device_states(inputs: PoolInputs) -> list[DeviceState] | None:
    """The state of each recurrent layer on one device; None where one is not known or cannot be split."""
    if inputs.target is None:
        return None
    found: list[DeviceState] = []
    for layer in inputs.target.layers:
        if not isinstance(layer, RecurrentLayer) or not _keeps_state(layer):
            continue
        plan = inputs.state
        state = None
        if layer.state is not None:
            state = layer.state.on_device(inputs.attention_ranks, ssm_bytes=plan.ssm_bytes, conv_bytes=plan.conv_bytes)
        if state is None:
            return None
        found.append(state)
    return found


def state_sizing(inputs: PoolInputs, states: list[DeviceState], *, speculative: bool) -> StateSizing:
    """The plan of a hybrid model, with speculation or as the same arguments give it without."""
    plan, early = inputs.state, inputs.read_release == "0.5.18"
    running = inputs.running_per_rank(speculative=speculative)
    kinds = {state.kind for state in states}
    replay = speculative and plan.replay and bool(kinds & {StateKind.KDA, StateKind.GDN})
    gdn = StateKind.KDA not in kinds
    # 0.5.18 keeps of GDN just one verify window per slot, KDA and 0.5.23 the ring's whole length
    records = inputs.draft_tokens if gdn and early and inputs.draft_tokens is not None else plan.replay_records
    ring = sum(state.ring_bytes(records, compact=not early) for state in states) if replay else 0
    ring_is_fixed = replay and gdn and not early
    scratch = speculative and not replay and (early or inputs.role is not ServingRole.PREFILL)
    return StateSizing(
        state_bytes=sum(state.bytes_per_slot for state in states),
        ring_bytes=0 if ring_is_fixed else ring,
        fixed_bytes=ring * ((running or 0) + 1) if ring_is_fixed else 0,
        scratch_tokens=(inputs.draft_tokens or 0) if scratch else 0,
        ratio=slots_per_request(inputs),
        full_memory_ratio=plan.full_memory_ratio,
        running=running,
        given_slots=_given_slots(inputs, running),
    )


def slots_per_request(inputs: PoolInputs) -> int:
    """State slots per running request: its own, and what the radix cache tracks beside it."""
    if not inputs.radix_cache:
        return 1
    plan = inputs.state
    base = _BASE_SLOTS - (1 if plan.skip_decode_lock else 0)
    match plan.extra_buffer:
        case ExtraBuffer.NONE:
            return _BASE_SLOTS
        case ExtraBuffer.LAZY:
            return base + 1
        case ExtraBuffer.PLAIN:
            return base + (2 if inputs.overlap_schedule else 1)


def _given_slots(inputs: PoolInputs, running: int | None) -> int | None:
    if inputs.state.max_slots is not None:
        return inputs.state.max_slots // inputs.attention_data_parallel
    return running if not inputs.radix_cache else None
