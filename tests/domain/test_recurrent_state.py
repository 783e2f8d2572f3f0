"""What a recurrent layer keeps per request slot on one device."""

from __future__ import annotations

import pytest

from specbudget.domain.recurrent_state import NO_STATE, RecurrentState, StateKind

LING = RecurrentState(
    kind=StateKind.KDA, heads=32, head_dim=128, state_size=128, groups=32, conv_channels=4096, conv_taps=3
)
QWEN = RecurrentState(
    kind=StateKind.GDN, heads=32, head_dim=128, state_size=128, groups=16, conv_channels=4096, conv_taps=3
)


def test_kda_keeps_three_convolutions_and_a_square_per_head() -> None:
    """Ling at TP4: 3 x 3 x 1024 convolved elements of 2 bytes, 8 x 128 x 128 of 4."""
    state = LING.on_device(4)
    assert state is not None
    assert (state.conv_elements, state.ssm_elements) == (9_216, 131_072)
    assert state.bytes_per_slot == 9_216 * 2 + 131_072 * 4 == 542_720
    assert 35 * state.bytes_per_slot == 18_995_200


def test_a_dtype_asked_for_replaces_the_config_s() -> None:
    """bfloat16 halves the recurrent part and leaves the convolution."""
    state = LING.on_device(4, ssm_bytes=2)
    assert state is not None
    assert state.bytes_per_slot == 9_216 * 2 + 131_072 * 2


def test_gdn_shares_keys_between_value_heads() -> None:
    """Qwen3-Next on one device: (4096 + 2 x 16 x 128) x 3 convolved elements, 32 x 128 x 128 recurrent ones."""
    state = QWEN.on_device(1)
    assert state is not None
    assert (state.conv_elements, state.ssm_elements) == (24_576, 524_288)


def test_groups_that_do_not_divide_are_kept_by_every_rank() -> None:
    """A single group at TP2 is there twice."""
    state = RecurrentState(
        kind=StateKind.MAMBA2, heads=8, head_dim=64, state_size=16, groups=1, conv_channels=512, conv_taps=3
    )
    on_two = state.on_device(2)
    assert on_two is not None
    assert on_two.conv_elements == (512 + 2 * 2 * 16) // 2 * 3


def test_heads_that_do_not_divide_are_refused() -> None:
    """The engine stops at such a split, so nothing is predicted."""
    assert LING.on_device(3) is None


@pytest.mark.parametrize(
    ("state", "compact", "ring"),
    [
        # values and keys twice: 32 x (8 x 128 + 8 x 128) x 2 x 2, step sizes 8 x 32 x 4, gates 8 x 32 x 128 x 4
        (LING, True, 262_144 + 1_024 + 131_072),
        (LING, False, 262_144 + 1_024 + 131_072),
        # 32 x (8 x 128 + 4 x 128) x 2 bytes of values and keys, 8 x 32 x 4 of scalars
        (QWEN, True, 2 * 98_304 + 1_024),
        (QWEN, False, 98_304 + 2 * 1_024),
        (NO_STATE, True, 0),
    ],
    ids=["KDA", "KDA before", "GDN compact", "GDN before", "none"],
)
def test_replay_rings(state: RecurrentState, compact: bool, ring: int) -> None:
    """A ring of 32 records at TP4."""
    device = state.on_device(4)
    assert device is not None
    assert device.ring_bytes(32, compact=compact) == ring


def test_a_ring_in_float32_needs_no_low_parts() -> None:
    """The compact layout keeps each vector once then."""
    device = QWEN.on_device(4, conv_bytes=4)
    assert device is not None
    assert device.ring_bytes(32, compact=True) == 2 * 98_304 + 1_024
