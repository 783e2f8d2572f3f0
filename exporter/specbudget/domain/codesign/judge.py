"""Every rule applied to the facts of one pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from specbudget.domain.codesign import block_rules, context_rules, engine_rules, shape_rules, tap_rules
from specbudget.domain.codesign.facts import PairFacts, missing
from specbudget.domain.codesign.finding import CheckResult, Finding, Outcome, Rule, unknown
from specbudget.domain.drafter import DraftAlgorithm

RULES: tuple[Rule, ...] = (
    *(rule for rule in engine_rules.RULES if rule.what == "algorithm"),
    *tap_rules.RULES,
    *shape_rules.RULES,
    *block_rules.RULES,
    *context_rules.RULES,
    *(rule for rule in engine_rules.RULES if rule.what != "algorithm"),
)
"""In the order in which people read them."""


def judge(facts: PairFacts, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """One finding for every rule that says something of this drafter.

    Nothing for a drafter without a model (n-gram). Without a known algorithm only the rules for all of them speak,
    and the one on the algorithm is unknown.
    """
    if facts.algorithm is DraftAlgorithm.NGRAM:
        return ()
    return tuple(_finding(rule, facts) for rule in rules if rule.applies(facts))


def _finding(rule: Rule, facts: PairFacts) -> Finding:
    lacking = missing(facts, rule.reads)
    outcome: Outcome = unknown(f"needs {', '.join(lacking)}") if lacking else rule.check(facts)
    return Finding(
        id=rule.id,
        result=outcome.result,
        required=rule.required if outcome.required is None else outcome.required,
        message=outcome.message,
        value=outcome.value,
        limit=outcome.limit,
        unit=rule.unit,
    )


def overall(findings: Iterable[Finding]) -> CheckResult:
    """Fail if any fails, else unknown if a required fact is missing, else warn, else pass."""
    found = tuple(findings)
    results = {finding.result for finding in found}
    if CheckResult.FAIL in results:
        return CheckResult.FAIL
    if any(finding.required for finding in found if finding.result is CheckResult.UNKNOWN):
        return CheckResult.UNKNOWN
    return CheckResult.WARN if CheckResult.WARN in results else CheckResult.PASS


def counts(findings: Iterable[Finding]) -> dict[CheckResult, int]:
    """How many findings of each result; every result is there."""
    found = Counter(finding.result for finding in findings)
    return {result: found[result] for result in CheckResult}


def pair_ratio(findings: Iterable[Finding], *, recheck_due: bool = False) -> float | None:
    """The used ratio of the budget `pair`: 2 when a rule fails, 1 for a warning or a recheck that is due, else 0.

    None when a required fact is missing.
    """
    match overall(findings):
        case CheckResult.FAIL:
            return 2.0
        case CheckResult.UNKNOWN:
            return None
        case CheckResult.WARN:
            return 1.0
        case CheckResult.PASS:
            return 1.0 if recheck_due else 0.0
