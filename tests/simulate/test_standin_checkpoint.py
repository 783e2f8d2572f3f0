"""The checkpoints and the budget file that the stand-in writes."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from specbudget.budget.reading import load_budget
from specbudget.domain.codesign import judge
from specbudget.domain.finding import CheckResult
from specbudget.domain.observation import EngineFacts
from specbudget.pair.facts import engine_setup, pair_facts
from specbudget.pair.side import read_side
from specbudget.simulate import sizing
from specbudget.simulate.budgetfile import budget_text
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.simulate.deployment import Deployment
from specbudget.simulate.drafters import DRAFTERS
from specbudget.simulate.scenarios import SCENARIOS, Algorithm, Profile, Scenario
from specbudget.simulate.tensors import is_linear_attention
from specbudget.sources.checkpoint import read_checkpoint


def read_header(path: Path) -> dict:
    """The header of a safetensors file, checked against the file's size."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    header.pop("__metadata__")
    ends = [entry["data_offsets"] for entry in header.values()]
    assert [begin for begin, _ in ends] == [0, *(end for _, end in ends)][:-1]
    assert 8 + size + max(end for _, end in ends) == path.stat().st_size
    for entry in header.values():
        begin, end = entry["data_offsets"]
        assert end - begin == math.prod(entry["shape"]) * {"BF16": 2, "F32": 4}[entry["dtype"]]
    return header


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Both checkpoints, on disk."""
    folder = tmp_path_factory.mktemp("pair")
    write_target(folder / "target")
    write_drafter(folder / "drafter")
    return folder


def test_the_drafter_has_its_published_number_of_parameters(written):
    """1,363,707,905 parameters on disk; without embedding and head 558,925,825."""
    header = read_header(written / "drafter" / "model.safetensors")
    counts = {name: math.prod(entry["shape"]) for name, entry in header.items()}
    assert sum(counts.values()) == 1_363_707_905
    own = {name: count for name, count in counts.items() if not name.startswith(("embed_tokens.", "lm_head."))}
    assert sum(own.values()) == 558_925_825


def test_the_targets_index_names_every_tensor_of_every_shard(written):
    """Index and shard headers hold the same tensors and the same total size."""
    index = json.loads((written / "target" / "model.safetensors.index.json").read_text())
    found: dict[str, str] = {}
    total = 0
    for shard in sorted((written / "target").glob("*.safetensors")):
        for name, entry in read_header(shard).items():
            found[name] = shard.name
            total += entry["data_offsets"][1] - entry["data_offsets"][0]
    assert found == index["weight_map"]
    assert total == index["metadata"]["total_size"]


def test_the_target_has_the_layers_of_its_configuration(written):
    """42 layers, 35 with linear and 7 with latent attention, 512 experts each but for two, and an MTP layer."""
    names = json.loads((written / "target" / "model.safetensors.index.json").read_text())["weight_map"]
    assert sum(is_linear_attention(layer) for layer in range(42)) == 35
    assert sum(".attention.A_log" in name for name in names) == 35
    assert sum(name.endswith("kv_a_proj_with_mqa.weight") for name in names) == 8
    assert sum(name.endswith("experts.511.down_proj.weight") for name in names) == 41
    assert "model.layers.42.eh_proj.weight" in names
    assert not any(name.startswith("model.layers.43") for name in names)


def test_the_weights_take_no_room_on_disk(written):
    """A quarter of a terabyte by size, a few megabytes by blocks."""
    files = list(written.rglob("*.safetensors"))
    assert sum(file.stat().st_size for file in files) > 250e9
    assert sum(os.stat(file).st_blocks * 512 for file in files) < 32e6


def test_writing_again_changes_the_drafters_configuration_only_as_told(written, tmp_path):
    """A swapped drafter differs in the keys that were named."""
    write_drafter(tmp_path, changes={"target_layer_ids": [1, 2, 3, 4, 50]})
    old = json.loads((written / "drafter" / "config.json").read_text())
    new = json.loads((tmp_path / "config.json").read_text())
    assert {key for key in old if old[key] != new[key]} == {"target_layer_ids"}


def test_the_drafter_takes_seven_tenths_of_the_token_budget():
    """With four GPUs a token costs 8,064 bytes in the target's pool and 20,480 in the drafter's."""
    assert sizing.target_bytes_per_token() == 8_064
    assert DRAFTERS[Algorithm.DSPARK].token_bytes(4) == 20_480
    sizes = Deployment(scenario=SCENARIOS["steady"], folder=Path("/srv"), host="", port=1).sizes()
    share = sizes.drafter_kv / (sizes.drafter_kv + sizes.target_kv)
    assert share == pytest.approx(0.717, abs=0.001)
    assert sizes.tokens % sizing.PAGE_TOKENS == 0


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_budget_file_is_valid_and_its_limits_hold(tmp_path, name):
    """The product reads the file, and what any start takes stays below nine tenths of each limit."""
    deployment = Deployment(scenario=SCENARIOS[name], folder=tmp_path, host="0.0.0.0", port=30000)
    deployment.budget.write_text(budget_text(deployment, speed=1.0), encoding="utf-8")
    budget = load_budget(deployment.budget).budget
    kv, artifacts = budget.budget.kv, budget.budget.artifacts
    for sizes in (deployment.sizes(0), deployment.sizes(1)):
        assert sizes.target_kv < 0.9 * kv.target
        assert sizes.drafter_kv < 0.9 * kv.drafter
        assert kv.min_target_tokens < 0.9 * sizes.tokens
        need = kv.concurrency * (kv.tokens_per_request + 9) * sizes.drafter_token_bytes
        assert 0.5 * sizes.drafter_kv < need <= sizes.drafter_kv
    on_disk = sum(tensor.nbytes for tensor in deployment.drafting.tensors())
    assert 0.8 * artifacts.drafter < on_disk < 0.95 * artifacts.drafter
    assert budget.drafter.algorithm == deployment.drafting.budgeted
    assert budget.budget.acceptance.target_length == deployment.scenario.target_length
    assert budget.engine.url == "http://127.0.0.1:30000"
    assert budget.parallelism.tensor == deployment.scenario.tensor_parallel


def test_profiles_that_can_be_told_apart_are_budgeted(tmp_path):
    """A profile with an adapter gets a target of its own, below what it reaches."""
    profiles = {"easy": Profile(share=0.5, length=5.0), "hard": Profile(share=0.5, length=2.0, adapter="ling-hard")}
    scenario = Scenario(summary="", profiles=profiles)
    deployment = Deployment(scenario=scenario, folder=tmp_path, host="127.0.0.1", port=30000)
    deployment.budget.write_text(budget_text(deployment, speed=1.0), encoding="utf-8")
    budgeted = load_budget(deployment.budget).budget.budget.acceptance.profiles
    assert set(budgeted) == {"hard"}
    assert budgeted["hard"].target_length < 2.0


def test_only_the_profile_with_an_adapter_is_budgeted_in_mix_shift(tmp_path):
    """The hard profile, which reaches 3.2, has a target that it meets; the general target of 4.0 it would miss."""
    deployment = Deployment(scenario=SCENARIOS["mix-shift"], folder=tmp_path, host="127.0.0.1", port=30000)
    deployment.budget.write_text(budget_text(deployment, speed=1.0), encoding="utf-8")
    acceptance = load_budget(deployment.budget).budget.budget.acceptance
    assert {name: profile.match.adapter for name, profile in acceptance.profiles.items()} == {"hard": "ling-hard"}
    assert acceptance.profiles["hard"].target_length == pytest.approx(1.9)
    assert acceptance.target_length == 4.0


def test_the_taps_of_pair_unfit_lie_beyond_the_target(tmp_path):
    """One target_layer_id is past the target's 42 layers; the fc weight still fits their number."""
    drafter = SCENARIOS["pair-unfit"].drafter_config
    write_drafter(tmp_path, changes=dict(drafter))
    config = json.loads((tmp_path / "config.json").read_text())
    assert max(config["target_layer_ids"]) >= 42
    assert len(config["target_layer_ids"]) == 5
    assert all(0 <= tap < 42 for tap in config["target_layer_ids"][:-1])


def test_an_mtp_drafter_is_the_targets_own_layer(written, tmp_path):
    """Its checkpoint holds what the target's stores as layer 42, under the target's configuration, and no copy."""
    write_drafter(tmp_path, drafter=DRAFTERS[Algorithm.ADAPTIVE_MTP])
    header = read_header(tmp_path / "model.safetensors")
    index = json.loads((written / "target" / "model.safetensors.index.json").read_text())["weight_map"]
    assert set(header) == {name for name in index if name.startswith("model.layers.42.")}
    assert (tmp_path / "config.json").read_text() == (written / "target" / "config.json").read_text()


def test_an_mtp_drafter_costs_one_layer_of_latents_and_two_copies_while_pools_are_sized():
    """1,152 bytes per token; embedding and head are held beside the weights until the pools exist."""
    deployment = Deployment(scenario=SCENARIOS["spec-adaptive"], folder=Path("/srv"), host="", port=1)
    sizes = deployment.sizes()
    assert sizes.drafter_token_bytes == 1_152 == sizes.target_token_bytes // 7
    assert sizes.drafter_copies == 2 * 157_184 * 2_560 * 2 // 4
    assert (
        sizes.tokens > 2 * Deployment(scenario=SCENARIOS["steady"], folder=Path("/srv"), host="", port=1).sizes().tokens
    )


@pytest.fixture(scope="module")
def target_side(tmp_path_factory):
    """The target as every scenario writes it, read once."""
    folder = tmp_path_factory.mktemp("target")
    write_target(folder)
    return read_side(read_checkpoint(folder))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_only_the_unfit_pair_breaks_a_rule(tmp_path, target_side, name):
    """Checkpoints and arguments of every other scenario are ones that the engine would start with."""
    scenario = SCENARIOS[name]
    deployment = Deployment(scenario=scenario, folder=tmp_path, host="127.0.0.1", port=30000)
    write_drafter(deployment.drafter, drafter=deployment.drafting, changes=dict(scenario.drafter_config))
    deployment.budget.write_text(budget_text(deployment, speed=1.0), encoding="utf-8")
    budget = load_budget(deployment.budget).budget
    facts = pair_facts(
        target_side, read_side(read_checkpoint(deployment.drafter)), engine=engine_setup(budget, EngineFacts())
    )
    failing = {finding.check for finding in judge(facts) if finding.result is CheckResult.FAIL}
    assert failing == ({"taps_range"} if name == "pair-unfit" else set())
    assert scenario.approved is not bool(failing)
