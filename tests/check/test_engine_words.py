"""Advice is in the words of the engine that the budget is of."""

from __future__ import annotations

from typing import Any

import pytest
from tests.check.plans import PlanFolder

FULL: dict[str, Any] = {
    "budget__artifacts": {"target": "1GiB"},
    "budget__kv": {"min_target_tokens": 330_000, "drafter": "1MiB", "target": "1GiB", "tokens_per_request": 1000},
    "budget__acceptance": {"target_length": 2.0, "break_even": 2.0},
}
STAGING: dict[str, Any] = {"cold_start": "90s", "order": ["drafter", "target"], "warmup": "required"}
OF_SGLANG = ("--speculative-num", "--mem-fraction", "--max-total-tokens", "--skip-server", "--weight-loader")
SPECULATIVE = '--speculative-config \'{"method": "dflash", "model": "drafter"}\''


@pytest.mark.parametrize("mode", ["serial", "prefetch", "overlap"])
@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("vllm", f"--tensor-parallel-size 2 {SPECULATIVE}"),
        ("vllm", None),
        ("tensorrt-llm", None),
        ("tensorrt-llm", "x"),
    ],
)
def test_no_other_engine_is_told_to_set_an_option_of_sglang(
    plans: PlanFolder, kind: str, args: str | None, mode: str
) -> None:
    """Nothing that was read of SGLang is held against it either: it is said to be known of SGLang only."""
    staging = {"budget__staging": {**STAGING, "mode": mode}}
    report = plans.judge(engine__kind=kind, engine__version="0.32.0", engine__args=args, **FULL, **staging).report
    for finding in report.findings:
        assert not [word for word in OF_SGLANG if word in finding.message], finding
        assert "SGLang" not in finding.message.replace("that was read of SGLang only", ""), finding


def test_each_engine_is_told_its_own_way(plans: PlanFolder) -> None:
    """The number of draft tokens stands in another place for each."""
    plain = plans.use_eagle3()
    words = {
        "vllm": (SPECULATIVE, "num_speculative_tokens in --speculative-config"),
        "tensorrt-llm": (None, "the arguments of tensorrt-llm are not read yet"),
    }
    for kind, (args, told) in words.items():
        changes = {**plain, "engine__kind": kind, "engine__args": args, "engine__version": None, **FULL}
        assert told in plans.judge(**changes)["acceptance.window"].message
