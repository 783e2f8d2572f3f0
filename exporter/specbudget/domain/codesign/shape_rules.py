"""Widths and vocabularies: what the two models hand each other must have the same shape."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import BLOCK, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_PADDING = 64
_LARGEST_PADDING = 512


def _padded(rows: int) -> int:
    return -(-rows // _PADDING) * _PADDING


def _hidden(facts: PairFacts) -> Outcome:
    drafter, target = facts.drafter.hidden, facts.target.hidden
    if drafter is None or target is None:
        return unknown("a hidden size is not known")
    if drafter == target:
        return passes(f"both are {target} wide", value=drafter, limit=target)
    match facts.algorithm:
        case DraftAlgorithm.STANDALONE:
            return passes(f"a standalone drafter of width {drafter} shares nothing with the target's {target}")
        case DraftAlgorithm.EAGLE3:
            return _narrower_head(facts, drafter, target)
        case _:
            return fails(
                f"hidden_size is {drafter} and the target's is {target}: the drafter works on the target's embedding "
                "and head, which have the target's width; use a drafter trained on this target",
                value=drafter,
                limit=target,
            )


def _narrower_head(facts: PairFacts, drafter: int, target: int) -> Outcome:
    """An EAGLE-3 head may have a width of its own if it brings its own embedding and says what it reads."""
    stated = facts.drafter.target_hidden
    if stated is not None and stated != target:
        return fails(
            f"target_hidden_size is {stated} and the target is {target} wide: the head reads another target's features",
            value=stated,
            limit=target,
        )
    if facts.drafter.own_embedding is False:
        return fails(
            f"hidden_size is {drafter} and the checkpoint has no embedding: it would take the target's, which is "
            f"{target} wide; use a head with an embedding of its own",
            value=drafter,
            limit=target,
        )
    if facts.drafter.own_embedding is None:
        return unknown(
            f"hidden_size is {drafter}, the target's {target}: legal only with an embedding of its own, and the "
            "drafter's tensors are not known"
        )
    if stated is None:
        return fails(
            f"hidden_size is {drafter} and the target's is {target}: write target_hidden_size: {target}, or the "
            f"engine builds the fused projection for features of {drafter}",
            value=drafter,
            limit=target,
        )
    head = "" if facts.drafter.own_head else f"; it needs a head of its own too, since the target's is {target} wide"
    return passes(f"{drafter} wide with its own embedding, reading features of {target}{head}", value=drafter)


def _vocabulary(facts: PairFacts) -> Outcome:
    drafter, target = facts.drafter.vocab, facts.target.vocab
    if target is None:
        return unknown("the target's vocabulary is not known")
    if drafter is None:
        if facts.algorithm in BLOCK:
            return passes("vocab_size is not recorded: a block drafter takes the target's", limit=target)
        return unknown("vocab_size in the drafter's config.json is not known")
    if drafter == target:
        return passes(f"both have {target} tokens", value=drafter, limit=target)
    difference = abs(target - drafter)
    if difference < _LARGEST_PADDING and max(drafter, target) % _PADDING == 0:
        return warns(
            f"vocab_size is {drafter} and the target's is {target}: {difference} rows of padding if the tokenizers "
            "are the same; compare tokenizer.json of both",
            value=drafter,
            limit=target,
        )
    return fails(
        f"vocab_size is {drafter} and the target's is {target}: token ids mean different tokens; "
        "use a drafter with the target's tokenizer",
        value=drafter,
        limit=target,
    )


def _draft_vocabulary(facts: PairFacts) -> Outcome:
    drafter = facts.drafter
    size, whole = drafter.draft_vocab, drafter.vocab or facts.target.vocab
    if size is None or size == whole:
        return passes("drafts come from the whole vocabulary")
    if whole is not None and size > whole:
        return fails(f"draft_vocab_size is {size}, more than the {whole} tokens there are", value=size, limit=whole)
    if facts.algorithm in BLOCK:
        return fails(
            f"draft_vocab_size is {size}: block drafters use the target's head and have no map; use the full {whole}",
            value=size,
            limit=whole,
        )
    rows = drafter.vocabulary_map_rows
    if rows is None:
        if drafter.weights_known:
            return fails(
                f"draft_vocab_size is {size} of {whole} tokens and the checkpoint has no d2t tensor that maps them; "
                "take d2t from the training run",
                value=size,
            )
        return unknown(f"draft_vocab_size is {size}: needs a d2t map, and the tensors are not known", required=False)
    if rows != size:
        return fails(f"d2t maps {rows} tokens, draft_vocab_size is {size}; they differ", value=rows, limit=size)
    return passes(f"{size} of {whole} tokens, mapped by d2t", value=rows, limit=size)


def _mask(facts: PairFacts) -> Outcome:
    token, vocab = facts.drafter.mask_token_id, facts.target.vocab
    if vocab is None:
        return unknown("the target's vocabulary is not known")
    if token is None:
        if facts.algorithm is DraftAlgorithm.DSPARK:
            return fails("mask_token_id is missing: SGLang refuses a DSpark drafter without it; write the id")
        return warns(
            "mask_token_id is missing: the engine takes the tokenizer's mask token, or adds one; "
            "write dflash_config.mask_token_id"
        )
    if token >= _padded(vocab) or (token >= vocab and facts.algorithm is DraftAlgorithm.DFLASH):
        return fails(
            f"mask_token_id {token} lies outside the target's {vocab} tokens; use a drafter of this vocabulary",
            value=token,
            limit=vocab - 1,
        )
    if token >= vocab:
        return warns(
            f"mask_token_id {token} lies among the padding rows behind the target's {vocab} tokens, "
            "which were never trained; confirm the id",
            value=token,
            limit=vocab - 1,
        )
    return passes(f"mask_token_id {token} is one of {vocab} tokens", value=token, limit=vocab - 1)


RULES = (
    Rule(
        what="hidden_size",
        asks="Do the hidden sizes fit, for this kind of head?",
        check=_hidden,
        reads=("target.hidden", "drafter.hidden"),
        unit="features",
        source="SGLang 0.5.23 models/llama_eagle3.py (target_hidden_size), models/dflash.py (shared embedding)",
    ),
    Rule(
        what="vocabulary",
        asks="Do both models count the same tokens?",
        check=_vocabulary,
        reads=("target.vocab",),
        unit="tokens",
        source="SGLang 0.5.23 checks vocabularies for some algorithms only",
    ),
    Rule(
        what="draft_vocabulary",
        asks="Is a reduced draft vocabulary mapped to the target's?",
        check=_draft_vocabulary,
        unit="tokens",
        source="SGLang 0.5.23 models/llama_eagle3.py: d2t becomes the hot-token map",
    ),
    Rule(
        what="mask_token",
        asks="Is the mask token one of the target's tokens?",
        check=_mask,
        reads=("target.vocab", "drafter.taps"),
        algorithms=BLOCK,
        unit="token",
        source="SGLang 0.5.23 dspark_config.py and dflash_worker_v2.py: ValueError outside the vocabulary",
    ),
)
