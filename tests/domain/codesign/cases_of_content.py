"""Pairs whose weights, tokenizers and KV break a rule, or rightly do not."""

from __future__ import annotations

from dataclasses import replace

from domain.codesign.pairs_to_judge import DFLASH, DSPARK, EAGLE3, VLLM, drafter, engine, flags, target, tokens
from specbudget.domain.codesign import PairFacts, TokenizerState
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN

STANDALONE = drafter(
    engine(EAGLE3, algorithm=DraftAlgorithm.STANDALONE), stated_algorithm=None, draft_vocab=None, taps=None
)
STANDALONE = replace(STANDALONE, algorithm=DraftAlgorithm.STANDALONE)
NO_ANCHOR = drafter(
    flags(engine(DSPARK, num_draft_tokens=None), speculative_dspark_block_size=7),
    block_size=8,
    sample_from_anchor=False,
)
"""A DSpark drafter whose block of 8 includes its anchor, run at the 7 drafts it was trained to."""

FP8 = engine(EAGLE3, kv_dtype="fp8_e4m3")


def mapped(**changes: object) -> PairFacts:
    """The EAGLE-3 pair with another draft vocabulary map."""
    assert EAGLE3.drafter.vocabulary_map is not None
    return drafter(EAGLE3, vocabulary_map=replace(EAGLE3.drafter.vocabulary_map, **changes))  # type: ignore[arg-type]


CONTENT_CASES: list[tuple[str, PairFacts, str, CheckResult, str]] = [
    ("tokens that mean the same", tokens(DSPARK, shared=3), "tokenizer", PASS, "3 ids"),
    ("ids that mean other tokens", tokens(DSPARK, shared=3, differing=2, first=(0, "'a'", "'b'")), "tokenizer", FAIL,
     "2 of 3 tokens differ, first: id 0 'a' vs 'b'"),
    ("added tokens under other names", tokens(DSPARK, shared=9, differing=1, special=1, first=(8, "'<x>'", "'<y>'")),
     "tokenizer", WARN, "added tokens"),
    ("no id in common", tokens(DSPARK), "tokenizer", UNKNOWN, "in common"),
    ("a drafter without a tokenizer", tokens(DSPARK, state=TokenizerState.NO_DRAFTER), "tokenizer", UNKNOWN, "engines"),
    ("a target without a tokenizer", tokens(DSPARK, state=TokenizerState.NO_TARGET), "tokenizer", UNKNOWN, "target"),
    ("a tokenizer that cannot be read", tokens(DSPARK, state=TokenizerState.UNREADABLE, reason="too large"),
     "tokenizer", UNKNOWN, "too large"),
    ("tokenizers that nobody compared", replace(DSPARK, tokens=None), "tokenizer", UNKNOWN, "not compared"),
    ("a drafter within its target", drafter(DSPARK, bundled=True), "tokenizer", PASS, "shares"),
    ("padding that the tokenizers explain", tokens(drafter(DSPARK, vocab=151700), shared=151643, target_ids=151670),
     "vocabulary", WARN, "236 rows of padding, the tokenizers are the same"),
    ("a token without a row", tokens(drafter(DSPARK, vocab=151600), shared=151600, target_ids=151670),
     "vocabulary", FAIL, "ids up to 151669"),
    ("half the rows under one tokenizer file", drafter(DSPARK, vocab=75000), "vocabulary", FAIL, "no row"),
    ("padding under tokenizers that nobody compared", replace(drafter(DSPARK, vocab=151669), tokens=None),
     "vocabulary", WARN, "if the tokenizers are the same"),
    ("a vLLM draft model of another size", engine(drafter(STANDALONE, vocab=151669), kind="vllm"), "vocabulary", FAIL,
     "use_heterogeneous_vocab"),
    ("a map beyond the target", mapped(most=151936), "vocabulary_map", FAIL, "token 151936"),
    ("a map below the first token", mapped(least=-4), "vocabulary_map", FAIL, "token -4"),
    ("two draft ids for one token", mapped(distinct=31999, worst=(7, 90, 90)), "vocabulary_map", FAIL,
     "id 7 is token 90, id 6 token 90"),
    ("a map out of order", mapped(worst=(7, 90, 80)), "vocabulary_map", WARN, "ascending"),
    ("flags of another number", mapped(flagged=31000), "vocabulary_map", FAIL, "t2d marks 31000"),
    ("flags of other tokens", mapped(agrees=False), "vocabulary_map", FAIL, "others than d2t's"),
    ("flags for more tokens than there are", mapped(flags=200000), "vocabulary_map", FAIL, "200000"),
    ("a map without flags", mapped(flags=None, flagged=None, agrees=None), "vocabulary_map", PASS, "32000"),
    ("a map that was not read", drafter(EAGLE3, vocabulary_map=None), "vocabulary_map", UNKNOWN, "not read"),
    ("no map at all", drafter(EAGLE3, vocabulary_map_rows=None), "vocabulary_map", PASS, "no d2t"),
    ("more features than listed layers", drafter(EAGLE3, tap_count=4), "taps_count", FAIL, "lists 3"),
    ("as many features as listed layers", drafter(EAGLE3, tap_count=3), "taps_count", PASS, "as many"),
    ("what a block drafter leaves on disk", DSPARK, "shared_weights", PASS, f"{2 * 151936 * 4096 * 2} bytes"),
    ("a block that embeds by itself", drafter(NO_ANCHOR, own_embedding=False), "shared_weights", FAIL, "no embedding"),
    ("a block that embeds by itself and can", NO_ANCHOR, "shared_weights", PASS, "its own embedding"),
    ("a reduced head that is not stored", drafter(EAGLE3, own_head=False), "shared_weights", FAIL, "no lm_head"),
    ("a reduced head that is tied", drafter(EAGLE3, tied=True), "shared_weights", FAIL, "tie_word_embeddings"),
    ("a head for all tokens that is not stored", drafter(EAGLE3, own_head=False, draft_vocab=None),
     "shared_weights", PASS, "the target's embedding and head"),
    ("a head of its own that SGLang drops", drafter(EAGLE3, draft_vocab=None), "shared_weights", PASS, "in the place"),
    ("a narrower head without a draft vocabulary", drafter(EAGLE3, hidden=1024, draft_vocab=None),
     "shared_weights", WARN, "4096 wide"),
    ("the same on vLLM", drafter(VLLM, hidden=1024, draft_vocab=None), "shared_weights", PASS, ""),
    ("a head whose tensors nobody has seen", drafter(EAGLE3, weights_known=False), "shared_weights", UNKNOWN, ""),
    ("a standalone drafter", STANDALONE, "shared_weights", PASS, "its own"),
    ("a standalone drafter without a head", drafter(STANDALONE, own_head=False), "shared_weights", FAIL, "no head"),
    ("an EAGLE head that uses the target's", drafter(
        replace(EAGLE3, algorithm=DraftAlgorithm.EAGLE), vocabulary_bytes=64
    ), "shared_weights", PASS, "64 bytes"),
    ("a drafter within its target shares all", drafter(DSPARK, bundled=True), "shared_weights", PASS, "part of"),
    ("a block that includes its anchor", NO_ANCHOR, "anchor", PASS, "of which 7 are drafts"),
    ("the same on the older release", engine(NO_ANCHOR, version="0.5.18"), "anchor", FAIL, "does not know the key"),
    ("a DFlash block that samples from its anchor", drafter(DFLASH, sample_from_anchor=True), "anchor", WARN, "DFlash"),
    ("a block of unknown size", drafter(DSPARK, block_size=None), "anchor", PASS, "no slot"),
    ("a block that includes its anchor, run at its drafts", NO_ANCHOR, "block", PASS, "the anchor included"),
    ("the same left to the engine", drafter(
        engine(DSPARK, num_draft_tokens=None), block_size=8, sample_from_anchor=False
    ), "block", WARN, "--speculative-dspark-block-size 7"),
    ("the same told as draft tokens", engine(
        drafter(DSPARK, block_size=8, sample_from_anchor=False), num_draft_tokens=8
    ), "block", FAIL, "--speculative-dspark-block-size 7"),
    ("draft tokens and block by flag that contradict", flags(DSPARK, speculative_dspark_block_size=5), "block", FAIL,
     "contradict"),
    ("vLLM at the drafts of a DFlash block", engine(DFLASH, kind="vllm"), "block", PASS, "num_speculative_tokens 15"),
    ("vLLM at one draft more", engine(DFLASH, kind="vllm", num_draft_tokens=17), "block", WARN, "16 means 15 drafts"),
    ("vLLM at the drafts of a DSpark block", engine(DSPARK, kind="vllm"), "block", PASS, "num_speculative_tokens 7"),
    ("vLLM that was told nothing", engine(DSPARK, kind="vllm", num_draft_tokens=None), "block", UNKNOWN, "7 drafts"),
    ("fp8 without scales", FP8, "kv_scales", WARN, "fp8 KV, no KV scales found"),
    ("fp8 with scales", target(FP8, kv_scales=True), "kv_scales", PASS, "k_scale"),
    ("fp8 with scales in a file", flags(FP8, quantization_param_path="/scales.json"), "kv_scales", PASS, "param-path"),
    ("fp8 that the checkpoint asks for", target(EAGLE3, kv_quantization="FP8"), "kv_scales", WARN, "asks for"),
    ("fp8 and tensors that nobody has seen", target(FP8, kv_scales=None), "kv_scales", UNKNOWN, ""),
    ("bf16", engine(EAGLE3, kv_dtype="bf16"), "kv_scales", PASS, "needs no scales"),
    ("a KV of unknown dtype", engine(EAGLE3, kv_dtype=None), "kv_scales", UNKNOWN, "engine.args"),
    ("a drafter's KV that follows", FP8, "draft_kv_dtype", PASS, "target fp8_e4m3, drafter fp8_e4m3"),
    ("a drafter's KV made narrow by itself", engine(EAGLE3, draft_kv_dtype="fp8_e5m2"), "draft_kv_dtype", WARN,
     "target bfloat16, drafter fp8_e5m2"),
    ("the same with scales", drafter(engine(EAGLE3, draft_kv_dtype="fp8_e5m2"), kv_scales=True),
     "draft_kv_dtype", PASS, ""),
    ("a block drafter's KV on an unknown backend", engine(DSPARK, kv_dtype="fp8_e4m3"), "draft_kv_dtype", UNKNOWN,
     "or bfloat16"),
    ("a block drafter's KV on fa4", flags(
        engine(DSPARK, kv_dtype="fp8_e4m3"), speculative_draft_attention_backend="fa4"
    ), "draft_kv_dtype", PASS, "drafter bfloat16"),
    ("a drafter's KV of unknown dtype", drafter(EAGLE3, dtype=None), "draft_kv_dtype", UNKNOWN, "unknown dtype"),
]  # fmt: skip
