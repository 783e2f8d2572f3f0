"""What the gate tells to do about memory: advice that works when it is followed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.check.plans import PlanFolder

from specbudget.domain.finding import CheckResult

ARGS = "--speculative-algorithm DFLASH --mem-fraction-static {}"


@pytest.mark.parametrize("least", [336_000, 342_000, 347_000, 352_000, 357_000, 363_000, 371_000, 390_000])
def test_the_fraction_that_is_told_holds_what_is_asked_for(plans: PlanFolder, least: int) -> None:
    """With the named fraction the plan keeps its limit, with one hundredth less it does not."""
    failing = plans.judge(budget__kv={"min_target_tokens": least})["kv.min_target_tokens"]
    assert failing.result is CheckResult.FAIL
    told = re.search(r"raise --mem-fraction-static from 0\.8 to (0\.\d+), which leaves ([\d.]+) MiB", failing.message)
    assert told is not None, failing.message

    def with_fraction(value: float) -> CheckResult:
        args = ARGS.format(f"{value:.2f}")
        return plans.judge(engine__args=args, budget__kv={"min_target_tokens": least})["kv.min_target_tokens"].result

    fraction = float(told[1])
    assert with_fraction(fraction) in (CheckResult.PASS, CheckResult.WARN)
    assert with_fraction(fraction - 0.01) is CheckResult.FAIL
    assert float(told[2]) == pytest.approx((1 - fraction) * 1024, abs=0.06)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        pytest.param(
            {"budget__kv": {"min_target_tokens": 500_000}},
            "no --mem-fraction-static up to 0.97 holds so many: use more devices",
            id="no fraction is enough",
        ),
        pytest.param(
            {
                "budget__kv": {"min_target_tokens": 300_000},
                "engine__args": ARGS.format(0.8) + " --max-total-tokens 200000",
            },
            ": raise --max-total-tokens from 200,000 to 300,000, or lower kv.min_target_tokens",
            id="a cap, and not memory, bounds the pool",
        ),
        pytest.param(
            {"budget__kv": {"min_target_tokens": 350_000}, "engine__gpu_memory": "24GiB"},
            "; SGLang by itself would take 0.",
            id="the engine's own choice, where it is known",
        ),
    ],
)
def test_advice_fits_what_bounds_the_pool(plans: PlanFolder, budget: dict[str, Any], words: str) -> None:
    """No fraction is named where none would help."""
    finding = plans.judge(**budget)["kv.min_target_tokens"]
    assert finding.result is CheckResult.FAIL
    assert words in finding.message


def test_a_pool_that_does_not_exist_gets_a_fraction_too(plans: PlanFolder) -> None:
    """Where nothing is left beside the weights the advice is as exact."""
    finding = plans.judge(engine__args=ARGS.format(0.001), budget__kv={"min_target_tokens": 1000})[
        "kv.min_target_tokens"
    ]
    assert finding.result is CheckResult.FAIL
    assert re.search(r"not enough memory: .*: raise --mem-fraction-static from 0\.001 to 0\.0\d, ", finding.message)


@pytest.mark.parametrize(
    ("budget", "words", "without"),
    [
        pytest.param(
            {"engine__free_before_load": None, "engine__gpu_memory": "24GiB"},
            "`avail mem` of the first `Load weight begin`",
            "set --mem-fraction-static",
            id="only a label: the line of the log is named",
        ),
        pytest.param(
            {
                "engine__free_before_load": None,
                "engine__gpu_memory": "24GiB",
                "engine__args": "--speculative-algorithm DFLASH",
            },
            "set --mem-fraction-static, which is taken to be 0.",
            "0.8;",
            id="no fraction: the one that is taken is told",
        ),
    ],
)
def test_a_vague_prediction_says_what_makes_it_sure(
    plans: PlanFolder, budget: dict[str, Any], words: str, without: str
) -> None:
    """It asks for what is not in the budget yet, and for nothing that is."""
    tokens = plans.judge(budget__kv={}, **budget)["kv.min_target_tokens"]
    assert isinstance(tokens.value, int)
    finding = plans.judge(budget__kv={"min_target_tokens": tokens.value}, **budget)["kv.min_target_tokens"]
    assert finding.result is CheckResult.UNKNOWN
    assert words in finding.message
    assert without not in finding.message
