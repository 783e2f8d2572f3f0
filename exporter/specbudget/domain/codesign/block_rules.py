"""The draft block: how many tokens the drafter was trained to propose, and the heads that propose them."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import BLOCK, Rule
from specbudget.domain.drafter import DraftAlgorithm, block_draft_tokens
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_DEFAULT_BLOCK = {DraftAlgorithm.DSPARK: 7, DraftAlgorithm.DFLASH: 16}
"""SGLang's block where neither checkpoint nor arguments say one."""

MARKOV_TYPES = ("vanilla", "gated", "rnn")
_MARKOV_KEYS = "dflash_config.markov_rank and markov_head_type"


def _block_flag(facts: PairFacts) -> int | None:
    flags = facts.engine.flags
    if facts.algorithm is DraftAlgorithm.DSPARK:
        return flags.speculative_dspark_block_size
    return flags.speculative_dflash_block_size


def _trained_tokens(algorithm: DraftAlgorithm, block: int) -> tuple[int, str]:
    """Draft tokens as the engine counts them, and how they follow from the block."""
    tokens = block_draft_tokens(algorithm, block) or block
    if algorithm is DraftAlgorithm.DSPARK:
        return tokens, f"block_size {block} + 1 anchor = {tokens}"
    return tokens, f"block_size {block}, the anchor included"


def _block(facts: PairFacts) -> Outcome:
    algorithm, block = facts.algorithm, facts.drafter.block_size
    if algorithm is None:
        return unknown("the algorithm is not known")
    given = facts.engine.num_draft_tokens
    flag = _block_flag(facts)
    if flag is not None and given is None:
        given = block_draft_tokens(algorithm, flag)
    if block is None:
        default = _DEFAULT_BLOCK[algorithm]
        if given is None:
            return warns(f"block_size is missing: SGLang takes {default}; write the block of training")
        return warns(
            f"block_size is missing, the engine runs {given} draft tokens: not comparable; write block_size",
            value=given,
        )
    trained, words = _trained_tokens(algorithm, block)
    if given is None:
        return passes(f"the engine takes it from the checkpoint: {words}", value=trained, limit=trained)
    if given == trained:
        return passes(f"num_draft_tokens {given} = {words}", value=given, limit=trained)
    fix = f"set --speculative-num-draft-tokens {trained}"
    refused = algorithm is DraftAlgorithm.DSPARK and flag is None and not facts.engine.running
    if refused:
        return fails(
            f"num_draft_tokens {given}, the checkpoint's {words}: SGLang refuses to start; {fix}",
            value=given,
            limit=trained,
        )
    return warns(
        f"num_draft_tokens {given}, the checkpoint's {words}: the drafter runs at a block it was not trained at; {fix}",
        value=given,
        limit=trained,
    )


def _draft_window(facts: PairFacts) -> Outcome:
    window, tokens = facts.engine.draft_window, facts.engine.num_draft_tokens
    if window is None:
        return passes("no --speculative-draft-window-size")
    if tokens is None and facts.algorithm is not None and facts.drafter.block_size is not None:
        tokens = block_draft_tokens(facts.algorithm, facts.drafter.block_size)
    if tokens is None:
        return unknown("the number of draft tokens is not known", required=False)
    if facts.algorithm is DraftAlgorithm.DFLASH and window < tokens:
        return fails(
            f"--speculative-draft-window-size {window} is smaller than the block of {tokens}: SGLang refuses to start",
            value=window,
            limit=tokens,
        )
    return passes(f"window {window} for {tokens} draft tokens", value=window, limit=tokens)


def _markov(facts: PairFacts) -> Outcome:
    rank, kind, shape = facts.drafter.markov_rank, facts.drafter.markov_type, facts.drafter.markov_shape
    if not rank:
        return fails(f"markov_rank is {'missing' if rank is None else 0}: DSpark needs its head; write {_MARKOV_KEYS}")
    if kind is not None and kind.lower() not in MARKOV_TYPES:
        return fails(f"markov_head_type {kind} is not known to SGLang; it knows {', '.join(MARKOV_TYPES)}", value=kind)
    if kind is None and not facts.drafter.bundled:
        return fails(f"markov_head_type is missing beside markov_rank {rank}: SGLang refuses it; write {_MARKOV_KEYS}")
    if shape is not None and rank not in shape:
        return fails(
            f"markov_rank is {rank}, the tensor markov_w1 is {' x '.join(map(str, shape))}; config and weights differ",
            value=rank,
        )
    if shape is None and facts.drafter.weights_known and not facts.drafter.bundled:
        return fails(f"markov_rank is {rank} and the checkpoint has no markov_w1 tensor; take the complete weights")
    return passes(f"{kind or 'bundled'} Markov head of rank {rank}", value=rank)


RULES = (
    Rule(
        what="block",
        asks="Does the engine draft as many tokens as the drafter was trained to?",
        check=_block,
        reads=("drafter.taps",),
        algorithms=BLOCK,
        unit="tokens",
        source="SGLang 0.5.23 arg_groups/speculative_hook.py; dspark_config.py: window = gamma + 1; DFlash: the block",
    ),
    Rule(
        what="draft_window",
        asks="Is the drafter's attention window as large as its block?",
        check=_draft_window,
        algorithms=BLOCK,
        unit="tokens",
        source="SGLang 0.5.23 arg_groups/speculative_hook.py (_handle_dflash)",
    ),
    Rule(
        what="markov_head",
        asks="Does a DSpark drafter have its Markov head?",
        check=_markov,
        reads=("drafter.taps",),
        algorithms=frozenset({DraftAlgorithm.DSPARK}),
        unit="rank",
        source="SGLang 0.5.23 speculative/dspark_components/dspark_config.py",
    ),
)
