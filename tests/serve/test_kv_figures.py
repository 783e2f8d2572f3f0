"""The two pools, the drafter's need and its cost, for Ling-3.0-flash with its DSpark drafter on four GPUs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import FIXTURES, Answer, ScriptedEngine
from tests.serve.polled_desk import PolledDesk

from specbudget.budget.model import Budget
from specbudget.catalog.sets import Artifact, Source
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.pair.kv import ModelFacts, Pair
from specbudget.serve.kv_figures import KvFigures, PoolFigures, kv_figures
from specbudget.simulate.checkpoint import write_drafter
from specbudget.sources.checkpoint import Role, read_checkpoint, weights_per_device

FACTS = EngineFacts(
    version="0.5.23",
    algorithm="DSPARK",
    tensor_parallel=4,
    page_tokens=64,
    num_steps=1,
    num_draft_tokens=9,
    max_running_requests=48,
    drafter_path="/models/drafter",
)
RANK = RankReading(capacity_tokens=402176, used_tokens=100000, evictable_tokens=50000, running=12, page_tokens=64)
CHARGED_WEIGHTS = (445_644_800 // 4 + 113_281_025) * 2
"""Ling's drafter on each of four devices: a quarter of the sharded parameters, all replicated ones, in bf16."""


@pytest.fixture
def models(tmp_path: Path) -> dict[str, ModelFacts]:
    """Facts of the pair's published configs."""
    found = {}
    for role, name in (
        ("target", "targets/inclusionAI_Ling-3.0-flash.TESTFIXTURE.json"),
        ("drafter", "drafters/inclusionAI_Ling-3.0-flash-dspark.RECONSTRUCTED.json"),
    ):
        (tmp_path / role).mkdir()
        shutil.copy(FIXTURES / "configs" / name, tmp_path / role / "config.json")
        checkpoint = read_checkpoint(tmp_path / role)
        found[role] = ModelFacts(geometry=checkpoint.geometry, dtype="bfloat16")
    return found


def pair(models: dict[str, ModelFacts], *, facts: EngineFacts = FACTS, kv: dict[str, Any] | None = None) -> Pair:
    """The pair as an engine with these facts runs it, planned for 48 requests of 8192 tokens unless said otherwise."""
    budget = Budget.model_validate(
        {
            "service": "chat",
            "parallelism": {"tensor": 4},
            "budget": {"kv": {"concurrency": 48, "tokens_per_request": 8192} if kv is None else kv},
        }
    )
    return Pair(**models, algorithm=DraftAlgorithm.DSPARK, facts=facts, budget=budget)


def test_the_drafters_token_costs_more_than_the_targets(models: dict[str, ModelFacts]) -> None:
    """8,064 B of latent KV beside 20,480 B of the drafter's: 71.7 % of the target's token budget."""
    figures = kv_figures(pair(models), {"0": RANK}, 9)
    assert (figures.target_token_bytes, figures.drafter_token_bytes) == (8064, 20480)
    cost = figures.cost_tokens["0"]
    assert cost / (cost + 402176) == pytest.approx(0.717, abs=0.001)


def test_the_cost_counts_whole_pages_and_the_weights_share(models: dict[str, ModelFacts]) -> None:
    """Without the drafter 1,423,552 tokens would fit, and 1,452,864 with the room of its weights.

    Of 449 MB of weights a target with recurrent layers gives 1 / 1.9 to attention KV.
    """
    alone = kv_figures(pair(models), {"0": RANK}, 9).cost_tokens["0"]
    assert alone == 1_423_552 - 402_176
    models["drafter"] = replace(models["drafter"], charged_weight_bytes=CHARGED_WEIGHTS)
    assert kv_figures(pair(models), {"0": RANK}, 9).cost_tokens["0"] == 1_452_864 - 402_176


def test_need_and_block_floor(models: dict[str, ModelFacts]) -> None:
    """48 requests: the block alone 8.4 MiB, 8192 tokens each 7.51 GiB; what runs now: its slots and a block each."""
    figures = kv_figures(pair(models), {"0": RANK}, 9)
    assert figures.drafter_needs["block_floor"] == 48 * 9 * 20480
    assert figures.drafter_needs["block_floor"] / (1 << 20) == pytest.approx(8.4, abs=0.05)
    assert figures.drafter_needs["planned"] == 48 * (8192 + 9) * 20480
    assert figures.drafter_needs["planned"] / (1 << 30) == pytest.approx(7.51, abs=0.005)
    assert figures.drafter_needs["live_upper"] == (100_000 + 12 * 9) * 20480
    assert figures.target_needs == {"planned": 48 * (8192 + 9) * 8064, "live_upper": 100_000 * 8064}


def test_both_pools_have_the_same_slots(models: dict[str, ModelFacts]) -> None:
    """Capacity with its padding page, used and resident, each at the model's own bytes per token."""
    figures = kv_figures(pair(models), {"0": RANK}, 9)
    for pools, size in ((figures.target_pools, 8064), (figures.drafter_pools, 20480)):
        assert pools["0"] == PoolFigures(
            capacity_tokens=402176,
            used_tokens=100000,
            capacity_bytes=(402176 + 64) * size,
            used_bytes=100_000 * size,
            resident_bytes=150_000 * size,
        )


def test_the_engines_own_pool_size_counts_for_the_target_only(models: dict[str, ModelFacts]) -> None:
    """What the engine allocated is its word; of the drafter's pool it says nothing."""
    figures = kv_figures(pair(models), {"0": replace(RANK, target_kv_bytes=5.0e9)}, 9)
    assert figures.target_pools["0"].capacity_bytes == 5.0e9
    assert figures.drafter_pools["0"].capacity_bytes == (402176 + 64) * 20480


def test_needs_are_of_the_fullest_rank(models: dict[str, ModelFacts]) -> None:
    """Byte figures are per device: ranks are compared, not added."""
    figures = kv_figures(pair(models), {"0": RANK, "1": replace(RANK, used_tokens=300_000, running=1)}, 9)
    assert figures.drafter_needs["live_upper"] == (300_000 + 9) * 20480
    assert figures.target_needs["live_upper"] == 300_000 * 8064
    assert set(figures.drafter_pools) == set(figures.cost_tokens) == {"0", "1"}


def test_attention_data_parallelism_keeps_more_heads_on_each_device(models: dict[str, ModelFacts]) -> None:
    """With two attention ranks of two devices each, a device holds half of the drafter's heads, not a quarter."""
    facts = replace(FACTS, data_parallel=2, attention_dp=True)
    assert kv_figures(pair(models, facts=facts), {"0": RANK}, 9).drafter_token_bytes == 40960


def test_a_half_size_drafter_cache(models: dict[str, ModelFacts]) -> None:
    """The drafter's own KV dtype halves its bytes and leaves the target's alone."""
    facts = replace(FACTS, draft_kv_dtype="fp8_e4m3")
    figures = kv_figures(pair(models, facts=facts), {"0": RANK}, 9)
    assert (figures.target_token_bytes, figures.drafter_token_bytes) == (8064, 10240)


def test_without_a_drafters_config_its_figures_are_absent(models: dict[str, ModelFacts]) -> None:
    """Unknown is left out: no pool, no need, no cost, and the target's figures stand."""
    models["drafter"] = ModelFacts()
    figures = kv_figures(pair(models), {"0": RANK}, 9)
    assert figures.drafter_token_bytes is None
    assert (figures.drafter_pools, figures.drafter_needs, figures.cost_tokens) == ({}, {}, {})
    assert figures.target_pools["0"].capacity_tokens == 402176


def test_without_the_targets_config_its_token_is_the_engines_pool_by_its_slots(
    models: dict[str, ModelFacts],
) -> None:
    """Bytes of the pool ÷ (tokens + the padding page); the cost is then not known."""
    models["target"] = ModelFacts()
    told = replace(RANK, target_kv_bytes=(402176 + 64) * 8064.0)
    figures = kv_figures(pair(models), {"0": told}, 9)
    assert figures.target_token_bytes == 8064
    assert figures.cost_tokens == {}
    assert kv_figures(pair(models), {"0": RANK}, 9).target_token_bytes is None


def test_pipeline_stages_share_the_targets_layers(models: dict[str, ModelFacts]) -> None:
    """A device of two stages holds some of the layers: its token is its own pool by its slots, or not known."""
    facts = replace(FACTS, pipeline_parallel=2)
    told = replace(RANK, target_kv_bytes=(402176 + 64) * 4608.0)
    assert kv_figures(pair(models, facts=facts), {"0": told}, 9).target_token_bytes == 4608
    figures = kv_figures(pair(models, facts=facts), {"0": RANK}, 9)
    assert figures.target_token_bytes is None
    assert (figures.target_needs, figures.cost_tokens) == ({}, {})


def test_without_an_engine_the_plan_still_stands(models: dict[str, ModelFacts]) -> None:
    """Before the first reading: bytes per token and planned need, no pools; without a plan not even that."""
    figures = kv_figures(pair(models), {}, 9)
    assert figures.drafter_needs == {"block_floor": 48 * 9 * 20480, "planned": 48 * 8201 * 20480}
    assert figures.target_pools == figures.drafter_pools == figures.cost_tokens == {}
    bare = kv_figures(pair(models, kv={}), {}, 9)
    assert set(bare.drafter_needs) == {"block_floor"}
    assert bare.target_needs == {}


@pytest.mark.parametrize(
    ("budgeted", "told", "concurrency"),
    [(7, 20, 7), (None, 20, 20), (None, None, 48)],
    ids=["the budget's plan", "the engine's limit", "SGLang's default with speculation"],
)
def test_concurrency_is_the_plan_then_the_engines_limit(
    models: dict[str, ModelFacts], budgeted: int | None, told: int | None, concurrency: int
) -> None:
    """What is planned wins over what the engine would allow."""
    kv = {} if budgeted is None else {"concurrency": budgeted}
    figures = kv_figures(pair(models, facts=replace(FACTS, max_running_requests=told), kv=kv), {}, 9)
    assert figures.drafter_needs["block_floor"] == concurrency * 9 * 20480


def test_without_any_facts_nothing_is_made_up(models: dict[str, ModelFacts]) -> None:
    """No config, no engine: no figure at all."""
    unknown = {"target": ModelFacts(), "drafter": ModelFacts()}
    assert kv_figures(pair(unknown, facts=EngineFacts()), {}, None) == KvFigures()
    assert kv_figures(pair(models, facts=EngineFacts(tensor_parallel=4)), {}, None).drafter_token_bytes is None


@pytest.mark.parametrize(("attention", "known"), [("true", False), ("false", True)])
async def test_weights_that_attention_data_parallelism_copies_are_not_made_up(
    tmp_path: Path, attention: str, known: bool
) -> None:
    """Each of its groups holds all attention weights, which is not computed; plain data parallelism copies engines."""
    write_drafter(tmp_path / "drafter")
    told = f'"tp_size": 4, "dp_size": 2, "speculative_algorithm": "DSPARK", "enable_dp_attention": {attention}'
    async with ScriptedEngine({"/server_info": Answer(f"{{{told}}}".encode())}) as engine:
        polled = PolledDesk(engine, tmp_path, drafter={"path": "drafter"})
        polled.desk.checkpoints[Artifact.DRAFTER] = read_checkpoint(tmp_path / "drafter")
        await polled.poll(Source.SERVER_INFO)
        page = await polled.see("sglang:num_running_reqs 1\n")
        await polled.http.close()
    assert bool(page.of("weight_memory_bytes", artifact="drafter")) is known
    assert (polled.desk.drafter_weights(polled.now) is not None) is known


@pytest.mark.parametrize(
    ("told", "share"),
    [
        ('"dtype": "auto"', 1.0),
        ('"dtype": "float32"', 2.0),
        ('"quantization": "fp8"', None),
        ('"cpu_offload_gb": 4', None),
    ],
    ids=["as stored", "in another dtype", "quantised while they load", "partly in host memory"],
)
async def test_weights_are_as_the_engine_serves_them(tmp_path: Path, told: str, share: float | None) -> None:
    """`--dtype` makes them larger or smaller; what makes them others by an unknown part leaves them unknown."""
    write_drafter(tmp_path / "drafter")
    checkpoint = read_checkpoint(tmp_path / "drafter")
    stored = weights_per_device(checkpoint, DraftAlgorithm.DSPARK, 4, Role.DRAFTER)
    assert stored is not None
    info = f'{{"tp_size": 4, "speculative_algorithm": "DSPARK", {told}}}'
    async with ScriptedEngine({"/server_info": Answer(info.encode())}) as engine:
        polled = PolledDesk(engine, tmp_path, drafter={"path": "drafter"})
        polled.desk.checkpoints[Artifact.DRAFTER] = checkpoint
        await polled.poll(Source.SERVER_INFO)
        page = await polled.see("sglang:num_running_reqs 1\n")
        await polled.http.close()
    shown = page.value("weight_memory_bytes", artifact="drafter", rank="0")
    assert shown == (None if share is None else stored.resident_bytes * share)
