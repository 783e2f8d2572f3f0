"""Ling-3.0-flash and its DSpark drafter: the numbers that are published or can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.check.conftest import LING_ARGS
from tests.check.plans import Judged

from specbudget.domain.finding import CheckResult, Exactness

GIB = 2**30
Ling = Callable[..., Judged]


def test_parameters_on_disk_and_loaded(ling: Ling) -> None:
    """A DSpark drafter never loads its embedding and head; what every rank holds whole is not divided by four."""
    judged = ling()
    drafter = judged["artifacts.drafter_parameters"]
    assert drafter.value == 1_363_707_905
    assert "558,925,825" in drafter.message
    resident = judged["artifacts.drafter_resident_bytes"]
    assert resident.value == 2 * (445_644_800 // 4 + 113_281_025)
    assert "freed" not in resident.message


@pytest.mark.parametrize(
    ("ranks", "target", "drafter", "share"), [(1, 8064, 81_920, "91.0%"), (4, 8064, 20_480, "71.7%")]
)
def test_bytes_per_token(ling: Ling, ranks: int, target: int, drafter: int, share: str) -> None:
    """The latent of the target is whole on every rank, the drafter's heads are divided."""
    judged = ling(engine={"args": LING_ARGS.replace("--tp 4", f"--tp {ranks}"), "free_before_load": "512000MiB"})
    assert judged["kv.target_bytes_per_token"].value == target
    assert judged["kv.drafter_bytes_per_token"].value == drafter
    assert f"takes {share} of the target's token budget" in judged["kv.drafter_cost_tokens"].message


def test_four_numbers_of_the_drafter_s_kv(ling: Ling) -> None:
    """Floor, need, allocated, cost: a formula of the block alone is wrong by 900 times."""
    judged = ling(kv={"concurrency": 48, "tokens_per_request": 8192})
    floor, need = judged["kv.drafter_block_floor_bytes"], judged["kv.drafter_need_bytes"]
    assert floor.value == 48 * 9 * 20_480
    assert need.value == 48 * (8192 + 9) * 20_480
    assert f"{floor.value / 2**20:.1f} MiB" == "8.4 MiB"
    assert f"{need.value / GIB:.2f} GiB" == "7.51 GiB"
    pool, allocated = judged["kv.min_target_tokens"], judged["kv.drafter_allocated_bytes"]
    assert isinstance(pool.value, int)
    assert allocated.value == (pool.value + 64) * 20_480
    cost = judged["kv.drafter_cost_tokens"]
    assert isinstance(cost.value, int)
    without = pool.value + cost.value
    assert pool.value / without == pytest.approx(8064 / 28_544, abs=0.005)


@pytest.mark.parametrize(
    ("engine", "exactness", "share"),
    [
        ({"free_before_load": "182272MiB"}, Exactness.EXACT, 0.0),
        ({"free_before_load": "178GiB"}, Exactness.FROM_LOG, 0.00001),
        ({"free_before_load": None, "gpu_memory": "180GiB"}, Exactness.ESTIMATE, 0.05),
    ],
)
def test_a_prediction_says_how_sure_it_is(
    ling: Ling, engine: dict[str, str | None], exactness: Exactness, share: float
) -> None:
    """From bytes exact, from what the hardware is sold with no tighter than 5 %."""
    pool = ling(engine=engine)["kv.min_target_tokens"]
    assert pool.exactness is exactness
    assert isinstance(pool.value, int)
    assert pool.low is not None
    assert pool.high is not None
    assert pool.low <= pool.value * (1 - share) + 1
    assert pool.high >= pool.value * (1 + share) - 1
    assert (pool.low == pool.high) is (share == 0.0)


@pytest.mark.parametrize(
    ("args", "result", "words"),
    [
        ("--enable-linear-replayssm-spec --linear-replayssm-cache-len 32", CheckResult.PASS, "a ring of 32"),
        ("--enable-linear-replayssm-spec", CheckResult.FAIL, "--linear-replayssm-cache-len 16"),
        ("--enable-linear-replayssm-spec --linear-replayssm-cache-len 24", CheckResult.FAIL, "a power of two"),
        ("", CheckResult.PASS, "is off"),
    ],
)
def test_the_replay_ring_holds_two_windows(ling: Ling, args: str, result: CheckResult, words: str) -> None:
    """The engine's default of 16 refuses to start with a window of 9: 18 slots, so a ring of 32."""
    told = ling(engine={"args": f"--tp 4 --speculative-algorithm DSPARK --mem-fraction-static 0.85 {args}"})
    assert told["codesign.replay_ring"].result is result
    assert words in told["codesign.replay_ring"].message
    if result is CheckResult.FAIL:
        assert told.report.exit_code(strict=False) == 1


def test_without_the_ring_each_request_keeps_a_state_per_draft(ling: Ling) -> None:
    """The arithmetic shows the states that a verify step keeps, where no ring replays them."""
    plain = "--tp 4 --page-size 64 --speculative-algorithm DSPARK --mem-fraction-static 0.85"
    for args, kept in ((LING_ARGS, False), (plain, True)):
        steps = ling(engine={"args": args})["kv.min_target_tokens"].arithmetic
        assert any("recurrent state of one request slot" in step for step in steps)
        assert any("states that a verify step keeps" in step for step in steps) is kept


def test_a_release_without_its_classes_refuses_the_pair(ling: Ling) -> None:
    """SGLang 0.5.18 has neither class of this pair."""
    told = ling(engine={"version": "0.5.18"})
    assert told["codesign.architecture"].result is CheckResult.FAIL
    assert "has no class BailingMoeV3ForCausalLM" in told["codesign.architecture"].message
    assert told.report.exit_code(strict=False) == 1


def test_the_window_bounds_the_target_of_the_slo(ling: Ling) -> None:
    """Eight drafts and the target's own token."""
    assert ling()["acceptance.window"].value == 9
    assert ling(acceptance={"target_length": 9.0})["acceptance.unattainable"].result is CheckResult.UNKNOWN
    assert ling(acceptance={"target_length": 9.1})["acceptance.unattainable"].result is CheckResult.FAIL


def test_fewer_kv_heads_or_a_smaller_element_are_the_remedy(ling: Ling) -> None:
    """A drafter in fp8 costs half; a target in fp8 takes the drafter along unless it has a dtype of its own."""
    half = ling(engine={"args": f"{LING_ARGS} --speculative-draft-kv-cache-dtype fp8_e4m3"})
    assert half["kv.drafter_bytes_per_token"].value == 10_240
    assert half["kv.target_bytes_per_token"].value == 8064
    both = ling(engine={"args": f"{LING_ARGS} --kv-cache-dtype fp8_e4m3"})
    assert "20,480 B" in both["kv.drafter_kv_dtype"].message
    assert both["kv.drafter_kv_dtype"].value == 10_240
