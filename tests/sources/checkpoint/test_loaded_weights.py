"""What engines load of a checkpoint, against published parameter counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.sources.checkpoint import (
    Checkpoint,
    DeviceWeights,
    LoadedWeights,
    Role,
    loaded_weights,
    read_checkpoint,
    weights_per_device,
)

Writer = Callable[..., Path]
Maker = Callable[..., dict[str, tuple[str, tuple[int, ...]]]]

LING = {
    "layers": 5,
    "hidden": 2560,
    "heads": 32,
    "kv_heads": 32,
    "head_dim": 128,
    "inter": 6144,
    "taps": 5,
    "vocab": 157184,
    "rank": 256,
}
KIMI = {
    "layers": 5,
    "hidden": 7168,
    "heads": 64,
    "kv_heads": 16,
    "head_dim": 64,
    "inter": 14336,
    "taps": 5,
    "vocab": 163840,
    "rank": 256,
}
GLM = {
    "layers": 5,
    "hidden": 6144,
    "heads": 64,
    "kv_heads": 64,
    "head_dim": 64,
    "inter": 12288,
    "taps": 5,
    "vocab": 154880,
    "rank": 256,
}
BOTH = ("embed_tokens", "lm_head")
PUBLISHED = [
    ("Ling-3.0-flash-dspark", LING, BOTH, 1_363_707_905),
    ("Ling-3.0-flash-dspark without its head", LING, ("embed_tokens",), 961_316_865),
    ("Kimi-K3 DSpark owns neither matrix", KIMI, (), 2_249_289_601),
    ("GLM-5.2 DSpark", GLM, BOTH, 3_807_067_009),
    ("GLM-5.2 DSpark of three layers", {**GLM, "layers": 3}, BOTH, 3_152_730_753),
]


@pytest.mark.parametrize(
    ("shape", "own", "count"), [case[1:] for case in PUBLISHED], ids=[case[0] for case in PUBLISHED]
)
def test_parameters_on_disk_match_the_published_count(
    shape: dict[str, int],
    own: tuple[str, ...],
    count: int,
    tmp_path: Path,
    block_drafter: Maker,
    write_safetensors: Writer,
) -> None:
    """The headers of a checkpoint with the real shapes add up to the published number, to the unit."""
    write_safetensors(tmp_path / "model.safetensors", block_drafter(**shape, own=own))
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.parameters == count
    assert checkpoint.dtype == "bfloat16"
    assert not checkpoint.packed
    assert checkpoint.unclassified == ()


@pytest.fixture
def ling(tmp_path: Path, configs: Path, block_drafter: Maker, write_safetensors: Writer) -> Checkpoint:
    """Ling's drafter with its real shapes."""
    shutil.copy(configs / "drafters" / "inclusionAI_Ling-3.0-flash-dspark.RECONSTRUCTED.json", tmp_path / "config.json")
    write_safetensors(tmp_path / "model.safetensors", block_drafter(**LING, own=BOTH))
    return read_checkpoint(tmp_path)


@pytest.mark.parametrize("algorithm", [DraftAlgorithm.DSPARK, DraftAlgorithm.DFLASH])
def test_block_drafters_never_load_embedding_and_head(algorithm: DraftAlgorithm, ling: Checkpoint) -> None:
    """Of Ling's 1,363,707,905 parameters 558,925,825 are loaded: the target's two matrices are attached."""
    count = 558_925_825
    assert loaded_weights(ling, algorithm, role=Role.DRAFTER) == LoadedWeights(
        charged_parameters=count, charged_bytes=2 * count, resident_parameters=count, resident_bytes=2 * count
    )


def test_block_drafter_on_one_of_four_devices(ling: Checkpoint) -> None:
    """At TP4 attention and MLP are split; projection, Markov head and confidence head are whole on each rank."""
    size = 2 * (445_644_800 // 4 + 113_281_025)
    expected = DeviceWeights(charged_bytes=size, resident_bytes=size)
    assert weights_per_device(ling, DraftAlgorithm.DSPARK, 4, Role.DRAFTER) == expected
    assert round(size / 2**30, 2) == 0.42


def test_one_device_holds_everything(ling: Checkpoint) -> None:
    """Without tensor parallelism the device's share is the total."""
    device = weights_per_device(ling, DraftAlgorithm.DSPARK, 1, Role.DRAFTER)
    loaded = loaded_weights(ling, DraftAlgorithm.DSPARK, role=Role.DRAFTER)
    assert device is not None
    assert loaded is not None
    assert device.resident_bytes == loaded.resident_bytes


def test_chain_drafters_hold_their_copies_while_the_pool_is_sized(ling: Checkpoint) -> None:
    """EAGLE and MTP are charged with embedding and head, and free both later; a standalone drafter keeps them."""
    total, without = 1_363_707_905, 558_925_825
    for algorithm, resident in (
        (DraftAlgorithm.EAGLE, without),
        (DraftAlgorithm.MTP, without),
        (DraftAlgorithm.STANDALONE, total),
    ):
        loaded = loaded_weights(ling, algorithm, role=Role.DRAFTER)
        assert loaded is not None
        assert (loaded.charged_parameters, loaded.resident_parameters) == (total, resident)


def eagle3(folder: Path, write: Writer, config: dict[str, Any], **tensors: tuple[int, ...]) -> Checkpoint:
    """A small EAGLE-3 drafter with vocabulary maps."""
    base: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(base | config))
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "midlayer.self_attn.q_proj.weight": ("BF16", (64, 128)),
        "fc.weight": ("BF16", (64, 192)),
        "d2t": ("I64", (320,)),
        "t2d": ("BOOL", (1000,)),
        **{f"{name}.weight": ("BF16", shape) for name, shape in tensors.items()},
    }
    write(folder / "model.safetensors", shapes)
    return read_checkpoint(folder)


BODY = 64 * 128 + 64 * 192


def test_eagle3_keeps_its_own_head_and_shares_the_embedding(tmp_path: Path, write_safetensors: Writer) -> None:
    """A drafter vocabulary of its own needs a head of its own; an embedding that is not stored is allocated too."""
    checkpoint = eagle3(tmp_path, write_safetensors, {"draft_vocab_size": 320}, lm_head=(320, 64))
    loaded = loaded_weights(checkpoint, DraftAlgorithm.EAGLE3, role=Role.DRAFTER)
    assert loaded is not None
    assert loaded.charged_parameters == BODY + 320 * 64 + 1000 * 64
    assert loaded.resident_parameters == BODY + 320 * 64


def test_eagle3_of_another_width_keeps_its_embedding(tmp_path: Path, write_safetensors: Writer) -> None:
    """An embedding of another hidden size than the target's cannot be shared."""
    checkpoint = eagle3(
        tmp_path, write_safetensors, {"draft_vocab_size": 320, "target_hidden_size": 128}, lm_head=(320, 64)
    )
    loaded = loaded_weights(checkpoint, DraftAlgorithm.EAGLE3, role=Role.DRAFTER)
    assert loaded is not None
    assert loaded.resident_parameters == BODY + 320 * 64 + 1000 * 64


def test_eagle3_without_a_vocabulary_of_its_own_takes_the_targets_head(
    tmp_path: Path, write_safetensors: Writer
) -> None:
    """The head is allocated in the target's vocabulary and freed again."""
    checkpoint = eagle3(tmp_path, write_safetensors, {})
    loaded = loaded_weights(checkpoint, DraftAlgorithm.EAGLE3, role=Role.DRAFTER)
    assert loaded is not None
    assert loaded.charged_parameters == BODY + 2 * 1000 * 64
    assert loaded.resident_parameters == BODY


def test_vocabulary_rows_are_padded_before_they_are_split(tmp_path: Path, write_safetensors: Writer) -> None:
    """1,000 rows become 1,024 in blocks of 64, so each of two devices holds 512."""
    checkpoint = eagle3(tmp_path, write_safetensors, {"draft_vocab_size": 320}, lm_head=(320, 64))
    device = weights_per_device(checkpoint, DraftAlgorithm.EAGLE3, 2, Role.DRAFTER)
    assert device is not None
    body = 2 * (64 * 128 // 2 + 64 * 192)
    head = 2 * 64 * 160
    assert device.resident_bytes == body + head
    assert device.charged_bytes - device.resident_bytes == 2 * 64 * 512


def target(folder: Path, write: Writer, extra: dict[str, tuple[str, tuple[int, ...]]], **config: object) -> Checkpoint:
    """A target of one layer and one bundled MTP layer."""
    base = {
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1024,
        "num_nextn_predict_layers": 1,
    }
    (folder / "config.json").write_text(json.dumps(base | config))
    write(
        folder / "model.safetensors",
        {
            "model.embed_tokens.weight": ("BF16", (1024, 64)),
            "lm_head.weight": ("BF16", (1024, 64)),
            "model.layers.0.self_attn.q_proj.weight": ("BF16", (64, 64)),
            "model.layers.0.self_attn.k_proj.weight": ("BF16", (32, 64)),
            "model.layers.0.mlp.experts.7.up_proj.weight": ("BF16", (128, 64)),
            "model.layers.0.mlp.gate.weight": ("BF16", (8, 64)),
            "model.layers.1.eh_proj.weight": ("BF16", (64, 128)),
            "model.layers.1.embed_tokens.weight": ("BF16", (1024, 64)),
            "model.layers.1.shared_head.head.weight": ("BF16", (1024, 64)),
            **extra,
        },
    )
    return read_checkpoint(folder)


def test_target_skips_its_mtp_layers_and_the_mtp_drafter_loads_them(tmp_path: Path, write_safetensors: Writer) -> None:
    """One checkpoint in two roles: no tensor of the MTP layer is the target's, and copies are not counted twice."""
    checkpoint = target(tmp_path, write_safetensors, {})
    loaded = loaded_weights(checkpoint, None, role=Role.TARGET)
    assert loaded is not None
    assert loaded.resident_parameters == 2 * 1024 * 64 + 64 * 64 + 32 * 64 + 128 * 64 + 8 * 64
    # The engine reports EAGLE for an MTP head.
    for algorithm in (DraftAlgorithm.MTP, DraftAlgorithm.EAGLE):
        drafter = loaded_weights(checkpoint, algorithm, role=Role.DRAFTER)
        assert drafter is not None
        assert drafter.resident_parameters == 64 * 128
        assert drafter.charged_parameters == 64 * 128 + 2 * 1024 * 64


def test_tied_target_has_one_matrix_for_both(tmp_path: Path, write_safetensors: Writer) -> None:
    """With tied embeddings a stored head is not loaded a second time."""
    checkpoint = target(tmp_path, write_safetensors, {}, tie_word_embeddings=True)
    loaded = loaded_weights(checkpoint, None, role=Role.TARGET)
    assert loaded is not None
    assert loaded.resident_parameters == 1024 * 64 + 64 * 64 + 32 * 64 + 128 * 64 + 8 * 64


def test_kv_heads_are_replicated_beyond_their_number(tmp_path: Path, write_safetensors: Writer) -> None:
    """Two KV heads on four devices: half of k_proj on each, a quarter of the rest, the router whole."""
    checkpoint = target(tmp_path, write_safetensors, {})
    device = weights_per_device(checkpoint, None, 4, Role.TARGET)
    assert device is not None
    shared = 2 * (2 * 1024 * 64 + 64 * 64 + 128 * 64) // 4
    assert device.resident_bytes == shared + 2 * (32 * 64 // 2 + 8 * 64)


def test_a_tensor_of_unknown_sharding_leaves_the_device_unknown(tmp_path: Path, write_safetensors: Writer) -> None:
    """The total is known, the share of one of four devices is not, and the tensor is named."""
    checkpoint = target(tmp_path, write_safetensors, {"model.layers.0.riddle.weight": ("BF16", (64, 64))})
    assert checkpoint.unclassified == ("model.layers.0.riddle.weight",)
    assert loaded_weights(checkpoint, None, role=Role.TARGET) is not None
    assert weights_per_device(checkpoint, None, 4, Role.TARGET) is None
    assert weights_per_device(checkpoint, None, 1, Role.TARGET) is not None


def test_a_block_drafter_splits_only_attention_and_mlp(ling: Checkpoint, write_safetensors: Writer) -> None:
    """Any other module of a DFlash drafter is plain, so an unknown name is whole on every rank."""
    write_safetensors(
        ling.path / "model.safetensors",
        {"layers.0.mlp.up_proj.weight": ("BF16", (64, 64)), "riddle.weight": ("BF16", (32, 64))},
    )
    device = weights_per_device(read_checkpoint(ling.path), DraftAlgorithm.DFLASH, 4, Role.DRAFTER)
    assert device is not None
    assert device.resident_bytes == 2 * (64 * 64 // 4 + 32 * 64)


def test_biases_follow_the_way_their_matrix_is_split(tmp_path: Path, write_safetensors: Writer) -> None:
    """Split by rows a bias is whole on every rank, split by columns it is split too: w2 is one, w1 the other."""
    checkpoint = target(
        tmp_path,
        write_safetensors,
        {
            "model.layers.0.mlp.experts.0.w1.bias": ("BF16", (4096,)),
            "model.layers.0.mlp.experts.0.w2.bias": ("BF16", (512,)),
            "model.layers.0.self_attn.o_proj.bias": ("BF16", (64,)),
        },
    )
    device = weights_per_device(checkpoint, None, 4, Role.TARGET)
    assert device is not None
    matrices = 2 * (2 * 1024 * 64 + 64 * 64 + 128 * 64) // 4 + 2 * (32 * 64 // 2 + 8 * 64)
    assert device.resident_bytes == matrices + 2 * (4096 // 4 + 512 + 64)


def test_attention_data_parallel_is_not_computed(ling: Checkpoint) -> None:
    """Attention weights are copied per group then, which the totals do not tell apart."""
    assert weights_per_device(ling, DraftAlgorithm.DSPARK, 4, Role.DRAFTER, attention_data_parallel=2) is None


def test_nothing_is_said_of_a_drafter_without_algorithm_or_weights(ling: Checkpoint, tmp_path: Path) -> None:
    """N-gram loads no drafter, an unknown algorithm tells nothing, and a config alone has no weights."""
    assert loaded_weights(ling, None, role=Role.DRAFTER) is None
    assert loaded_weights(ling, DraftAlgorithm.NGRAM, role=Role.DRAFTER) is None
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_text("{}")
    assert loaded_weights(read_checkpoint(bare), DraftAlgorithm.DSPARK, role=Role.DRAFTER) is None


BUNDLED = {"dspark_block_size": 7, "dspark_markov_rank": 16}
OWN = 2 * 1024 * 64 + 64 * 64 + 32 * 64 + 128 * 64 + 8 * 64
"""What the target of `target` loads itself."""


def test_a_block_drafter_under_the_targets_mtp_names(tmp_path: Path, write_safetensors: Writer) -> None:
    """DeepSeek V4's way: the drafter loads what stands under `mtp.`, neither its copies nor anything of the target."""
    checkpoint = target(
        tmp_path,
        write_safetensors,
        {
            "mtp.0.attn.wq_b.weight": ("BF16", (64, 64)),
            "mtp.0.main_proj.weight": ("BF16", (64, 192)),
            "mtp.2.markov_head.embed.weight": ("BF16", (1024, 16)),
            "mtp.2.markov_head.head.weight": ("BF16", (1024, 16)),
            "mtp.0.embed.weight": ("BF16", (1024, 64)),
            "mtp.2.head.weight": ("BF16", (1024, 64)),
        },
        num_nextn_predict_layers=0,
        **BUNDLED,
    )
    drafter = loaded_weights(checkpoint, DraftAlgorithm.DSPARK, role=Role.DRAFTER)
    extra_layer = 64 * 128
    assert drafter is not None
    assert drafter.charged_parameters == drafter.resident_parameters
    assert drafter.resident_parameters == 64 * 64 + 64 * 192 + 2 * 1024 * 16 + extra_layer
    own = loaded_weights(checkpoint, None, role=Role.TARGET)
    assert own is not None
    assert own.resident_parameters == OWN


def test_a_block_drafter_under_a_name_of_its_own(tmp_path: Path, write_safetensors: Writer) -> None:
    """MiniMax M3's way: `dspark.` stands beside the MTP layers, and each algorithm loads its own part only."""
    checkpoint = target(
        tmp_path,
        write_safetensors,
        {
            "model.dspark.layers.0.self_attn.q_proj.weight": ("BF16", (64, 64)),
            "model.dspark.fc.weight": ("BF16", (64, 192)),
        },
    )
    expected = {DraftAlgorithm.DSPARK: 64 * 64 + 64 * 192, DraftAlgorithm.MTP: 64 * 128}
    for algorithm, count in expected.items():
        drafter = loaded_weights(checkpoint, algorithm, role=Role.DRAFTER)
        assert drafter is not None
        assert drafter.resident_parameters == count
    own = loaded_weights(checkpoint, None, role=Role.TARGET)
    assert own is not None
    assert own.resident_parameters == OWN
    device = weights_per_device(checkpoint, DraftAlgorithm.DSPARK, 4, Role.DRAFTER)
    assert device is not None
    assert device.resident_bytes == 2 * (64 * 64 // 4 + 64 * 192)


def test_a_bundled_block_drafter_is_not_taken_for_the_whole_target(tmp_path: Path, write_safetensors: Writer) -> None:
    """With dspark_* keys on a config whose tensors no name tells apart, nothing is said of the drafter."""
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 1, "hidden_size": 64, **BUNDLED}))
    write_safetensors(tmp_path / "model.safetensors", {"model.layers.0.self_attn.q_proj.weight": ("BF16", (64, 64))})
    assert loaded_weights(read_checkpoint(tmp_path), DraftAlgorithm.DSPARK, role=Role.DRAFTER) is None


def test_a_nemotron_drafter_keeps_its_embedding(tmp_path: Path, write_safetensors: Writer) -> None:
    """The one family of block drafters that loads its own embedding is known by four marks together."""
    config = {
        "architectures": ["DFlashDraftModel"],
        "has_embed_tokens": True,
        "quantization_config": {"quant_algo": "W4A16_NVFP4"},
    }
    shapes = {"layers.0.self_attn.q_proj.weight": ("BF16", (64, 64)), "embed_tokens.weight": ("BF16", (1000, 64))}
    write_safetensors(tmp_path / "model.safetensors", shapes)
    for extra, count in (({}, 64 * 64 + 1000 * 64), ({"has_lm_head": True}, 64 * 64)):
        (tmp_path / "config.json").write_text(json.dumps(config | extra))
        loaded = loaded_weights(read_checkpoint(tmp_path), DraftAlgorithm.DFLASH, role=Role.DRAFTER)
        assert loaded is not None
        assert loaded.resident_parameters == count


def test_float32_weights_are_served_in_sixteen_bit(tmp_path: Path, write_safetensors: Writer) -> None:
    """A checkpoint stored in float32 takes half its size on the device; a single float32 tensor keeps its size."""
    (tmp_path / "config.json").write_text('{"torch_dtype": "float32"}')
    write_safetensors(tmp_path / "model.safetensors", {"layers.0.mlp.up_proj.weight": ("F32", (64, 64))})
    loaded = loaded_weights(read_checkpoint(tmp_path), DraftAlgorithm.DSPARK, role=Role.DRAFTER)
    assert loaded is not None
    assert loaded.resident_bytes == 2 * 64 * 64
    write_safetensors(
        tmp_path / "model.safetensors",
        {"layers.0.mlp.up_proj.weight": ("BF16", (64, 64)), "layers.0.mlp.gate.weight": ("F32", (8,))},
    )
    loaded = loaded_weights(read_checkpoint(tmp_path), DraftAlgorithm.DSPARK, role=Role.DRAFTER)
    assert loaded is not None
    assert loaded.resident_bytes == 2 * 64 * 64 + 4 * 8
