"""Does this drafter fit this target: one small declaration per rule, judged on plain facts."""

from specbudget.domain.codesign.content import TokenComparison, TokenizerState, VocabularyMap
from specbudget.domain.codesign.facts import (
    DrafterFacts,
    DraftShape,
    EngineSetup,
    PairFacts,
    Rope,
    TapStatement,
    TargetFacts,
)
from specbudget.domain.codesign.judge import RULES, judge, pair_ratio
from specbudget.domain.codesign.launch import DEFAULTS, EngineFlags, read_launch_args
from specbudget.domain.codesign.rule import Rule
from specbudget.domain.codesign.vllm_launch import VllmArguments, read_vllm_args

__all__ = [
    "DEFAULTS",
    "RULES",
    "DraftShape",
    "DrafterFacts",
    "EngineFlags",
    "EngineSetup",
    "PairFacts",
    "Rope",
    "Rule",
    "TapStatement",
    "TargetFacts",
    "TokenComparison",
    "TokenizerState",
    "VllmArguments",
    "VocabularyMap",
    "judge",
    "pair_ratio",
    "read_launch_args",
    "read_vllm_args",
]
