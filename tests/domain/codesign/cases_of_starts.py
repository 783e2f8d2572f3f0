"""Pairs that the engine refuses to start, or starts otherwise than asked: ranks, defaults, families, context."""

from __future__ import annotations

from dataclasses import replace

from domain.codesign.cases_of_content import STANDALONE
from domain.codesign.cases_of_engines import MTP, REPLAY
from domain.codesign.pairs_to_judge import DFLASH, DSPARK, EAGLE3, drafter, engine, environment, flags, target
from specbudget.domain.codesign import DrafterFacts, DraftShape, PairFacts, Rope
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN

NGRAM = replace(
    engine(DSPARK, algorithm=DraftAlgorithm.NGRAM),
    algorithm=DraftAlgorithm.NGRAM,
    drafter=DrafterFacts(),
    second_model=False,
)
LONE = replace(engine(DSPARK, algorithm=None), algorithm=None, drafter=DrafterFacts(), second_model=False)
"""A target that runs without any speculation."""

HEADS = target(EAGLE3, heads=28, kv_heads=4)
GROUPS = engine(HEADS, tensor_parallel=8, attention_dp=True, data_parallel=2)
CHOSEN = engine(
    EAGLE3,
    num_steps=None,
    topk=None,
    num_draft_tokens=None,
    default_shape=DraftShape(steps=5, topk=4, draft_tokens=8),
)
"""The tree that SGLang chooses by itself for some targets."""

_EAGLE = DraftAlgorithm.EAGLE


def run_as(pair: PairFacts, algorithm: DraftAlgorithm) -> PairFacts:
    """The pair, run by another algorithm than its drafter is of."""
    return replace(engine(pair, algorithm=algorithm), algorithm=algorithm)


START_CASES: list[tuple[str, PairFacts, str, CheckResult, str]] = [
    ("heads of both models divided", HEADS, "attention_ranks", PASS, "4 ranks"),
    ("heads of the target that do not divide", engine(HEADS, tensor_parallel=8), "attention_ranks", FAIL,
     "28 attention heads of the target"),
    ("the same over the ranks of data-parallel attention", GROUPS, "attention_ranks", PASS, "4 ranks of each of 2"),
    ("heads that are divided by neither", engine(GROUPS, data_parallel=1), "attention_ranks", FAIL, "28"),
    ("KV heads of the target that do not divide", target(HEADS, heads=24, kv_heads=6), "attention_ranks", FAIL,
     "6 KV heads of the target"),
    ("KV heads that are repeated", engine(target(HEADS, heads=32), tensor_parallel=8), "attention_ranks", PASS, ""),
    ("KV heads of the drafter that do not divide", drafter(HEADS, kv_heads=3), "attention_ranks", FAIL,
     "3 KV heads of the drafter"),
    ("heads of an engine that runs", engine(HEADS, tensor_parallel=8, running=True), "attention_ranks", PASS,
     "started"),
    ("ranks that nobody knows", engine(HEADS, tensor_parallel=None), "attention_ranks", UNKNOWN, "ranks"),
    ("ranks that make no whole groups", engine(HEADS, attention_dp=True, data_parallel=3), "attention_ranks", FAIL,
     "--tp 4 cannot be divided into 3 groups"),
    ("ranks that make no whole groups of context", flags(HEADS, attn_cp_size=3), "attention_ranks", FAIL, "3 groups"),
    ("data-parallel replicas are no groups", engine(HEADS, data_parallel=3), "attention_ranks", PASS, ""),
    ("heads of a target alone", target(LONE, heads=24, kv_heads=6), "attention_ranks", FAIL, "6 KV heads"),
    ("no speculation", LONE, "algorithm", PASS, "no speculation"),
    ("n-grams", NGRAM, "algorithm", PASS, "ngram"),
    ("n-grams and data-parallel attention", engine(NGRAM, attention_dp=True), "attention_dp", FAIL, "NGRAM"),
    ("a context beyond the target", flags(DSPARK, context_length=262144), "context_length", FAIL,
     "set --context-length 40960"),
    ("the same where the environment allows it", environment(
        flags(DSPARK, context_length=262144), SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1"
    ), "context_length", WARN, "guesses"),
    ("the same of a target that scales its positions", target(
        flags(DSPARK, context_length=262144), rope=Rope(kind="linear")
    ), "context_length", WARN, "linear"),
    ("the same of a scaling that is in its positions", target(
        flags(DSPARK, context_length=262144), rope=Rope(kind="llama3")
    ), "context_length", FAIL, "40960"),
    ("the same on an engine that runs", flags(engine(DSPARK, running=True), context_length=262144),
     "context_length", PASS, "started"),
    ("a shorter context", flags(DSPARK, context_length=8192), "context_length", PASS, "8192 of"),
    ("a context beyond a target alone", flags(LONE, context_length=262144), "context_length", FAIL, "refuses"),
    ("a DSpark drafter run as MTP", run_as(DSPARK, DraftAlgorithm.MTP), "algorithm", FAIL, "block drafter"),
    ("a DSpark drafter run as EAGLE", run_as(DSPARK, _EAGLE), "algorithm", FAIL, "--speculative-algorithm DSPARK"),
    ("a DFlash drafter run alone", run_as(DFLASH, DraftAlgorithm.STANDALONE), "algorithm", FAIL, "of dflash"),
    ("prediction layers run as a block", run_as(MTP, DraftAlgorithm.DFLASH), "algorithm", FAIL, "chain head"),
    ("the same beside another word in the budget", replace(run_as(DSPARK, _EAGLE), budgeted=DraftAlgorithm.DSPARK),
     "algorithm", FAIL, "block drafter"),
    ("a block drafter that runs as told", engine(run_as(DSPARK, _EAGLE), running=True), "algorithm", WARN, "of dspark"),
    ("an unnamed drafter that runs as asked", drafter(STANDALONE, stated_algorithm=None), "algorithm", PASS, ""),
    ("steps that the engine chooses", CHOSEN, "steps", PASS, "5 steps, 4 branches, 8 draft tokens"),
    ("a chosen tree on a backend of chains", flags(CHOSEN, attention_backend="trtllm_mha"), "tree", FAIL,
     "default for this target"),
    ("a chosen tree on large pages", flags(CHOSEN, page_size=64, attention_backend="flashmla"), "tree", FAIL,
     "default for this target"),
    ("a chosen tree on pages of 1", flags(CHOSEN, page_size=1), "tree", PASS, "4 branches"),
    ("rejection sampling in a chosen tree", flags(CHOSEN, speculative_use_rejection_sampling=True),
     "rejection_sampling", FAIL, "default for this target"),
    ("unified memory of a chosen tree", flags(CHOSEN, enable_unified_memory=True), "exclusions", FAIL, "default"),
    ("linear replay of a chosen tree", engine(REPLAY, default_shape=DraftShape(topk=4)), "replay_ring", FAIL,
     "default"),
    ("tensors of fewer layers than the config has", target(DSPARK, numbered_layers=35), "layers", WARN,
     "counts 36 layers, its tensors have 35"),
    ("prediction layers among the tensors", target(MTP, numbered_layers=37), "layers", PASS, "36"),
    ("tensors that are not numbered", target(DSPARK, numbered_layers=None), "layers", UNKNOWN, "not known"),
    ("an EAGLE-3 drafter that only the arguments name", flags(
        replace(EAGLE3, drafter=DrafterFacts(bundled=True, unseen=True)), speculative_draft_model_path="/d/e3"
    ), "draft_path", UNKNOWN, "drafter.path is missing in the budget: /d/e3 was not read"),
    ("a drafter that only the running engine knows", engine(
        replace(EAGLE3, drafter=DrafterFacts(bundled=True, unseen=True)), running=True
    ), "draft_path", UNKNOWN, "the engine runs"),
    ("random weights of both models", flags(DSPARK, load_format="dummy"), "drafter_weights", FAIL, "dummy"),
    ("random weights of the target only", flags(
        DSPARK, load_format="dummy", speculative_draft_load_format="auto"
    ), "drafter_weights", PASS, "auto"),
]  # fmt: skip
