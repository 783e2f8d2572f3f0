"""Declared scenarios as running servers: what fails over HTTP and on disk, and what goes on."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from simulate.running_engine import FAST, records_in, until
from specbudget.budget.lock import load_lock
from specbudget.domain.pair_change import Change, ModelChange, compare
from specbudget.pair.side import read_side
from specbudget.simulate.scenarios import SCENARIOS
from specbudget.simulate.standin import StandInEngine
from specbudget.sources.checkpoint import read_checkpoint


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "stuck-start"])
async def test_every_scenario_runs_twenty_times_faster(tmp_path, name):
    """As a server it becomes ready, answers, and leaves a truth file that equals the records on disk."""
    engine = StandInEngine(SCENARIOS[name], directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        async with asyncio.timeout(10.0):
            await engine.wait_ready()
        await until(lambda: engine.truth.total.records > 8)
        async with session.get(f"{engine.url}/model_info") as response:
            assert response.status == 200
    truth = json.loads((tmp_path / "truth.json").read_text())
    records = await records_in(tmp_path)
    assert truth["total"]["records"] == len(records)
    for counted, key in (("verify_steps", "spec_verify_ct"), ("proposed_drafts", "spec_num_proposed_drafts")):
        assert truth["total"][counted] == sum(record.get(key, 0) for record in records)
    assert (tmp_path / "adaptive.json").exists() is (name == "spec-adaptive")


async def test_a_stuck_start_refuses_connections_and_prints_no_more(tmp_path):
    """The port stays closed, the log stands, no record is written; it still ends cleanly."""
    engine = StandInEngine(SCENARIOS["stuck-start"], directory=tmp_path, speed=FAST)
    log = tmp_path / "server.log"
    async with engine, aiohttp.ClientSession() as session:
        await until(lambda: log.read_text().count("Load weight begin") == 8)
        before = log.read_text()
        await asyncio.sleep(0.5)
        assert log.read_text() == before
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{engine.url}/metrics")
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert (truth["total"]["records"], truth["ready_at"], truth["starts"]) == (0, None, 1)


async def test_sidecar_blind_answers_monitors_with_500_and_serves_on(tmp_path):
    """Healthy for ten seconds; then what a monitor reads fails, and requests and their records go on."""
    engine = StandInEngine(SCENARIOS["sidecar-blind"], directory=tmp_path, speed=FAST, requests_per_second=60)
    async with engine, aiohttp.ClientSession() as session:

        async def status(path: str) -> int:
            async with session.get(engine.url + path) as response:
                return response.status

        await engine.wait_ready()
        assert await status("/metrics") == 200
        async with asyncio.timeout(10.0):
            while await status("/metrics") == 200:  # noqa: ASYNC110 -- the engine tells nobody that it is ill
                await asyncio.sleep(0.02)
        records = engine.truth.total.records
        for path, expected in (("/v1/loads", 500), ("/server_info", 500), ("/get_server_info", 500), ("/ready", 200)):
            assert (path, await status(path)) == (path, expected)
        await until(lambda: engine.truth.total.records > records + 20)
    assert '"GET /metrics HTTP/1.1" 500 Internal Server Error' in (tmp_path / "server.log").read_text()


async def test_frozen_still_answers(tmp_path):
    """While the batch stands still, every endpoint answers and the running requests stay on the gauge."""
    engine = StandInEngine(SCENARIOS["frozen"], directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        await engine.wait_ready()
        await until(lambda: engine.now() > engine.process.ready_at + 1.5)
        counted = engine.truth.total.records
        await asyncio.sleep(0.5)
        for path in ("/metrics", "/v1/loads", "/server_info"):
            async with session.get(engine.url + path) as response:
                assert response.status == 200
                text = await response.text()
                if path == "/metrics":
                    running = next(line for line in text.splitlines() if line.startswith("sglang:num_running_reqs"))
        assert float(running.split()[-1]) > 0
        assert engine.truth.total.records == counted


async def test_capacity_shrank_restarts_smaller(tmp_path):
    """The second start tells of two thirds of the slots, under the same address."""
    engine = StandInEngine(SCENARIOS["capacity-shrank"], directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        slots = []
        for starts in (1, 2):
            await until(lambda starts=starts: engine.truth.starts == starts and engine.ready)
            async with session.get(f"{engine.url}/server_info") as response:
                slots.append((await response.json())["max_total_num_tokens"])
    assert slots[1] == pytest.approx(slots[0] * 2 / 3, rel=0.001)


async def test_drafter_swapped_changes_the_configuration_and_nothing_else(tmp_path):
    """Another drafter is on disk twenty seconds after ready; weights, target and lock are of the approved pair."""
    engine = StandInEngine(SCENARIOS["drafter-swapped"], directory=tmp_path, speed=FAST)
    async with engine:
        config = tmp_path / "drafter" / "config.json"
        before, target = json.loads(config.read_text()), (tmp_path / "target" / "config.json").read_text()
        await engine.wait_ready()
        await until(lambda: json.loads(config.read_text()) != before)
        after = json.loads(config.read_text())
        assert {key for key in before if before[key] != after[key]} == {"target_layer_ids", "max_position_embeddings"}
        assert (tmp_path / "target" / "config.json").read_text() == target
        lock = load_lock(tmp_path / "budget.lock").lock
        sides = [read_side(read_checkpoint(tmp_path / name)).fingerprints for name in ("target", "drafter")]
        assert compare(lock.target_fingerprints, sides[0]) == ModelChange(change=Change.SAME)
        drafter = compare(lock.drafter_fingerprints, sides[1])
        assert (drafter.change, drafter.parts) == (Change.CHANGED, ("config",))
        assert {setting.key for setting in drafter.settings} == {"target_layer_ids", "max_position_embeddings"}
        assert engine.truth.starts == 1
