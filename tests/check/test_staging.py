"""Cold starts before anybody started anything: bytes, readers, storage, the probe, and what the engine refuses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.check.plans import PlanFolder, write_weights
from tests.check.rule_rows import start_log

from specbudget.domain.finding import CheckResult, Exactness

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN
ALONE: dict[str, Any] = {"drafter__path": None, "drafter__algorithm": None, "engine__args": "--tp 8"}


def weighs(plans: PlanFolder, gigabytes: int) -> None:
    """A target of that many gigabytes and a header's bytes, without a block on disk."""
    write_weights(plans.target / "model.safetensors", {"model.w": (gigabytes, 10**9)}, dtype="U8", bits=8)


@pytest.mark.parametrize(
    ("limit", "result"),
    [("10m", UNKNOWN), ("500s", UNKNOWN), ("300s", UNKNOWN), ("60.1s", UNKNOWN), ("59s", FAIL)],
)
def test_readers_decide_between_once_and_each_on_its_own(plans: PlanFolder, limit: str, result: CheckResult) -> None:
    """120 GB at 2 GB/s with 8 readers: 60 s if they share a page cache, 480 s if not; loading alone never passes."""
    weighs(plans, 120)
    line = {"cold_start": limit, "storage_bandwidth": "2GB/s"}
    told = plans.judge(**ALONE, budget__staging=line)["staging.cold_start"]
    assert told.result is result
    assert told.low == pytest.approx(60, abs=0.001)
    assert told.high == pytest.approx(480, abs=0.001)
    assert told.exactness is Exactness.ESTIMATE
    assert "loading alone takes 60 s to 8 min" in told.message
    if limit in ("10m", "500s"):
        assert "(what follows it was not measured)" in told.message
        assert "engine.server_log" in told.message
    elif result is UNKNOWN:
        assert "--weight-loader-prefetch-checkpoints" in told.message


def test_prefetching_makes_the_readers_one(plans: PlanFolder) -> None:
    """The ranks divide the files among themselves: the range closes."""
    weighs(plans, 120)
    budget = {**ALONE, "engine__args": "--tp 8 --weight-loader-prefetch-checkpoints"}
    line = {"cold_start": "90s", "storage_bandwidth": "2GB/s", "mode": "prefetch"}
    judged = plans.judge(**budget, budget__staging=line)
    told = judged["staging.cold_start"]
    assert told.low == told.high == pytest.approx(60, abs=0.001)
    assert judged["staging.mode"].result is PASS


def test_stated_readers_count_before_the_ranks(plans: PlanFolder) -> None:
    """`readers: 1` says that they share a page cache."""
    weighs(plans, 120)
    line = {"cold_start": "90s", "storage_bandwidth": "2GB/s", "readers": 1}
    told = plans.judge(**ALONE, budget__staging=line)["staging.cold_start"]
    assert told.low == told.high == pytest.approx(60, abs=0.001)


@pytest.mark.parametrize(("budget", "result"), [("900s", FAIL), ("1300s", WARN), ("1h", PASS)])
def test_a_probe_that_gives_up_before_loading_ends(plans: PlanFolder, budget: str, result: CheckResult) -> None:
    """1 TB at 800 MB/s takes 1,250 s; a probe of 30 x 30 s kills the engine each time it tries."""
    weighs(plans, 1000)
    line = {"probe_budget": budget, "storage_bandwidth": "800MB/s", "readers": 1}
    judged = plans.judge(**ALONE, budget__staging=line)
    told = judged["staging.probe_budget"]
    assert told.result is result
    assert told.value == pytest.approx(1250, abs=0.001)
    if result is FAIL:
        assert "raise failureThreshold x periodSeconds" in told.message
        assert judged.report.exit_code(strict=False) == 1


@pytest.mark.parametrize("given", [{"budget__staging": {"mode": "overlap"}}, {"engine__args": "overlap"}])
def test_overlap_is_not_possible_with_speculation(plans: PlanFolder, given: dict[str, Any]) -> None:
    """Planned in the budget or asked of the engine: it fails and says why; without a drafter it may be."""
    if "engine__args" in given:
        given = {"engine__args": "--speculative-algorithm DFLASH --startup-weight-load-mode overlap"}
    judged = plans.judge(**given)
    told = judged["codesign.staging_mode"]
    assert told.result is FAIL
    assert "SGLang refuses overlapped loading with any speculation" in told.message
    assert judged.report.exit_code(strict=False) == 1
    alone = plans.judge(**ALONE, budget__staging={"mode": "overlap"})
    assert alone["staging.mode"].result is PASS


def test_a_drafter_adds_what_is_loaded_of_it(plans: PlanFolder) -> None:
    """The low side counts what the engine loads, the high side whole files for every reader."""
    line = {"cold_start": "1h", "storage_bandwidth": "1000B/s", "readers": 2}
    told = plans.judge(budget__staging=line, engine__args="--speculative-algorithm DFLASH")["staging.cold_start"]
    files = sum(path.stat().st_size for path in plans.folder.glob("*/model.safetensors"))
    assert told.high == pytest.approx(2 * files / 1000)
    assert told.low is not None
    assert told.low < files / 1000


def test_what_followed_loading_at_the_last_start_is_added(plans: PlanFolder) -> None:
    """A start-up log of these models tells it; the message then speaks of the whole start."""
    start_log(327_000, seconds=32)(plans)
    line = {"cold_start": "1m", "storage_bandwidth": "1GB/s"}
    told = plans.judge(engine__server_log="server.log", budget__staging=line)["staging.cold_start"]
    assert told.low == pytest.approx(30, abs=0.1)
    assert told.message.startswith("a cold start takes 30 s")


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"no log at all\n" * 100, b"[2026-11-29 15:50:00 TP0] Load we"])
def test_a_log_that_tells_nothing_is_passed_over(plans: PlanFolder, content: bytes) -> None:
    """So is one that is not there, and a folder of that name."""
    (plans.folder / "server.log").write_bytes(content)
    assert plans.judge(engine__server_log="server.log").plan.start is None
    assert plans.judge(engine__server_log="gone.log").plan.start is None
    assert plans.judge(engine__server_log="target").plan.start is None
