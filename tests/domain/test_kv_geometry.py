"""Bytes per token against pools that real engines allocated, and the laws that hold for any model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specbudget.domain.kv_geometry import (
    AttentionLayer,
    LatentLayer,
    Layer,
    ModelGeometry,
    RecurrentLayer,
    SharedKvLayer,
    attention_tensor_parallel,
    bytes_per_token,
    floor_to_page,
    kv_element_bytes,
    pool_bytes,
    serving_dtype,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sglang"


def attention(layers: int, kv_heads: int, head_dim: int) -> ModelGeometry:
    """A plain model."""
    layer = AttentionLayer(kv_heads=kv_heads, head_dim=head_dim, v_head_dim=head_dim)
    return ModelGeometry(layers=(layer,) * layers)


def latent(layers: int, **extra: int) -> ModelGeometry:
    """A model with latent attention of 512 + 64."""
    return ModelGeometry(layers=(LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64, **extra),) * layers)


LING = ModelGeometry(
    layers=tuple(
        LatentLayer(kv_lora_rank=512, qk_rope_head_dim=64) if (index + 1) % 6 == 0 else RecurrentLayer()
        for index in range(42)
    )
)

# The pools a real engine allocated for these models, one test per line of its own record.
MEASURED = {
    "target qwen3-8b-like 36L 8kv 128 bf16 (tokens scaled down)": (attention(36, 8, 128), 2),
    "dflash draft 5L 8kv 128 bf16": (attention(5, 8, 128), 2),
    "dflash draft 5L 8kv 128 fp8": (attention(5, 8, 128), 1),
    "eagle3 draft 1L 8kv 128 bf16 page64": (attention(1, 8, 128), 2),
    "MLA 27L 512+64 bf16": (latent(27), 2),
}


@pytest.mark.parametrize("version", ["0.5.18", "0.5.23"])
@pytest.mark.parametrize("tag", MEASURED)
def test_pools_that_sglang_allocated_are_met_to_the_byte(version: str, tag: str) -> None:
    """Bytes per token and the pool with its padding page equal what the engine's own pool classes allocated."""
    records = {
        record["tag"]: record for record in json.loads((FIXTURES / f"kv_pool_formula_check_{version}.json").read_text())
    }
    assert records.keys() == MEASURED.keys()
    geometry, element = MEASURED[tag]
    size = bytes_per_token(geometry, tensor_parallel=1, element_bytes=element)
    record = records[tag]
    assert size == record["formula_bytes_per_token"]
    assert pool_bytes(record["tokens"], record["page"], size) == record["real_total"]


PUBLISHED = [
    ("Ling-3.0-flash on one device", LING, 1, 8_064),
    ("Ling-3.0-flash at TP4: a latent is on every rank", LING, 4, 8_064),
    ("its DSpark drafter on one device", attention(5, 32, 128), 1, 81_920),
    ("its DSpark drafter at TP4", attention(5, 32, 128), 4, 20_480),
    ("its MTP head", latent(1), 4, 1_152),
    ("Kimi-K3: 24 latent layers", latent(24), 1, 27_648),
    ("Kimi-K3 DSpark drafter with per-head KV", attention(5, 16, 64), 1, 20_480),
    ("Kimi-K3 DSpark drafter with latent KV", latent(5), 1, 5_760),
    ("Qwen3-8B", attention(36, 8, 128), 1, 147_456),
    ("Qwen3-8B DSpark drafter", attention(5, 8, 128), 1, 20_480),
    ("GLM-5.2 DSpark drafter", attention(5, 64, 64), 1, 81_920),
]


@pytest.mark.parametrize(
    ("geometry", "ranks", "size"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED]
)
def test_published_bytes_per_token(geometry: ModelGeometry, ranks: int, size: int) -> None:
    """bfloat16 KV of published pairs."""
    assert bytes_per_token(geometry, tensor_parallel=ranks, element_bytes=2) == size


def test_heads_are_replicated_below_one_per_rank() -> None:
    """Four KV heads over eight ranks: each rank keeps one, as over four."""
    model = attention(1, 4, 128)
    assert bytes_per_token(model, tensor_parallel=8, element_bytes=2) == bytes_per_token(
        model, tensor_parallel=4, element_bytes=2
    )


def test_keys_and_values_may_differ_in_width() -> None:
    """Keys of 192 and values of 128 take 320 elements per head."""
    model = ModelGeometry(layers=(AttentionLayer(kv_heads=2, head_dim=192, v_head_dim=128),))
    assert bytes_per_token(model, tensor_parallel=1, element_bytes=1) == 640


def test_index_keys_are_bytes_whatever_the_kv_dtype() -> None:
    """Sparse attention adds 128 one-byte elements and one scale of 4 bytes per layer that owns an index."""
    model = latent(1, index_head_dim=128)
    assert bytes_per_token(model, tensor_parallel=8, element_bytes=2) == 1152 + 132
    assert bytes_per_token(model, tensor_parallel=8, element_bytes=1) == 576 + 132


def test_scaled_fp8_latent_keeps_its_rotary_part_wide() -> None:
    """512 fp8 elements, four scales of 4 bytes and 64 bfloat16 elements are 656 bytes; plain MLA has no such layout."""
    sparse, plain = latent(1, index_head_dim=128), latent(1)
    assert bytes_per_token(sparse, tensor_parallel=1, element_bytes=1, scaled_fp8_latent=True) == 656 + 132
    assert bytes_per_token(plain, tensor_parallel=1, element_bytes=1, scaled_fp8_latent=True) == 576


def test_layers_that_share_an_index_have_the_scaled_layout_too() -> None:
    """The layout is the model's: only the index keys of the second layer are missing."""
    model = ModelGeometry(layers=(*latent(1, index_head_dim=128).layers, *latent(1).layers))
    assert bytes_per_token(model, tensor_parallel=1, element_bytes=1, scaled_fp8_latent=True) == 2 * 656 + 132


LAYERS = st.one_of(
    st.builds(
        AttentionLayer,
        kv_heads=st.integers(1, 128),
        head_dim=st.integers(1, 512),
        v_head_dim=st.integers(1, 512),
        window=st.none() | st.integers(1, 10_000),
    ),
    st.builds(LatentLayer, kv_lora_rank=st.integers(1, 1024), qk_rope_head_dim=st.integers(0, 128)),
    st.just(RecurrentLayer()),
    st.just(SharedKvLayer()),
)
MODELS = st.lists(LAYERS, max_size=12).map(lambda layers: ModelGeometry(layers=tuple(layers)))
RANKS = st.sampled_from([1, 2, 4, 8, 16])


@given(MODELS, LAYERS, RANKS, st.sampled_from([1, 2, 4]))
def test_a_layer_more_never_costs_less(model: ModelGeometry, layer: Layer, ranks: int, element: int) -> None:
    """Bytes per token grow with the layers, and by exactly the layer's own."""
    more = ModelGeometry(layers=(*model.layers, layer))
    alone = ModelGeometry(layers=(layer,))
    sizes = [bytes_per_token(each, tensor_parallel=ranks, element_bytes=element) for each in (model, alone, more)]
    assert sizes[2] == sizes[0] + sizes[1]
    assert sizes[1] >= 0
    assert (sizes[1] == 0) == isinstance(layer, RecurrentLayer | SharedKvLayer)


@given(MODELS, RANKS)
def test_more_ranks_never_cost_a_device_more(model: ModelGeometry, ranks: int) -> None:
    """Sharding shrinks a device's part or leaves it, and all ranks together hold at least the whole."""
    whole = bytes_per_token(model, tensor_parallel=1, element_bytes=2)
    part = bytes_per_token(model, tensor_parallel=ranks, element_bytes=2)
    wider = bytes_per_token(model, tensor_parallel=2 * ranks, element_bytes=2)
    assert wider <= part <= whole


@given(st.integers(0, 10**9), st.sampled_from([1, 16, 64, 128]))
def test_flooring_loses_less_than_a_page(tokens: int, page: int) -> None:
    """The floor is whole pages and within a page of the tokens."""
    floor = floor_to_page(tokens, page)
    assert floor % page == 0
    assert floor <= tokens < floor + page


@pytest.mark.parametrize(
    ("tensor", "data", "context", "ranks"), [(8, 1, 1, 8), (8, 8, 1, 1), (8, 2, 2, 2), (1, 1, 1, 1), (2, 4, 1, 1)]
)
def test_attention_ranks(tensor: int, data: int, context: int, ranks: int) -> None:
    """Attention-DP and context parallelism take ranks away from the sharing of heads."""
    assert attention_tensor_parallel(tensor, attention_data_parallel=data, context_parallel=context) == ranks


@pytest.mark.parametrize(
    ("name", "model", "size"),
    [
        ("auto", "bfloat16", 2),
        ("auto", "torch.float16", 2),
        ("auto", "float32", 2),
        ("auto", None, None),
        ("bf16", None, 2),
        ("bfloat16", "float16", 2),
        ("FP8_E4M3", "bfloat16", 1),
        ("fp8_e5m2", None, 1),
        ("torch.float8_e4m3fn", None, 1),
        ("float32", None, 4),
        ("nvfp4", "bfloat16", None),
        ("mxfp8", "bfloat16", None),
        ("fp7", "bfloat16", None),
    ],
)
def test_names_of_kv_dtypes(name: str, model: str | None, size: int | None) -> None:
    """Engine names give whole element sizes; block-scaled and unknown ones are not guessed."""
    assert kv_element_bytes(name, model_dtype=model) == size


def test_float32_models_are_served_in_sixteen_bit_unless_asked_otherwise() -> None:
    """The engine's own default, which a requested dtype overrides."""
    assert serving_dtype("float32") == "float16"
    assert serving_dtype("bfloat16") == "bfloat16"
    assert serving_dtype("float32", requested="float32") == "float32"
