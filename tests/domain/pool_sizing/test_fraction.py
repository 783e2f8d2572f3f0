"""The engine's own mem_fraction_static, hand-computed for both releases."""

from __future__ import annotations

from typing import Any

import pytest

from specbudget.domain.pool_sizing import FractionInputs, ServingRole, estimated_fraction

H100 = 81_559
"""MiB that an 80 GB device reports."""

CASES: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    # 512 + 8192 x 1.5 + 128 + 256 x 2 + 58 sizes of prefill graphs x 8 = 13,904
    ("one device", {}, {"0.5.18": 0.83, "0.5.23": 0.83}),
    # a limit of 48 requests makes the largest graph 48 in the later release: 13,488
    ("few requests", {"max_running": 48}, {"0.5.18": 0.83, "0.5.23": 0.835}),
    # 512 + 12288 + 512 + 512 x 2 + 1536 = 15,872
    ("latent on four", {"latent": True, "tensor_parallel": 4}, {"0.5.18": 0.805, "0.5.23": 0.805}),
    # besides 512 x 2 x 4.5 for attention-DP: 20,480
    (
        "latent on four with attention-DP",
        {"latent": True, "tensor_parallel": 4, "attention_data_parallel": 2},
        {"0.5.18": 0.749, "0.5.23": 0.749},
    ),
    # 512 + 2048 x 1.5 + 128 is below the floor of 10 GiB
    (
        "no graphs and short chunks",
        {"decode_graphs": False, "prefill_graphs": False, "chunked_prefill": 1024},
        {"0.5.18": 0.874, "0.5.23": 0.874},
    ),
    # 512 + 3072 + 128 + 24 x 2 + 8 x 42; later 512 + 6144 + 128 + 48 x 2 + 8 x 50
    ("a device of 24 GB", {"gpu_memory_mib": 24_564}, {"0.5.18": 0.833, "0.5.23": 0.704}),
]


@pytest.mark.parametrize(("changes", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_the_engine_would_take(changes: dict[str, Any], expected: dict[str, float]) -> None:
    """The reserve over the device's memory, to three digits."""
    for release, fraction in expected.items():
        inputs = FractionInputs(**{"release": release, "gpu_memory_mib": H100, "latent": False, **changes})
        assert estimated_fraction(inputs) == fraction


@pytest.mark.parametrize(
    "changes",
    [
        {"release": "0.5.20"},
        {"multimodal": True},
        {"deepep": True},
        {"role": ServingRole.DECODE},
        {"post_capture_sizing": True},
        {"chunked_prefill": -1},
        {"gpu_memory_mib": 3_000},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_does_not_follow_from_these_arguments(changes: dict[str, Any]) -> None:
    """Then there is no fraction, and so no prediction."""
    inputs = FractionInputs(**{"release": "0.5.23", "gpu_memory_mib": H100, "latent": False, **changes})
    assert estimated_fraction(inputs) is None


def test_a_prefill_server_captures_no_decode_graphs() -> None:
    """512 + 12288 + 128 + 464 of 81,559 MiB."""
    inputs = FractionInputs(release="0.5.23", gpu_memory_mib=H100, latent=False, role=ServingRole.PREFILL)
    assert estimated_fraction(inputs) == 0.836
