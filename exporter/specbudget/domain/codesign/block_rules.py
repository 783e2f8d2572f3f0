"""The draft block: how many tokens the drafter was trained to propose, and the heads that propose them."""

from __future__ import annotations

from specbudget.domain.codesign.facts import FIRST_READ, PairFacts
from specbudget.domain.codesign.rule import BLOCK, EAGLE_WORDS, SGLANG, Rule
from specbudget.domain.drafter import DraftAlgorithm, block_draft_tokens
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_DEFAULT_DSPARK, _DEFAULT_DFLASH = 7, 16
"""SGLang's block where neither checkpoint nor arguments say one."""

MARKOV_TYPES = ("vanilla", "gated", "rnn")
_MARKOV_KEYS = "dflash_config.markov_rank and markov_head_type"


def _block_flag(facts: PairFacts) -> int | None:
    flags = facts.engine.flags
    if facts.algorithm is DraftAlgorithm.DSPARK:
        return flags.speculative_dspark_block_size
    return flags.speculative_dflash_block_size


def trained_tokens(facts: PairFacts) -> int | None:
    """Draft tokens as SGLang counts them, the anchor included, that the drafter was trained to; None when unknown.

    A DFlash block includes its anchor. A DSpark block does only with `sample_from_anchor: false`.
    """
    algorithm, block = facts.algorithm, facts.drafter.block_size
    if algorithm is None or block is None:
        return None
    if algorithm is DraftAlgorithm.DSPARK and facts.drafter.sample_from_anchor is False:
        return block
    return block_draft_tokens(algorithm, block)


def _words(facts: PairFacts, trained: int) -> str:
    """How the trained draft tokens follow from the block."""
    block = facts.drafter.block_size
    if trained == block:
        return f"block_size {block}, the anchor included"
    return f"block_size {block} + 1 anchor = {trained}"


def _block(facts: PairFacts) -> Outcome:
    algorithm, block = facts.algorithm, facts.drafter.block_size
    if algorithm is None:
        return unknown("the algorithm is not known")
    given = facts.engine.num_draft_tokens
    flag = _block_flag(facts)
    if flag is not None and given is None:
        given = block_draft_tokens(algorithm, flag)
    elif flag is not None and given != block_draft_tokens(algorithm, flag) and not facts.engine.running:
        return fails(
            f"--speculative-num-draft-tokens {given} and --speculative-{algorithm}-block-size {flag} contradict each "
            "other: SGLang refuses to start; keep the latter",
            value=given,
            limit=block_draft_tokens(algorithm, flag),
        )
    trained = trained_tokens(facts)
    if block is None or trained is None:
        return _no_block(facts, given)
    if facts.engine.kind == "vllm":
        return _vllm_block(facts, given, trained)
    words, taken = _words(facts, trained), block_draft_tokens(algorithm, block)
    if given is None and taken != trained:
        return warns(
            f"SGLang takes {taken} draft tokens from block_size {block}, the drafter was trained to {words}; "
            f"set --speculative-dspark-block-size {trained - 1}",
            value=taken,
            limit=trained,
        )
    if given is None:
        return passes(f"the engine takes it from the checkpoint: {words}", value=trained, limit=trained)
    refused = algorithm is DraftAlgorithm.DSPARK and flag is None and not facts.engine.running and given != taken
    if refused:
        return fails(
            f"num_draft_tokens {given}, the checkpoint's {block} + 1 anchor = {taken}: SGLang refuses to start; "
            f"set {_fix(facts, trained)}",
            value=given,
            limit=taken,
        )
    if given == trained:
        return passes(f"num_draft_tokens {given} = {words}", value=given, limit=trained)
    return warns(
        f"num_draft_tokens {given}, the checkpoint's {words}: the drafter runs at a block it was not trained at; "
        f"set {_fix(facts, trained)}",
        value=given,
        limit=trained,
    )


def _fix(facts: PairFacts, trained: int) -> str:
    block = facts.drafter.block_size
    if facts.algorithm is DraftAlgorithm.DSPARK and block_draft_tokens(facts.algorithm, block) != trained:
        return f"--speculative-dspark-block-size {trained - 1}"
    return f"--speculative-num-draft-tokens {trained}"


def _no_block(facts: PairFacts, given: int | None) -> Outcome:
    if given is None:
        default = _DEFAULT_DSPARK if facts.algorithm is DraftAlgorithm.DSPARK else _DEFAULT_DFLASH
        return warns(f"block_size is missing: SGLang takes {default}; write the block of training")
    return warns(
        f"block_size is missing, the engine runs {given} draft tokens: not comparable; write block_size",
        value=given,
    )


def _vllm_block(facts: PairFacts, given: int | None, trained: int) -> Outcome:
    """vLLM counts drafts without the target's own token, and takes what it is told."""
    drafts, words = trained - 1, f"block_size {facts.drafter.block_size}"
    if given is None:
        return unknown(f"needs num_speculative_tokens: {words} means {drafts} drafts", required=False)
    if given == trained:
        return passes(f"num_speculative_tokens {drafts} for {words}", value=drafts, limit=drafts)
    return warns(
        f"num_speculative_tokens {given - 1}, {words} means {drafts} drafts: the drafter runs at a block it was not "
        f"trained at; set num_speculative_tokens: {drafts}",
        value=given - 1,
        limit=drafts,
    )


def _anchor(facts: PairFacts) -> Outcome:
    stated, block = facts.drafter.sample_from_anchor, facts.drafter.block_size
    if block is None:
        return passes("no block_size, so no slot to count")
    trained = trained_tokens(facts)
    drafts = "" if trained is None else f" of which {trained - 1} are drafts"
    if facts.algorithm is DraftAlgorithm.DFLASH:
        if stated:
            return warns(
                f"sample_from_anchor is true in a DFlash drafter of block_size {block}: engines count the anchor as "
                "part of the block and drop the first draft; confirm the algorithm, or remove the key"
            )
        return passes(f"a block of {block}{drafts}")
    if stated is not False:
        return passes(f"a block of {block} drafts beside the anchor", value=block)
    if facts.engine.kind in (None, "sglang") and facts.engine.release == FIRST_READ:
        return fails(
            "sample_from_anchor is false and SGLang 0.5.18 does not know the key: it takes the anchor's slot for the "
            "first draft, so that every draft stands one place too early; upgrade to 0.5.23"
        )
    return passes(f"sample_from_anchor is false: a block of {block}{drafts}", value=block)


def _draft_window(facts: PairFacts) -> Outcome:
    window, tokens = facts.engine.draft_window, facts.engine.num_draft_tokens
    refused = None if facts.engine.running else _refused_window(facts)
    if refused is not None:
        return refused
    if window is None:
        return passes("no --speculative-draft-window-size")
    if not _honours_window(facts):
        return warns(
            f"--speculative-draft-window-size has no effect with {facts.algorithm} on this release; drop it, or the "
            "drafter's KV is planned too small",
            value=window,
        )
    if facts.algorithm is not DraftAlgorithm.DFLASH:
        return passes(f"the drafter attends to the last {window} tokens", value=window)
    if tokens is None and facts.drafter.block_size is not None:
        tokens = facts.drafter.block_size
    if tokens is None:
        return unknown("the number of draft tokens is not known", required=False)
    if window < tokens and not facts.engine.running:
        return fails(
            f"--speculative-draft-window-size {window} is smaller than the block of {tokens}: SGLang refuses to start",
            value=window,
            limit=tokens,
        )
    return passes(f"window {window} for {tokens} draft tokens", value=window, limit=tokens)


def _refused_window(facts: PairFacts) -> Outcome | None:
    """What SGLang refuses of window and sink whatever the algorithm; None when it does not."""
    window, sink = facts.engine.draft_window, facts.engine.flags.speculative_draft_sink_size
    if sink is not None and facts.engine.release == FIRST_READ:
        return fails("SGLang 0.5.18 has no --speculative-draft-sink-size; drop it or upgrade to 0.5.23", value=sink)
    if sink is not None and window is None:
        return fails("--speculative-draft-sink-size needs --speculative-draft-window-size: SGLang refuses to start")
    if window == 0:
        return fails("--speculative-draft-window-size must be positive: SGLang refuses to start", value=0)
    return None


def _honours_window(facts: PairFacts) -> bool:
    if facts.algorithm in (DraftAlgorithm.DFLASH, DraftAlgorithm.EAGLE3):
        return True
    return facts.algorithm in EAGLE_WORDS and facts.engine.release != FIRST_READ


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
        evidence="`block_size`, `sample_from_anchor`; draft tokens and block by argument",
        reads=("drafter.taps",),
        algorithms=BLOCK,
        unit="tokens",
        source="SGLang 0.5.23 arg_groups/speculative_hook.py; dspark_config.py: window = gamma + 1; DFlash: the block",
    ),
    Rule(
        what="anchor",
        asks="Do checkpoint and engine agree whether the first slot of the block is a draft?",
        check=_anchor,
        evidence="`sample_from_anchor`, `block_size`; the engine's release",
        algorithms=BLOCK,
        unit="tokens",
        source="SGLang 0.5.23 dspark_draft.py (query_token_num), absent from 0.5.18; the speculators format",
    ),
    Rule(
        what="draft_window",
        asks="Does the drafter's attention window take effect, and hold its block?",
        check=_draft_window,
        evidence="`--speculative-draft-window-size`, `--speculative-draft-sink-size`; the block",
        engines=SGLANG,
        unit="tokens",
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py (handle_speculative_decoding, _handle_dflash)",
    ),
    Rule(
        what="markov_head",
        asks="Does a DSpark drafter have its Markov head?",
        check=_markov,
        evidence="`markov_rank`, `markov_head_type`; shape of `markov_w1`",
        reads=("drafter.taps",),
        algorithms=frozenset({DraftAlgorithm.DSPARK}),
        unit="rank",
        source="SGLang 0.5.23 speculative/dspark_components/dspark_config.py",
    ),
)
