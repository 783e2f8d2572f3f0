"""Does this drafter fit this target: one small declaration per rule, judged on plain facts."""

from specbudget.domain.codesign.facts import DrafterFacts, EngineSetup, PairFacts, Rope, TapStatement, TargetFacts
from specbudget.domain.codesign.judge import RULES, judge, pair_ratio
from specbudget.domain.codesign.launch import DEFAULTS, EngineFlags, read_launch_args
from specbudget.domain.codesign.rule import Rule

__all__ = [
    "DEFAULTS",
    "RULES",
    "DrafterFacts",
    "EngineFlags",
    "EngineSetup",
    "PairFacts",
    "Rope",
    "Rule",
    "TapStatement",
    "TargetFacts",
    "judge",
    "pair_ratio",
    "read_launch_args",
]
