"""Widths and ownership: which features the two models hand each other, and whose embedding and head are used."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import BLOCK, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns


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


def _shared(facts: PairFacts) -> Outcome:
    drafter = facts.drafter
    if drafter.bundled:
        return passes("the drafter is part of the target's checkpoint and uses its embedding and head")
    if facts.algorithm in BLOCK:
        return _block_shares(facts)
    if not drafter.weights_known:
        return unknown("the drafter's tensors are not known", required=False)
    if facts.algorithm is DraftAlgorithm.EAGLE3:
        return _eagle3_shares(facts)
    if facts.algorithm is DraftAlgorithm.STANDALONE:
        lacking = [
            name
            for name, missing in (
                ("embedding", drafter.own_embedding is False),
                ("head", drafter.own_head is False and drafter.tied is not True),
            )
            if missing
        ]
        if lacking:
            return fails(f"the checkpoint has no {' and no '.join(lacking)}, and a standalone drafter shares nothing")
        return passes("its own embedding and head")
    return passes(f"the target's embedding and head are used{_stored(drafter.vocabulary_bytes, 'freed after loading')}")


def _block_shares(facts: PairFacts) -> Outcome:
    drafter = facts.drafter
    if drafter.sample_from_anchor is False and facts.algorithm is DraftAlgorithm.DSPARK and drafter.weights_known:
        if drafter.own_embedding is False:
            return fails(
                "sample_from_anchor is false and the checkpoint has no embedding: SGLang 0.5.23 embeds such a block "
                "with the drafter's own; take the complete weights"
            )
        return passes("its own embedding, and the target's head: sample_from_anchor is false")
    stays = _stored(drafter.vocabulary_bytes, "never loaded")
    return passes(f"a block drafter works on the target's embedding and head{stays}", value=drafter.vocabulary_bytes)


def _eagle3_shares(facts: PairFacts) -> Outcome:
    drafter, width = facts.drafter, facts.target.hidden
    reduced = drafter.draft_vocab is not None and drafter.draft_vocab != drafter.vocab
    narrower = drafter.hidden is not None and width is not None and drafter.hidden != width
    if drafter.tied and reduced:
        return fails(
            f"tie_word_embeddings is true beside draft_vocab_size {drafter.draft_vocab}: the head then has a row for "
            f"each of the {drafter.vocab} tokens, which d2t maps a second time; set tie_word_embeddings: false"
        )
    if drafter.draft_vocab is not None and drafter.own_head is False and not drafter.tied:
        return fails(
            f"draft_vocab_size is {drafter.draft_vocab} and the checkpoint has no lm_head: the engine leaves the head "
            "as allocated; take the complete weights, or leave draft_vocab_size out to use the target's head"
        )
    if drafter.draft_vocab is not None or drafter.tied:
        return passes("its own head, and the target's embedding" if not narrower else "its own embedding and head")
    if narrower and facts.engine.kind == "sglang":
        return warns(
            f"draft_vocab_size is missing: SGLang then puts the target's embedding and head, {width} wide, into a "
            f"drafter of {drafter.hidden}; write draft_vocab_size: {drafter.vocab}",
            value=drafter.hidden,
            limit=width,
        )
    dropped = ", in the place of its own lm_head" if drafter.own_head else ""
    return passes(f"draft_vocab_size is missing: SGLang uses the target's embedding and head{dropped}")


def _stored(size: int | None, fate: str) -> str:
    return "" if not size else f"; the {size} bytes of its own are {fate}"


def _layers(facts: PairFacts) -> Outcome:
    config, tensors = facts.target.layers, facts.target.numbered_layers
    if config is None or tensors is None:
        return unknown("the target's layers are not known", required=False)
    if tensors < config:
        return warns(
            f"the target's config.json counts {config} layers, its tensors have {tensors}: the engine would leave the "
            "others at random; restore num_hidden_layers or the weights",
            value=tensors,
            limit=config,
        )
    return passes(f"{config} layers", value=tensors, limit=config)


RULES = (
    Rule(
        what="layers",
        asks="Do the target's tensors have all layers of its config?",
        check=_layers,
        evidence="the target's `num_hidden_layers`; the numbers in the names of its tensors",
        required=False,
        alone=True,
        unit="layers",
        source="config.json and tensor names; SGLang 0.5.23 does not miss weights that are not there",
    ),
    Rule(
        what="hidden_size",
        asks="Do the hidden sizes fit, for this kind of head?",
        check=_hidden,
        evidence="both `hidden_size`; `target_hidden_size`; whether there is an embedding among the tensors",
        reads=("target.hidden", "drafter.hidden"),
        unit="features",
        source="SGLang 0.5.23 models/llama_eagle3.py (target_hidden_size), models/dflash.py (shared embedding)",
    ),
    Rule(
        what="shared_weights",
        asks="Is there an embedding and a head for the drafter, its own or the target's?",
        check=_shared,
        evidence="tensors of embedding and head; `draft_vocab_size`, `tie_word_embeddings`, `sample_from_anchor`",
        required=False,
        unit="bytes",
        source="SGLang 0.5.23 models/dspark.py, dflash.py (skipped names), llama_eagle3.py (load_lm_head_from_target)",
    ),
)
