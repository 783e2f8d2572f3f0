"""A running engine: its word wins, its silence is no fault unless it was named, and what contradicts it is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.check.plans import NOBODY, PlanFolder
from tests.scripted_engine import CAPTURED, Answer, ScriptedEngine

from specbudget.check import gather
from specbudget.check.gather import CONNECT_SECONDS, UNASKED_SECONDS
from specbudget.cli import main

SERVER_INFO = json.loads((CAPTURED / "0.5.23" / "server_info_v0.5.23_dflash.json").read_text())
METRICS = (CAPTURED / "0.5.23" / "metrics_v0.5.23_dflash_tp1.busy.prom").read_bytes()
POOL_TOKENS = 381_440
KEY = "sk-EXAMPLE-key-of-a-test"


def engine(**changes: Any) -> ScriptedEngine:
    """An engine as it was captured, with some of its arguments changed."""
    info = json.dumps({**SERVER_INFO, "api_key": KEY, **changes}).encode()
    return ScriptedEngine({"/server_info": Answer(info), "/metrics": Answer(METRICS)})


async def check(plans: PlanFolder, *words: str, **budget: Any) -> int:
    """The command's exit code on a budget with these changes."""
    file = plans.write(**budget)
    return await asyncio.to_thread(main, ["check", "--budget", str(file), *words])


def findings(printed: str) -> dict[str, dict[str, Any]]:
    """The findings of the JSON form by id."""
    return {finding["id"]: finding for line in json.loads(printed)["lines"] for finding in line["findings"]}


async def test_the_running_engine_s_word_wins(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Its pool is the pool, its window the window; what the budget says otherwise is a warning that stops nothing."""
    async with engine(speculative_num_draft_tokens=12) as running:
        code = await check(
            plans,
            "--format",
            "json",
            engine__url=running.url,
            engine__version="0.5.18",
            engine__args="--speculative-algorithm DSPARK --dp 2",
            parallelism__tensor=4,
            budget__kv={},
        )
    found = findings(capsys.readouterr().out)
    assert code == 0
    pool = found["kv.min_target_tokens"]
    assert pool["value"] == pool["low"] == pool["high"] == POOL_TOKENS
    assert (pool["class"], "the running engine" in pool["message"]) == ("exact", True)
    assert found["kv.prediction"]["verdict"] == "warn"
    agreement = found["codesign.agreement"]
    assert agreement["verdict"] == "warn"
    assert "engine.version is 0.5.18, the running engine says 0.5.23" in agreement["message"]
    assert "parallelism.tensor is 4, the running engine says 1" in agreement["message"]
    assert "engine.args --dp is 2, the running engine says 1" in agreement["message"]
    assert "--speculative-algorithm is dspark, the running engine says dflash" in agreement["message"]
    assert agreement["message"].endswith("an engine's word counts before the budget's; state it once")


async def test_an_engine_that_is_named_stands_in_for_the_budget_s(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--engine` wins over `engine.url`; nothing that generates is asked, and no key is printed."""
    async with engine() as running:
        code = await check(plans, "--engine", running.url, "--format", "json", budget__kv={})
        assert {seen.path for seen in running.seen} <= {"/server_info", "/metrics"}
    printed = capsys.readouterr()
    assert code == 0
    assert "the running engine" in findings(printed.out)["kv.min_target_tokens"]["message"]
    assert KEY not in printed.out + printed.err


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit"])
async def test_without_an_engine_the_plan_is_judged_all_the_same(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """`engine.url` is read when it answers; nobody there is no finding."""
    assert await check(plans, "--format", form, engine__url=NOBODY) == 0
    assert capsys.readouterr().err == ""


async def test_a_plan_may_be_judged_alone(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever runs there is of the old plan: nothing is asked, and its word does not count."""
    async with engine() as running:
        assert await check(plans, "--no-engine", "--format", "json", engine__url=running.url, budget__kv={}) == 0
        assert not running.seen
    pool = findings(capsys.readouterr().out)["kv.min_target_tokens"]
    assert "the running engine" not in pool["message"]
    assert pool["value"] != POOL_TOKENS


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "404"),
        ({"/server_info": Answer(b"{}", status=401)}, "401"),
        ({"/server_info": Answer(b"<html>a proxy</html>")}, "not what SGLang answers"),
        ({"/server_info": Answer(b'{"tp_size": 0}')}, "not what SGLang answers"),
        ({"/server_info": Answer(b'{"tp_size": "four"}')}, "not what SGLang answers"),
        ({"/server_info": Answer(b"[]")}, "not what SGLang answers"),
        ({"/server_info": Answer(b"")}, "not what SGLang answers"),
    ],
)
async def test_a_named_engine_must_answer_as_one(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], answers: dict[str, Answer], words: str
) -> None:
    """Named on the command line: exit 2 and why in one line. Named in the budget: the plan is judged without it."""
    async with ScriptedEngine(answers) as running:
        assert await check(plans, "--engine", running.url) == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
        assert "--engine" in told.err
        assert words in told.err
        assert await check(plans, engine__url=running.url) == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (NOBODY, "does not answer; start the engine or leave --engine out"),
        ("http://no.such.host.invalid", "does not answer"),
        ("http://127.0.0.1:0", "as http://HOST:PORT"),
        ("http://[", "as http://HOST:PORT"),
        ("ftp://x", "as http://HOST:PORT"),
        ("", "as http://HOST:PORT"),
        ("http://me:secret@127.0.0.1:9", "keep credentials out"),
    ],
)
async def test_a_named_engine_that_is_not_there_is_exit_2(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], url: str, words: str
) -> None:
    """One line that names the argument and what to do, whatever stands there."""
    assert await check(plans, "--engine", url) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("--engine")
    assert words in told
    assert "secret" not in told


async def test_an_engine_of_another_kind_is_not_asked(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Only SGLang answers here so far; the budget's own address is passed over, a named one told of."""
    assert await check(plans, "--engine", NOBODY, engine__kind="vllm") == 2
    assert "vllm" in capsys.readouterr().err
    assert await check(plans, engine__kind="vllm") in (0, 3)


async def test_metrics_may_be_closed(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """The arguments are known then, the pool is predicted."""
    async with engine() as running:
        del running.answers["/metrics"]
        assert await check(plans, "--engine", running.url, "--format", "json", budget__kv={}) == 0
    assert "predicted" in findings(capsys.readouterr().out)["kv.min_target_tokens"]["message"]


async def test_an_engine_that_runs_where_none_should_fit(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """The number that runs stands; that the plan's figures contradict it is a warning."""
    async with engine() as running:
        code = await check(
            plans,
            "--format",
            "json",
            engine__url=running.url,
            engine__free_before_load="1MiB",
            budget__kv={"min_target_tokens": 1},
        )
    found = findings(capsys.readouterr().out)
    assert code == 0
    assert found["kv.min_target_tokens"]["verdict"] == "pass"
    assert found["kv.prediction"]["verdict"] == "warn"
    assert "the plan is not the deployment that runs" in found["kv.prediction"]["message"]


async def test_a_start_that_was_measured_counts(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """What the engine's metrics say of its start beyond loading is added to what loading takes."""
    async with engine() as running:
        await check(
            plans,
            "--format",
            "json",
            engine__url=running.url,
            budget__staging={"cold_start": "500s", "storage_bandwidth": "1MB/s"},
        )
    told = findings(capsys.readouterr().out)["staging.cold_start"]
    assert told["low"] > 10
    assert told["message"].startswith("a cold start takes")


async def test_an_engine_that_never_answers_costs_a_few_seconds(
    plans: PlanFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the connection and says nothing: the plan is judged without it, and a named one is given up as well."""
    assert CONNECT_SECONDS + UNASKED_SECONDS < 4
    monkeypatch.setattr(gather, "UNASKED_SECONDS", 0.3)
    monkeypatch.setattr(gather, "NAMED_SECONDS", 0.3)
    async with ScriptedEngine({"/server_info": Answer(b"{}", seconds=600), "/metrics": Answer(METRICS)}) as silent:
        assert await check(plans, engine__url=silent.url) == 0
        assert await check(plans, "--engine", silent.url) == 2
    assert "no answer within 0.3 s" in capsys.readouterr().err


async def test_metrics_get_what_time_is_left(plans: PlanFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose /metrics hang still counts by its /server_info, and the whole is bounded once."""
    monkeypatch.setattr(gather, "UNASKED_SECONDS", 1.0)
    info = json.dumps(SERVER_INFO).encode()
    async with ScriptedEngine({"/server_info": Answer(info), "/metrics": Answer(METRICS, seconds=600)}) as half:
        plan = await asyncio.to_thread(gather.gather, plans.write(engine__url=half.url))
    assert plan.engine is not None
    assert plan.engine.ranks == {}
