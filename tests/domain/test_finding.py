"""The verdict of several findings, and how an outcome becomes a finding."""

import pytest

from specbudget.domain.finding import (
    CheckResult,
    Finding,
    RuleText,
    counts,
    fails,
    overall,
    passes,
    unknown,
    warns,
)

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN


def finding(result: CheckResult, *, required: bool = True) -> Finding:
    """A finding with this result."""
    return Finding(id="kv.x", result=result, required=required, message="")


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ([], PASS),
        ([(PASS, True)], PASS),
        ([(PASS, True), (WARN, True)], WARN),
        ([(WARN, True), (UNKNOWN, True)], UNKNOWN),
        ([(WARN, True), (UNKNOWN, False)], WARN),
        ([(PASS, True), (UNKNOWN, False)], PASS),
        ([(UNKNOWN, True), (FAIL, True)], FAIL),
        ([(FAIL, False)], FAIL),
    ],
)
def test_the_worst_counts_and_an_unknown_only_when_required(
    results: list[tuple[CheckResult, bool]], verdict: CheckResult
) -> None:
    """Fail, else unknown if a required fact is missing, else warn, else pass."""
    assert overall(finding(result, required=required) for result, required in results) is verdict


def test_a_rule_names_what_it_says() -> None:
    """Id and unit are the rule's; `required` is the rule's unless the outcome says otherwise."""
    rule = RuleText(id="kv.x", asks="?", source="s", unit="bytes", required=False)
    told = rule.finding(passes("fine", value=3, limit=4))
    assert (told.line, told.check, told.unit, told.required) == ("kv", "x", "bytes", False)
    assert rule.finding(unknown("?", required=True)).required
    results = counts([rule.finding(warns("w")), rule.finding(fails("f")), rule.finding(fails("g"))])
    assert results == {PASS: 0, WARN: 1, FAIL: 2, UNKNOWN: 0}
