"""Tokens: both models must mean the same ones by the same ids, and a reduced draft vocabulary must be mapped."""

from __future__ import annotations

from specbudget.domain.codesign.content import TokenComparison, TokenizerState
from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import BLOCK, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

_PADDING = 64
_LARGEST_PADDING = 512
_LARGEST_PADDING_OF_SAME = 4096
"""More unused rows than this are no padding even when both tokenizers are the same."""


def _padded(rows: int) -> int:
    return -(-rows // _PADDING) * _PADDING


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
    if facts.engine.kind == "vllm" and facts.algorithm is DraftAlgorithm.STANDALONE:
        return fails(
            f"vocab_size is {drafter} and the target's is {target}: vLLM refuses a draft model of another size; use "
            "one of the same size, or set use_heterogeneous_vocab",
            value=drafter,
            limit=target,
        )
    if facts.tokens is not None and facts.tokens.same:
        return _padding_of_same(facts.tokens, drafter, target)
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


def _padding_of_same(tokens: TokenComparison, drafter: int, target: int) -> Outcome:
    """The tokenizers are the same, so rows without a token are padding, and a token without a row is a fault."""
    rows = abs(target - drafter)
    used = tokens.target_ids
    if (used is not None and drafter < used) or (used is None and rows > _LARGEST_PADDING_OF_SAME):
        ids = f"ids up to {used - 1}" if used is not None else f"{rows} more or fewer"
        return fails(
            f"vocab_size is {drafter} and the target's is {target}, while the tokenizer uses {ids}: some tokens have "
            "no row in the drafter; use a drafter of this vocabulary",
            value=drafter,
            limit=target,
        )
    return warns(
        f"vocab_size is {drafter} and the target's is {target}: {rows} rows of padding, the tokenizers are the same; "
        "nothing to do, unless an engine compares the sizes",
        value=drafter,
        limit=target,
    )


def _tokenizer(facts: PairFacts) -> Outcome:
    tokens = facts.tokens
    if facts.drafter.bundled:
        return passes("the drafter is part of the target's checkpoint and shares its tokenizer")
    if tokens is None:
        return unknown("the tokenizers were not compared", required=False)
    match tokens.state:
        case TokenizerState.SAME_FILE:
            return passes("both tokenizers are the same file")
        case TokenizerState.NO_DRAFTER:
            return unknown("the drafter has no tokenizer to compare: engines take the target's", required=False)
        case TokenizerState.NO_TARGET:
            return unknown("the target has no tokenizer to compare", required=False)
        case TokenizerState.UNREADABLE:
            return unknown(f"the tokenizers differ as files and were not compared: {tokens.reason}", required=False)
        case TokenizerState.COMPARED:
            return _compared(tokens)


def _compared(tokens: TokenComparison) -> Outcome:
    if not tokens.shared:
        return unknown("the two tokenizers have no token id in common to compare", required=False)
    if tokens.first is None or not tokens.differing:
        return passes(f"{tokens.shared} ids mean the same tokens", value=0, limit=0)
    index, target, drafter = tokens.first
    found = f"{tokens.differing} of {tokens.shared} tokens differ, first: id {index} {target} vs {drafter}"
    if tokens.special == tokens.differing:
        return warns(
            f"{found}; all of them are added tokens of both sides: drafts around these are wrong; "
            "confirm that the drafter was trained with the target's names",
            value=tokens.differing,
            limit=0,
        )
    return fails(
        f"{found}: the drafter proposes other words than the target reads; use a drafter with the target's tokenizer",
        value=tokens.differing,
        limit=0,
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


def _map_content(facts: PairFacts) -> Outcome:
    found, vocab, rows = facts.drafter.vocabulary_map, facts.target.vocab, facts.drafter.vocabulary_map_rows
    if rows is None:
        return passes("there is no d2t tensor to check")
    if found is None or vocab is None:
        return unknown("the content of d2t was not read", required=False)
    if found.least < 0 or found.most >= vocab:
        outside = found.least if found.least < 0 else found.most
        return fails(
            f"d2t maps a draft id to token {outside}, outside the target's {vocab}; d2t holds offsets that are added "
            "to the draft id: take it from the training run",
            value=outside,
            limit=vocab - 1,
        )
    if found.distinct < found.rows:
        return fails(
            f"d2t maps {found.rows} draft ids to {found.distinct} tokens{_worst(found.worst)}: two ids stand for one "
            "token; take d2t from the training run",
            value=found.distinct,
            limit=found.rows,
        )
    if found.flagged is not None and (found.flagged != found.rows or not found.agrees):
        what = "others than d2t's" if found.flagged == found.rows else f"{found.rows} in d2t"
        return fails(
            f"t2d marks {found.flagged} tokens, {what}: the two tensors are of different maps; take both from one run",
            value=found.flagged,
            limit=found.rows,
        )
    if found.flags is not None and found.flags > _padded(vocab):
        return fails(f"t2d has {found.flags} entries for {vocab} tokens", value=found.flags, limit=vocab)
    if found.worst is not None:
        return warns(
            f"d2t is not in ascending order{_worst(found.worst)}; a map of training is: confirm that it belongs to "
            "this head",
            value=found.worst[0],
        )
    return passes(f"d2t maps {found.rows} draft ids to tokens {found.least} to {found.most}", value=found.rows)


def _worst(worst: tuple[int, int, int] | None) -> str:
    if worst is None:
        return ""
    index, before, token = worst
    return f" (id {index} is token {token}, id {index - 1} token {before})"


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
        what="vocabulary",
        asks="Do both models count the same tokens?",
        check=_vocabulary,
        evidence="both `vocab_size`; the comparison of the tokenizers",
        reads=("target.vocab",),
        unit="tokens",
        source="SGLang 0.5.23 compares sizes for a few algorithms; vLLM 0.32.0 config/speculative.py for draft models",
    ),
    Rule(
        what="tokenizer",
        asks="Do the same ids mean the same tokens?",
        check=_tokenizer,
        evidence="`tokenizer.json` or `vocab.json` of both; the digests of other formats",
        required=False,
        unit="tokens",
        source="tokenizer.json of both: model.vocab and added_tokens; no engine compares them",
    ),
    Rule(
        what="draft_vocabulary",
        asks="Is a reduced draft vocabulary mapped to the target's?",
        check=_draft_vocabulary,
        evidence="`draft_vocab_size`; shape of `d2t`",
        unit="tokens",
        source="SGLang 0.5.23 models/llama_eagle3.py: d2t becomes the hot-token map",
    ),
    Rule(
        what="vocabulary_map",
        asks="Does the map lead to tokens of the target, each once?",
        check=_map_content,
        evidence="content of `d2t` and `t2d`; the target's `vocab_size`",
        algorithms=frozenset({DraftAlgorithm.EAGLE3}),
        required=False,
        unit="tokens",
        source="SGLang 0.5.23 models/llama_eagle3.py: d2t + arange becomes the hot-token map, unchecked",
    ),
    Rule(
        what="mask_token",
        asks="Is the mask token one of the target's tokens?",
        check=_mask,
        evidence="`mask_token_id`; the target's `vocab_size`",
        reads=("target.vocab", "drafter.taps"),
        algorithms=BLOCK,
        unit="token",
        source="SGLang 0.5.23 dspark_config.py and dflash_worker_v2.py: ValueError outside the vocabulary",
    ),
)
