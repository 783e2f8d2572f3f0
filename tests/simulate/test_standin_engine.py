"""The stand-in engine as a running server: sockets, keys, files, restarts and its end."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys

import aiohttp
import pytest

from simulate.running_engine import FAST, records_in, until
from specbudget.simulate.engine import run
from specbudget.simulate.scenarios import SCENARIOS, Action, Phase, Scenario
from specbudget.simulate.standin import StandInEngine


async def test_a_whole_run_agrees_with_its_truth(tmp_path):
    """After a run at speed 20 the truth file equals the sum over all records on disk, to the last draft."""
    async with StandInEngine(SCENARIOS["acceptance-drop"], directory=tmp_path, speed=FAST) as engine:
        await engine.wait_ready()
        await until(lambda: engine.truth.total.records > 60)
    truth = json.loads((tmp_path / "truth.json").read_text())
    records = await records_in(tmp_path)
    assert truth["total"]["records"] == len(records) > 60
    for name, key in (
        ("verify_steps", "spec_verify_ct"),
        ("accepted_drafts", "spec_num_correct_drafts"),
        ("proposed_drafts", "spec_num_proposed_drafts"),
    ):
        assert truth["total"][name] == sum(record.get(key, 0) for record in records)
    assert truth["starts"] == 1
    assert truth["process_started"] < truth["ready_at"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "budget.lock",
        "budget.yaml",
        "drafter",
        "requests",
        "server.log",
        "target",
        "truth.json",
    }


async def test_endpoints_answer_and_health_calls_are_counted(tmp_path):
    """Every endpoint answers as the engine's; calls that would cost a token show in the truth."""
    engine = StandInEngine(SCENARIOS["steady"], directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{engine.url}/metrics")
        await engine.wait_ready()
        for path, status in (
            ("/metrics", 200),
            ("/v1/loads", 200),
            ("/v1/loads?include=core,memory,spec&dp_rank=0", 200),
            ("/v1/loads?include=nonsense", 400),
            ("/v1/loads?dp_rank=x", 400),
            ("/v1/loads?format=prometheus", 200),
            ("/server_info", 200),
            ("/get_server_info", 200),
            ("/model_info", 200),
            ("/v1/models", 200),
            ("/health", 200),
            ("/health_generate", 200),
            ("/nowhere", 404),
        ):
            async with session.get(f"{engine.url}{path}") as response:
                assert (path, response.status) == (path, status)
        async with session.get(f"{engine.url}/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert engine.truth.health_calls == {"/health": 1, "/health_generate": 1}
    log = (tmp_path / "server.log").read_text()
    assert '"GET /v1/loads?include=nonsense HTTP/1.1" 400 Bad Request' in log


async def test_a_key_guards_everything_but_health_and_metrics(tmp_path):
    """Without the key 401 with the engine's body; the budget names the file that holds it."""
    engine = StandInEngine(SCENARIOS["steady"], directory=tmp_path, speed=FAST, api_key="sk-test")
    async with engine, aiohttp.ClientSession() as session:
        await engine.wait_ready()
        for path in ("/server_info", "/v1/loads", "/model_info", "/v1/models"):
            async with session.get(engine.url + path) as response:
                assert response.status == 401
                assert await response.json() == {"error": "Unauthorized"}
            async with session.get(engine.url + path, headers={"Authorization": "Bearer wrong"}) as response:
                assert response.status == 401
            async with session.get(engine.url + path, headers={"Authorization": "Bearer sk-test"}) as response:
                assert response.status == 200
        for path in ("/metrics", "/health", "/ready"):
            async with session.get(engine.url + path) as response:
                assert response.status == 200
    assert (tmp_path / "engine-key").read_text() == "sk-test\n"
    assert (tmp_path / "engine-key").stat().st_mode & 0o077 == 0
    assert "api_key_file: engine-key" in (tmp_path / "budget.yaml").read_text()


async def test_a_restart_begins_anew_in_the_same_files(tmp_path):
    """Counters fall, the start-up is printed again, records go on and the truth spans both lives."""
    scenario = Scenario(summary="", phases=(Phase(at=30, actions=(Action.RESTART,)),))
    engine = StandInEngine(scenario, directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        await engine.wait_ready()
        port = engine.url
        await until(lambda: engine.truth.starts == 2 and engine.ready)
        await until(lambda: engine.truth.this_start.records > 10)
        async with session.get(f"{engine.url}/metrics") as response:
            text = await response.text()
        assert engine.url == port
        before = engine.truth.total.records - engine.truth.this_start.records
        assert before > 5
    counted = sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("sglang:num_requests_total"))
    assert 5 < counted <= engine.truth.this_start.records
    log = (tmp_path / "server.log").read_text()
    assert log.count("The server is fired up and ready to roll!") == 2
    assert log.count("server_args=ServerArgs(") == 2
    assert len(await records_in(tmp_path)) == engine.truth.total.records


async def test_rotation_loses_no_record(tmp_path):
    """Rename, copy and change of the hour leave every record exactly once, in several files."""
    engine = StandInEngine(SCENARIOS["log-rotation"], directory=tmp_path, speed=FAST, requests_per_second=60)
    async with engine:
        await engine.wait_ready()
        await until(lambda: engine.truth.total.records > 120)
    records = await records_in(tmp_path)
    assert len(records) == len({record["id"] for record in records}) == engine.truth.total.records
    assert len(list((tmp_path / "requests").iterdir())) >= 4


async def test_faults_answer_with_their_status(tmp_path):
    """A phase with faults makes paths fail and leaves the others."""
    scenario = dataclasses.replace(
        SCENARIOS["steady"], phases=(Phase(at=0, faults={"/metrics": 500, "/v1/loads": 503}),)
    )
    engine = StandInEngine(scenario, directory=tmp_path, speed=FAST)
    async with engine, aiohttp.ClientSession() as session:
        await engine.wait_ready()
        for path, status in (("/metrics", 500), ("/v1/loads", 503), ("/model_info", 200)):
            async with session.get(engine.url + path) as response:
                assert response.status == status


async def test_a_swapped_drafter_changes_on_disk(tmp_path):
    """The drafter's config.json is another one after the phase."""
    scenario = Scenario(summary="", phases=(Phase(at=2, actions=(Action.SWAP_DRAFTER,)),))
    async with StandInEngine(scenario, directory=tmp_path, speed=FAST) as engine:
        config = tmp_path / "drafter" / "config.json"
        before = config.read_text()
        await engine.wait_ready()
        await until(lambda: config.read_text() != before)


async def test_a_taken_port_is_an_error_before_anything_is_written(tmp_path):
    """Two engines cannot share a port; the second leaves its folder alone."""
    async with StandInEngine(SCENARIOS["steady"], directory=tmp_path / "a", speed=FAST) as first:
        await first.wait_ready()
        port = int(first.url.rpartition(":")[2])
        second = StandInEngine(SCENARIOS["steady"], directory=tmp_path / "b", port=port)
        with pytest.raises(OSError, match="in use"):
            await second.start()
        assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("name", "listen", "speed", "message"),
    [
        pytest.param("stedy", "127.0.0.1:0", 1.0, "steady", id="an unknown scenario names the known ones"),
        pytest.param("steady", "nowhere", 1.0, "HOST:PORT", id="an address needs a port"),
        pytest.param("steady", "127.0.0.1:70000", 1.0, "HOST:PORT", id="a port has its range"),
        pytest.param("steady", "127.0.0.1:0", 0.0, "above 0", id="speed is positive"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(tmp_path, capsys, name, listen, speed, message):
    """What cannot run is told in one line on stderr."""
    assert run(name, listen, tmp_path / "d", 0, speed) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path, number):
    """SIGTERM and SIGINT end the process with 0, the truth written and whole."""
    code = (
        "import sys; from pathlib import Path; from specbudget.simulate.engine import run; "
        "sys.exit(run('steady', '127.0.0.1:0', Path(sys.argv[1]), 0, 20.0))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("scenario steady on http://127.0.0.1:")
        log = tmp_path / "server.log"
        while "fired up" not in log.read_text():
            assert process.poll() is None
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors) == (0, "")
    assert json.loads((tmp_path / "truth.json").read_text())["ready_at"] is not None
