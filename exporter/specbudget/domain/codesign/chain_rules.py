"""The shape of drafting: steps, branches and draft tokens, and the ways of sampling that ask for a certain shape."""

from __future__ import annotations

from specbudget.domain.codesign.adaptive_steps import ADAPTS, candidate_steps, hindrances
from specbudget.domain.codesign.facts import FIRST_READ, PairFacts
from specbudget.domain.codesign.rule import CHAIN, SGLANG, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_PAGED_TREES = ("flashinfer", "fa3", "triton")
_ALL_THREE = "--speculative-num-steps, --speculative-eagle-topk and --speculative-num-draft-tokens"


def _steps(facts: PairFacts) -> Outcome:
    engine = facts.engine
    steps, topk, tokens = engine.num_steps, engine.topk, engine.num_draft_tokens
    if facts.algorithm not in CHAIN:
        given = [f"{name} {value}" for name, value in (("num_steps", steps), ("topk", topk)) if value not in (None, 1)]
        if given:
            return warns(
                f"{' and '.join(given)} given for a block drafter: SGLang sets both to 1; drop them, the block decides"
            )
        return passes("a block drafter proposes its block in one step")
    if engine.running:
        return passes(f"{_told(steps)} steps, {_told(topk)} branches, {_told(tokens)} draft tokens")
    if steps is None:
        if topk is None and tokens is None:
            return _chosen(facts)
        if engine.flags.speculative_adaptive:
            return passes("the adaptive engine chooses its steps")
        return fails(f"branches or draft tokens without steps: SGLang refuses to start; give {_ALL_THREE}, or none")
    if topk is None and not engine.flags.speculative_adaptive:
        return fails(f"--speculative-num-steps {steps} without branches: SGLang stops at start; give {_ALL_THREE}")
    if topk in (None, 1):
        if tokens is not None and tokens != steps + 1:
            return warns(
                f"{tokens} draft tokens for a chain of {steps} steps: SGLang runs {steps + 1}; "
                f"set --speculative-num-draft-tokens {steps + 1}",
                value=tokens,
                limit=steps + 1,
            )
        return passes(f"a chain of {steps} steps: {steps + 1} draft tokens", value=steps + 1, limit=steps + 1)
    if tokens is None:
        return fails(f"a tree of {topk} branches without draft tokens: give {_ALL_THREE}")
    largest = 1 + topk + max(0, steps - 1) * topk * topk
    if tokens > largest:
        return fails(
            f"{tokens} draft tokens from a tree that has {largest}: 1 + {topk} + ({steps} - 1) x {topk} x {topk}; "
            f"set --speculative-num-draft-tokens to at most {largest}",
            value=tokens,
            limit=largest,
        )
    return passes(f"{tokens} of the {largest} nodes of a tree", value=tokens, limit=largest)


def _chosen(facts: PairFacts) -> Outcome:
    """What the engine chooses where nothing is given."""
    shape = facts.engine.default_shape
    if shape is None:
        return passes("the engine chooses steps, branches and draft tokens")
    return passes(
        f"the engine chooses by default {shape.steps} steps, {shape.topk} branches, {shape.draft_tokens} draft tokens",
        value=shape.draft_tokens,
    )


def _told(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _tree(facts: PairFacts) -> Outcome:
    engine, flags = facts.engine, facts.engine.flags
    topk = engine.branches
    if topk in (None, 1):
        return passes("a chain of drafts, no tree")
    if engine.running:
        return passes(f"the engine started with {topk} branches")
    backends = {flags.attention_backend, flags.prefill_attention_backend, flags.decode_attention_backend}
    if "trtllm_mha" in backends:
        return fails(
            f"{engine.branches_words} and the backend trtllm_mha verifies chains only: SGLang refuses to start; "
            f"give {_ALL_THREE} for a chain, or choose another attention backend",
            value=topk,
            limit=1,
        )
    page, backend = flags.page_size, flags.attention_backend
    if page is not None and page > 1 and backend is not None and backend not in _PAGED_TREES:
        return fails(
            f"{engine.branches_words}, with --page-size {page} on {backend}: SGLang refuses to start; set "
            f"--page-size 1, or a backend of {', '.join(_PAGED_TREES)}",
            value=topk,
            limit=1,
        )
    if page is None or (page > 1 and backend is None):
        return unknown(
            f"{topk} branches need pages of 1 or a backend of {', '.join(_PAGED_TREES)}: give --page-size and "
            "--attention-backend",
            required=False,
        )
    return passes(f"{topk} branches, pages of {page}", value=topk)


def _adaptive(facts: PairFacts) -> Outcome:
    engine, flags = facts.engine, facts.engine.flags
    asked = flags.speculative_adaptive if engine.adaptive is None else engine.adaptive
    if asked is None:
        return unknown("the engine's arguments are not known: set engine.args", required=False)
    if not asked:
        return passes("the number of steps is fixed")
    reasons = hindrances(facts.algorithm, topk=engine.topk, attention_dp=engine.attention_dp, flags=flags)
    if reasons:
        return warns(
            f"--speculative-adaptive is turned off by SGLang ({', '.join(reasons)}): the steps are fixed; drop it, "
            "or plan with fixed steps"
        )
    allowed = candidate_steps(first=engine.release == FIRST_READ)
    steps = flags.speculative_num_steps
    if steps is not None and flags.speculative_adaptive_config is None and steps not in allowed and not engine.running:
        return fails(
            f"--speculative-num-steps {steps} is none of the adaptive steps {', '.join(map(str, allowed))}: SGLang "
            "refuses to start; pass one of them, or a --speculative-adaptive-config",
            value=steps,
        )
    return passes("the number of steps adapts to acceptance and batch")


def _rejection(facts: PairFacts) -> Outcome:
    engine, flags = facts.engine, facts.engine.flags
    if engine.running:
        return passes("the engine started with its way of sampling")
    by_block = bool(flags.speculative_use_block_verification)
    if by_block and engine.release == FIRST_READ:
        return fails("SGLang 0.5.18 has no --speculative-use-block-verification; drop it or upgrade to 0.5.23")
    if by_block and facts.algorithm is DraftAlgorithm.STANDALONE:
        return fails("--speculative-use-block-verification is refused with STANDALONE; drop it")
    asked = flags.speculative_use_rejection_sampling or (by_block and facts.algorithm in ADAPTS)
    if not asked:
        return passes("no rejection sampling")
    if facts.algorithm not in CHAIN:
        return warns("--speculative-use-rejection-sampling has no effect with a block drafter; drop it")
    if facts.algorithm is DraftAlgorithm.STANDALONE:
        return fails("--speculative-use-rejection-sampling is refused with STANDALONE; drop it")
    if engine.branches not in (None, 1):
        return fails(
            f"--speculative-use-rejection-sampling needs a chain, {engine.branches_words}; give {_ALL_THREE} for one",
            value=engine.branches,
            limit=1,
        )
    thresholds = (flags.speculative_accept_threshold_single, flags.speculative_accept_threshold_acc)
    if any(value not in (None, 1.0) for value in thresholds):
        return fails("rejection sampling ignores the accept thresholds, and SGLang refuses both together; drop them")
    if flags.enable_deterministic_inference and engine.release == FIRST_READ:
        return fails("SGLang 0.5.18 refuses rejection sampling with --enable-deterministic-inference")
    size, whole = facts.drafter.draft_vocab, facts.target.vocab
    if size is not None and whole is not None and size != whole and facts.drafter.vocabulary_map_rows is not None:
        return fails(
            f"rejection sampling needs drafts from the whole vocabulary of {whole}, this head drafts from {size}: "
            "SGLang refuses to start; drop --speculative-use-rejection-sampling",
            value=size,
            limit=whole,
        )
    return passes("rejection sampling over a chain from the whole vocabulary")


RULES = (
    Rule(
        what="steps",
        asks="Do steps, branches and draft tokens go together?",
        check=_steps,
        evidence="`--speculative-num-steps`, `-eagle-topk`, `-num-draft-tokens`, `-adaptive`",
        engines=SGLANG,
        unit="tokens",
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py (_handle_eagle_family), eagle_utils.py (topk)",
    ),
    Rule(
        what="tree",
        asks="Can the attention backend verify a tree of drafts?",
        check=_tree,
        evidence="`--speculative-eagle-topk`, `--page-size`, the attention backends",
        algorithms=CHAIN,
        engines=SGLANG,
        required=False,
        unit="branches",
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py (_PAGE_TREE_SPEC_BACKENDS)",
    ),
    Rule(
        what="adaptive",
        asks="Does adaptive speculation stay on?",
        check=_adaptive,
        evidence="`--speculative-adaptive`, its steps, branches, data-parallel attention, overlap of batches",
        engines=SGLANG,
        required=False,
        source="SGLang 0.5.18 and 0.5.23 speculative/adaptive_spec_params.py (adaptive_unsupported_reason)",
    ),
    Rule(
        what="rejection_sampling",
        asks="Can this drafter be verified by rejection sampling, if asked?",
        check=_rejection,
        evidence="`--speculative-use-rejection-sampling`, `-use-block-verification`, thresholds; `draft_vocab_size`",
        engines=SGLANG,
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py, speculative/eagle_worker_v2.py",
    ),
)
