"""Does this drafter fit this target: one small declaration per rule, judged on plain facts."""

from specbudget.domain.codesign.facts import DrafterFacts, EngineSetup, PairFacts, Rope, TapStatement, TargetFacts
from specbudget.domain.codesign.finding import CheckResult, Finding, Rule
from specbudget.domain.codesign.judge import RULES, counts, judge, overall, pair_ratio
from specbudget.domain.codesign.launch import DEFAULTS, EngineFlags, read_launch_args

__all__ = [
    "DEFAULTS",
    "RULES",
    "CheckResult",
    "DrafterFacts",
    "EngineFlags",
    "EngineSetup",
    "Finding",
    "PairFacts",
    "Rope",
    "Rule",
    "TapStatement",
    "TargetFacts",
    "counts",
    "judge",
    "overall",
    "pair_ratio",
    "read_launch_args",
]
