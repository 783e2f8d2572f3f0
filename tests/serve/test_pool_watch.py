"""Why a KV pool is smaller than its memory would allow: found from readings, told once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_engine import Answer, ScriptedEngine
from tests.serve.polled_desk import PolledDesk

from specbudget.budget.model import Budget
from specbudget.catalog.sets import Artifact, Source
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.kv_geometry import AttentionLayer, ModelGeometry, RecurrentLayer
from specbudget.domain.observation import EngineFacts, RankReading
from specbudget.domain.start_memory import RankMemory
from specbudget.pair.kv import ModelFacts, Pair
from specbudget.serve.kv_figures import kv_figures
from specbudget.serve.pool_watch import PoolWatch, pool_gaps
from specbudget.simulate.checkpoint import write_target
from specbudget.sources.checkpoint import DeviceWeights, read_checkpoint

GIB = 2**30
FIRST_LOAD, SHARE = 40 * GIB, 0.75
COPIES = 2 * 160_000 * 4096 * 2
"""Embedding and head of a vocabulary of 160,000 at width 4096 in bfloat16."""

BODY = 100_000_000
TARGET_TOKEN, TOKEN = 16_384, 17_408
"""An fp8 token of 16 layers of 4 heads of 128, and with what a prediction layer is charged beside it."""

ROOM = TOKEN * 600_000
"""What there would have been for KV without the copies."""

LAYER = AttentionLayer(kv_heads=4, head_dim=128, v_head_dim=128)
LOADED = RankMemory(
    free_before_load=float(FIRST_LOAD), free_loaded=FIRST_LOAD * (1 - SHARE) + ROOM - COPIES, free=3.0 * GIB
)
CHARGED = DeviceWeights(charged_bytes=BODY + COPIES, resident_bytes=BODY)


def gaps(
    pool_tokens: int, log: RankMemory = LOADED, weights: DeviceWeights | None = CHARGED, *,
    target: ModelGeometry | None = None, engine: dict[str, Any] | None = None, **reading: float,
) -> tuple[str, ...]:  # fmt: skip
    """What is said of a pool of this size beside a prediction head with its own embedding and head."""
    facts = EngineFacts(
        version="0.5.23", algorithm="EAGLE", speculates=True, tensor_parallel=1, num_steps=3, num_draft_tokens=4,
        topk=1, kv_dtype="fp8_e4m3", draft_kv_dtype="fp8_e4m3", mem_fraction_static=SHARE, drafter_path="/models/head",
    )  # fmt: skip
    pair = Pair(
        target=ModelFacts(geometry=target or ModelGeometry(layers=(LAYER,) * 16), dtype="bfloat16"),
        drafter=ModelFacts(geometry=ModelGeometry(layers=(LAYER,)), dtype="bfloat16"),
        algorithm=DraftAlgorithm.MTP,
        facts=facts,
        budget=Budget.model_validate({"service": "chat", "engine": engine or {}}),
    )
    ranks = {"0": RankReading(capacity_tokens=float(pool_tokens), **reading)}
    figures = kv_figures(pair, ranks, 4)
    assert figures.drafter_token_bytes == TOKEN - TARGET_TOKEN
    return pool_gaps(pair, ranks, {"0": log}, figures, weights)


def test_copies_of_embedding_and_head_are_named_as_the_cause() -> None:
    """The log's own figures leave room for 600,000 tokens; 2,621,440,000 bytes of copies cost 150,588 of them."""
    (sentence,) = gaps(449_411)
    assert "2621440000 bytes" in sentence
    assert "449411 of 600000 (25.1% missing)" in sentence


def test_without_a_log_the_weights_tell_what_was_left() -> None:
    """Free memory of before from the budget, the target's weights from the engine, the drafter's from its files."""
    weights = FIRST_LOAD * SHARE - ROOM - BODY
    (sentence,) = gaps(
        449_411, RankMemory(), engine={"free_before_load": "40GiB"}, target_weight_bytes=weights, free_bytes=3.0 * GIB
    )
    assert "449411 of 600000" in sentence


@pytest.mark.parametrize(
    ("pool", "given"),
    [
        (600_000, {}),
        (300_000, {}),
        (449_411, {"weights": None}),
        (449_411, {"weights": replace(CHARGED, resident_bytes=CHARGED.charged_bytes)}),
        (449_411, {"log": RankMemory()}),
        (449_411, {"target": ModelGeometry(layers=(*(LAYER,) * 16, RecurrentLayer()))}),
    ],
    ids=[
        "the pool is whole",
        "smaller than the copies explain",
        "weights not known",
        "nothing was freed",
        "nobody says what was free",
        "recurrent state shares the memory",
    ],
)
def test_what_is_not_proven_is_not_said(pool: int, given: dict[str, Any]) -> None:
    """The cause is named only where its arithmetic meets the pool."""
    assert gaps(pool, **given) == ()


def test_memory_that_the_pool_never_got_is_told_with_its_tokens() -> None:
    """21 GiB are free, 10 GiB were meant to be: more than as many tokens again would fit."""
    (sentence,) = gaps(610_000, replace(LOADED, free_loaded=None), free_bytes=21.0 * GIB)
    fit = 21 * GIB // TOKEN
    assert f"{610_000} tokens and free memory would hold {fit} more" in sentence
    assert "keeping 10 GiB" in sentence
    # what the engine keeps free by its own arguments is no waste
    assert gaps(610_000, replace(LOADED, free_loaded=None), free_bytes=10.0 * GIB) == ()


def test_a_reason_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Again only with other numbers; while nothing is known it is not forgotten."""
    watch = PoolWatch()
    for sentences in (("a",), ("a",), (), ("a",), ("b",)):
        watch.tell(sentences)
    assert [record.getMessage() for record in caplog.records] == ["kv pool: a", "kv pool: b"]


async def test_the_sidecar_tells_it_from_what_the_engine_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A target alone on a device of 96 GiB: 610,000 tokens of 32,768 bytes, and 21 GiB free."""
    pool = (610_000 + 1) * 32_768 / GIB
    body = (
        f"sglang:max_total_num_tokens 610000\nsglang:kv_cache_memory_usage_gb {pool!r}\n"
        "sglang:startup_available_gpu_memory_gb 21\n"
    )
    async with ScriptedEngine() as engine:
        polled = PolledDesk(engine, tmp_path, engine={"gpu_memory": "96GiB"})
        for _ in range(3):
            await polled.see(body, after=5)
        await polled.http.close()
    told = [record.getMessage() for record in caplog.records if "kv pool" in record.getMessage()]
    assert len(told) == 1
    assert "688128 more: 47.0% of the 1298128 that fit" in told[0]


@pytest.mark.parametrize(
    ("info", "copies"),
    [
        (b'{"speculative_algorithm": "EAGLE", "model_path": "/m", "speculative_draft_model_path": "/m"}', True),
        (b'{"speculative_algorithm": "EAGLE", "model_path": "/m"}', True),
        (b'{"speculative_algorithm": "EAGLE", "model_path": "/m", "speculative_draft_model_path": "/head"}', False),
        (b'{"speculative_algorithm": "EAGLE3", "model_path": "/m"}', False),
        (b'{"speculative_algorithm": null, "model_path": "/m"}', False),
    ],
    ids=["the target's own path", "no path", "a head of its own", "another family", "no speculation"],
)
async def test_a_drafter_within_the_target_has_its_copies_too(tmp_path: Path, info: bytes, copies: bool) -> None:
    """Prediction layers in the target's files hold embedding and head a second time while the pool is sized."""
    write_target(tmp_path / "target")
    async with ScriptedEngine({"/server_info": Answer(info)}) as engine:
        polled = PolledDesk(engine, tmp_path, target={"path": "target"})
        polled.desk.checkpoints[Artifact.TARGET] = read_checkpoint(tmp_path / "target")
        await polled.poll(Source.SERVER_INFO)
        weights = polled.desk.drafter_weights(polled.now)
        await polled.http.close()
    assert (weights is not None) is copies
    if weights is not None:
        # 157,184 rows of 2560 in bfloat16, twice
        assert weights.charged_bytes - weights.resident_bytes == 2 * 157_184 * 2560 * 2
