"""The state that a recurrent layer keeps per request slot instead of KV, and its bytes on one device.

Source: SGLang 0.5.18 and 0.5.23 `configs/mamba_utils.py` (`Mamba2StateShape`, `KimiLinearStateShape`,
`BaseLinearStateParams`). Both releases shard and size the state alike; only the replay ring of GDN differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_F32 = 4


class StateKind(StrEnum):
    """What updates the state; KDA and GDN layers alone can keep a replay ring."""

    KDA = "kda"
    GDN = "gdn"
    MAMBA2 = "mamba2"
    LIGHTNING = "lightning"
    CONVOLUTION = "convolution"
    NOTHING = "nothing"
    """A layer without any state, such as an MLP that stands alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState:
    """The shape of one layer's state over all ranks.

    The recurrent part is `heads` x `head_dim` x `state_size` elements of `ssm_bytes` each. The convolution keeps
    `conv_taps` columns (kernel - 1) of `conv_channels` + 2 x `groups` x `state_size` elements of `conv_bytes` each.
    """

    kind: StateKind
    heads: int = 0
    head_dim: int = 0
    state_size: int = 0
    groups: int = 0
    conv_channels: int = 0
    conv_taps: int = 0
    ssm_bytes: int = _F32
    conv_bytes: int = 2

    def on_device(
        self, tensor_parallel: int, *, ssm_bytes: int | None = None, conv_bytes: int | None = None
    ) -> DeviceState | None:
        """One layer's state on one of `tensor_parallel` ranks; None where the engine cannot split it evenly.

        `ssm_bytes` and `conv_bytes` are what the launch arguments or the environment ask for instead of the
        config's own dtypes.
        """
        groups = self.groups
        if groups % tensor_parallel:
            # each rank keeps every group that its heads read
            groups = tensor_parallel
        channels = self.conv_channels + 2 * groups * self.state_size
        if self.heads % tensor_parallel or channels % tensor_parallel:
            return None
        return DeviceState(
            kind=self.kind,
            conv_elements=channels // tensor_parallel * self.conv_taps,
            ssm_elements=self.heads // tensor_parallel * self.head_dim * self.state_size,
            conv_bytes=self.conv_bytes if conv_bytes is None else conv_bytes,
            ssm_bytes=self.ssm_bytes if ssm_bytes is None else ssm_bytes,
            heads=self.heads // tensor_parallel,
            key_heads=-(-self.groups // tensor_parallel),
            head_dim=self.head_dim,
            state_size=self.state_size,
        )


NO_STATE = RecurrentState(kind=StateKind.NOTHING)
"""A layer that holds neither KV nor state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """One layer's state on one device: elements, and bytes of one element, of both parts."""

    kind: StateKind
    conv_elements: int
    ssm_elements: int
    conv_bytes: int
    ssm_bytes: int
    heads: int
    key_heads: int
    head_dim: int
    state_size: int

    @property
    def bytes_per_slot(self) -> int:
        """Bytes of one request slot, without a replay ring."""
        return self.conv_elements * self.conv_bytes + self.ssm_elements * self.ssm_bytes

    def ring_bytes(self, records: int, *, compact: bool) -> int:
        """Bytes of the ring that replays `records` verified tokens; 0 for kinds that have none.

        `compact` is GDN's layout from 0.5.23 on: update vectors, keys and gates, each vector with a low part unless
        the convolution is in float32. Before, GDN keeps raw values and keys, a step size and a gate. KDA keeps both
        sets, and a gate per key channel.
        """
        values = self.heads * records * self.head_dim * self.conv_bytes
        keys = self.key_heads * records * self.state_size * self.conv_bytes
        scalars = self.heads * records * _F32
        match self.kind:
            case StateKind.KDA:
                return 2 * (values + keys) + scalars + scalars * self.state_size
            case StateKind.GDN if compact:
                return (values + keys) * (1 if self.conv_bytes == _F32 else 2) + scalars
            case StateKind.GDN:
                return values + keys + 2 * scalars
            case _:
                return 0
