"""Every rule of every line, on a plan that keeps it and on plans that do not."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.check.plans import PlanFolder
from tests.check.rule_rows import PASS, ROWS, WARN, Row

from specbudget.check.report import GATE_RULES
from specbudget.domain.finding import CheckResult

TOLD_ELSEWHERE = {
    "codesign.approved": {PASS, WARN},  # test_approval.py
}

INFORMS = {
    "artifacts.drafter_resident_bytes",
    "kv.drafter_kv_dtype",
    "kv.step_reserve_tokens",
    "kv.drafter_block_floor_bytes",
    "kv.drafter_idle_bytes",
    "kv.duplicate_vocabulary",
}
"""Rules that tell a number and never complain."""


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_rule_says_what_it_should(plans: PlanFolder, row: Row) -> None:
    """The finding has the result, and its message the number or the key that decides."""
    row.change(plans)
    finding = plans.judge(**row.budget)[row.id]
    assert (finding.result, finding.message) == (row.result, finding.message)
    assert row.words in finding.message


def test_every_rule_has_a_plan_that_keeps_it_and_one_that_does_not() -> None:
    """A rule without both is not tested; only those that tell a number need no second one."""
    results: dict[str, set[CheckResult]] = defaultdict(set)
    for row in ROWS:
        results[row.id].add(row.result)
    for rule, more in TOLD_ELSEWHERE.items():
        results[rule] |= more
    assert set(results) == {rule.id for rule in GATE_RULES}
    lacking = {rule for rule, found in results.items() if found <= {PASS} and rule not in INFORMS}
    assert not lacking
    assert all(PASS in found for found in results.values())
    assert {rule for rule in INFORMS if results[rule] != {PASS}} == set()


def test_a_model_of_its_own_or_none_at_all(plans: PlanFolder) -> None:
    """Without a drafter its numbers are not required, and the co-design line is not budgeted."""
    judged = plans.judge(drafter__path=None, drafter__algorithm=None, engine__args="--mem-fraction-static 0.8")
    assert judged.report.verdict is PASS
    assert [line.line.id for line in judged.report.lines if line.budgeted] == []
    for rule in ("artifacts.drafter_parameters", "kv.drafter_cost_tokens"):
        assert (judged[rule].result, judged[rule].message) == (PASS, "no second model")


def test_a_limit_of_running_requests_is_shared_by_the_ranks(plans: PlanFolder) -> None:
    """--max-running-requests counts over all ranks of attention data parallelism, the plan per rank."""
    args = "--speculative-algorithm DFLASH --mem-fraction-static 0.8 --max-running-requests 96"
    assert plans.judge(engine__args=args).plan.concurrency == 96
    assert plans.judge(engine__args=f"{args} --tp 2 --dp 2 --enable-dp-attention").plan.concurrency == 48
    assert plans.judge(engine__args=args, budget__kv={"concurrency": 7}).plan.concurrency == 7
    assert plans.judge(engine__args="--speculative-algorithm DFLASH").plan.concurrency == 48


def test_without_speculation_no_number_of_requests_is_assumed(plans: PlanFolder) -> None:
    """The engine's default of 48 requests belongs to speculation."""
    alone = {"drafter__path": None, "drafter__algorithm": None, "budget__kv": {"tokens_per_request": 1000}}
    args = "--mem-fraction-static 0.8"
    assert "kv.high_water" not in plans.judge(**alone, engine__args=args)
    assert "kv.high_water" in plans.judge(**alone, engine__args=f"{args} --max-running-requests 8")
