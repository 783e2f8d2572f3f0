"""Every rule applied to the facts of one pair."""

from __future__ import annotations

from collections.abc import Iterable

from specbudget.domain.codesign import (
    block_rules,
    chain_rules,
    context_rules,
    engine_rules,
    flag_rules,
    head_rules,
    kv_rules,
    parallel_rules,
    shape_rules,
    tap_rules,
    tap_width_rules,
    token_rules,
)
from specbudget.domain.codesign.facts import PairFacts, missing
from specbudget.domain.codesign.rule import Rule
from specbudget.domain.finding import CheckResult, Finding, Outcome, overall, unknown

RULES: tuple[Rule, ...] = (
    *(rule for rule in engine_rules.RULES if rule.what == "algorithm"),
    *tap_rules.RULES,
    *tap_width_rules.RULES,
    *shape_rules.RULES,
    *token_rules.RULES,
    *block_rules.RULES,
    *chain_rules.RULES,
    *context_rules.RULES,
    *kv_rules.RULES,
    *(rule for rule in engine_rules.RULES if rule.what != "algorithm"),
    *parallel_rules.RULES,
    *head_rules.RULES,
    *flag_rules.RULES,
)
"""In the order in which people read them."""

_OF_A_SEEN_DRAFTER = frozenset(
    rule.id
    for rule in (
        *tap_rules.RULES,
        *tap_width_rules.RULES,
        *shape_rules.RULES,
        *token_rules.RULES,
        *block_rules.RULES,
        *context_rules.RULES,
        *kv_rules.RULES,
        *(rule for rule in engine_rules.RULES if rule.what in ("architecture", "trained_for")),
    )
    if not rule.alone
)
"""Rules on the drafter's own checkpoint: of one that is not read they say nothing, and `draft_path` says so."""


def judge(facts: PairFacts, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """One finding for every rule that says something of this drafter.

    Where there is no second model (none, or n-grams) only the rules that hold for a target alone speak. Without a
    known algorithm only the rules for all of them do, and the one on the algorithm is unknown.
    """
    unread: frozenset[str] = _OF_A_SEEN_DRAFTER if facts.drafter.unseen else frozenset()
    return tuple(_finding(rule, facts) for rule in rules if rule.applies(facts) and rule.id not in unread)


def _finding(rule: Rule, facts: PairFacts) -> Finding:
    lacking = missing(facts, rule.reads)
    outcome: Outcome = unknown(f"needs {', '.join(lacking)}") if lacking else rule.check(facts)
    return rule.text.finding(outcome)


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
