"""Geometry and facts of published configs."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.drafter_parameters import drafter_parameters
from specbudget.domain.kv_geometry import AttentionLayer, LatentLayer, RecurrentLayer, bytes_per_token
from specbudget.sources.checkpoint import Checkpoint, ProblemKind, block_drafter_shape, read_checkpoint

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
TABLE = list(csv.DictReader((CONFIGS / "drafters_table.csv").read_text().splitlines()))
ALL = sorted(path.relative_to(CONFIGS).as_posix() for path in CONFIGS.glob("*/*.json"))
WITHOUT_GEOMETRY = {"targets/moonshotai_Kimi-K3.PARTIAL.json", "targets/zai-org_GLM-5.2.PARTIAL.json"}


def read_config(name: str, folder: Path) -> Checkpoint:
    """The checkpoint of a folder that holds this config alone."""
    shutil.copy(CONFIGS / name, folder / "config.json")
    return read_checkpoint(folder)


def whole(text: str) -> int | None:
    """A cell of the table; an empty one is unknown."""
    return int(text) if text else None


def test_the_table_has_every_drafter_it_is_known_for() -> None:
    """A table that shrinks would let the test below pass on nothing."""
    assert len(TABLE) == 50
    assert len([name for name in ALL if name.startswith("specforge/")]) == 45


@pytest.mark.parametrize("row", TABLE, ids=[row["file"] for row in TABLE])
def test_geometry_matches_the_table(row: dict[str, str], tmp_path: Path) -> None:
    """Layers, heads, dimensions and the drafter's own keys are those of the published table."""
    checkpoint = read_config(row["file"], tmp_path)
    assert checkpoint.geometry is not None
    assert checkpoint.facts is not None
    assert checkpoint.problems == ()
    layers = checkpoint.geometry.layers
    assert len(layers) == int(row["layers"])
    for layer in layers:
        assert isinstance(layer, AttentionLayer)
        assert layer.kv_heads == int(row["kv_heads"])
        assert layer.head_dim == layer.v_head_dim == int(row["head_dim"])
    assert bytes_per_token(checkpoint.geometry, tensor_parallel=1, element_bytes=2) == int(
        row["kv_bytes_per_token_bf16_unsharded"]
    )
    facts = checkpoint.facts
    assert facts.hidden_size == int(row["hidden"])
    assert facts.num_attention_heads == int(row["heads"])
    assert facts.intermediate_size == int(row["inter"])
    assert facts.vocab_size == int(row["vocab"])
    assert facts.draft_vocab_size == whole(row["draft_vocab"])
    assert facts.block_size == whole(row["block"])
    assert facts.num_target_layers == whole(row["target_layers"])
    assert (facts.target_layer_ids or ()) == tuple(int(tap) for tap in row["taps"].split())
    assert checkpoint.architecture == row["arch"]


@pytest.mark.parametrize("name", ALL)
def test_every_published_config_reads(name: str, tmp_path: Path) -> None:
    """Geometry is there unless the file is a handful of scalars, and weights stay unknown, not zero."""
    checkpoint = read_config(name, tmp_path)
    assert checkpoint.facts is not None
    assert (checkpoint.geometry is None) == (name in WITHOUT_GEOMETRY)
    assert {problem.kind for problem in checkpoint.problems} <= {ProblemKind.INCOMPLETE}
    assert bool(checkpoint.problems) == (name in WITHOUT_GEOMETRY)
    assert checkpoint.parameters is None
    assert checkpoint.disk_bytes is None
    assert checkpoint.tensor_groups is None
    assert checkpoint.fingerprint is not None


def test_hybrid_target_holds_kv_in_every_sixth_layer_only(tmp_path: Path) -> None:
    """Ling-3.0-flash: 7 latent layers of 576 among 35 recurrent ones, 8,064 B per token at any TP."""
    checkpoint = read_config("targets/inclusionAI_Ling-3.0-flash.TESTFIXTURE.json", tmp_path)
    assert checkpoint.geometry is not None
    layers = checkpoint.geometry.layers
    assert [index for index, layer in enumerate(layers) if isinstance(layer, LatentLayer)] == [
        *(5, 11, 17, 23, 29, 35, 41)
    ]
    assert sum(isinstance(layer, RecurrentLayer) for layer in layers) == 35
    for ranks in (1, 4):
        assert bytes_per_token(checkpoint.geometry, tensor_parallel=ranks, element_bytes=2) == 8064


def test_bundled_mtp_head_has_the_shape_of_an_attending_layer(tmp_path: Path) -> None:
    """Ling's own MTP head costs 1,152 B per token: one latent layer, although most of its layers keep no KV."""
    checkpoint = read_config("targets/inclusionAI_Ling-3.0-flash.TESTFIXTURE.json", tmp_path)
    assert checkpoint.mtp_geometry is not None
    assert bytes_per_token(checkpoint.mtp_geometry, tensor_parallel=4, element_bytes=2) == 1152


def test_windows_come_from_the_layer_list(tmp_path: Path) -> None:
    """Four of the five layers of this drafter slide over 2,048 tokens, the last one attends to everything."""
    checkpoint = read_config("specforge/qwen3.6-27b-dflash.json", tmp_path)
    assert checkpoint.geometry is not None
    assert [layer.window for layer in checkpoint.geometry.kv_layers] == [2048, 2048, 2048, 2048, None]


def test_a_window_that_is_switched_off_does_not_count(tmp_path: Path) -> None:
    """`use_sliding_window` false beside a `sliding_window` means full attention."""
    checkpoint = read_config("specforge/gemma3-1b-eagle3.json", tmp_path)
    assert checkpoint.geometry is not None
    assert [layer.window for layer in checkpoint.geometry.kv_layers] == [None]


def test_speculators_format_is_read_from_its_nested_layer_config(tmp_path: Path) -> None:
    """Three sliding layers, the algorithm's word and the recorded target come from a speculators config."""
    checkpoint = read_config("drafters/RedHatAI_GLM-5.3-speculator.dspark.json", tmp_path)
    assert checkpoint.geometry is not None
    assert checkpoint.facts is not None
    assert checkpoint.geometry.layers == (AttentionLayer(kv_heads=64, head_dim=64, v_head_dim=64, window=2048),) * 3
    assert checkpoint.facts.algorithm == "dspark"
    assert checkpoint.facts.target_name == "zai-org/GLM-5.3"
    assert checkpoint.facts.where("target_layer_ids") == "aux_hidden_state_layer_ids"
    assert checkpoint.facts.where("hidden_size") == "transformer_layer_config.hidden_size"


def test_facts_say_where_they_stood(tmp_path: Path) -> None:
    """The drafter's own keys stand at the top or in dflash_config, and the reader says which."""
    facts = read_config("specforge/qwen3-4b-dspark.json", tmp_path).facts
    assert facts is not None
    assert facts.where("block_size") == "block_size"
    assert facts.where("markov_rank") == "dflash_config.markov_rank"
    assert facts.where("mask_token_id") == "dflash_config.mask_token_id"
    assert facts.where("quantization_method") is None


PARAMETERS = [
    ("drafters/inclusionAI_Ling-3.0-flash-dspark.RECONSTRUCTED.json", 1_363_707_905, 2),
    ("drafters/inclusionAI_Ling-3.0-flash-dspark.RECONSTRUCTED.json", 961_316_865, 1),
    ("drafters/RadixArk_Kimi-K3-DSpark.CONTRACT.json", 2_249_289_601, 0),
    ("drafters/RedHatAI_GLM-5.2-speculator.dspark.TESTFIXTURE.json", 3_807_067_009, 2),
    ("drafters/RedHatAI_GLM-5.3-speculator.dspark.json", 3_152_730_753, 2),
]


@pytest.mark.parametrize(("name", "count", "matrices"), PARAMETERS)
def test_a_config_alone_gives_the_published_number_of_parameters(
    name: str, count: int, matrices: int, tmp_path: Path
) -> None:
    """To the unit, with as many matrices of the vocabulary as the published checkpoint holds."""
    shape = block_drafter_shape(read_config(name, tmp_path), DraftAlgorithm.DSPARK)
    assert shape is not None
    assert drafter_parameters(shape, vocabulary_matrices=matrices) == count


def test_a_config_of_another_kind_gives_no_number(tmp_path: Path) -> None:
    """EAGLE-3 is no block drafter, Domino has modules of its own, and a target is no drafter."""
    for name, algorithm in (
        ("specforge/qwen3-8b-eagle3.json", DraftAlgorithm.EAGLE3),
        ("specforge/qwen3-8b-domino.json", DraftAlgorithm.DFLASH),
        ("targets/Qwen_Qwen3-4B.json", DraftAlgorithm.DSPARK),
    ):
        assert block_drafter_shape(read_config(name, tmp_path), algorithm) is None
