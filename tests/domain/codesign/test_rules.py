"""Every rule: a pair that it lets pass, and what it says of pairs that break it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.codesign.cases_of_content import CONTENT_CASES
from domain.codesign.cases_of_engines import ENGINE_CASES
from domain.codesign.cases_of_starts import START_CASES
from domain.codesign.pairs_to_judge import (
    DFLASH,
    DSPARK,
    EAGLE3,
    EAGLE3_KEY,
    NESTED,
    VLLM,
    drafter,
    engine,
    environment,
    finding,
    flags,
    taps,
    target,
)
from specbudget.domain.codesign import RULES, DrafterFacts, EngineFlags, PairFacts, Rope, Rule, TapStatement, judge
from specbudget.domain.codesign.facts import fact_words
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult, counts, overall

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN
LING = target(
    flags(DSPARK, enable_linear_replayssm_spec=True, linear_replayssm_cache_len=32, speculative_algorithm="DSPARK"),
    architecture="BailingMoeV3ForCausalLM",
    linear_layers=35,
)
"""A target with Kimi delta attention, its replay ring large enough for a verify window of 8."""

NARROW = drafter(EAGLE3, hidden=1024, target_hidden=4096, fc=(1024, 3 * 4096))
"""An EAGLE-3 head of its own width."""

CASES: list[tuple[str, PairFacts, str, CheckResult, str]] = [
    ("a drafter of another algorithm", engine(DSPARK, algorithm=DraftAlgorithm.DFLASH), "algorithm", WARN, "DSPARK"),
    ("EAGLE is the engine's word for MTP", drafter(
        engine(EAGLE3, algorithm=DraftAlgorithm.EAGLE), stated_algorithm=DraftAlgorithm.MTP
    ), "algorithm", PASS, ""),
    ("a block drafter without taps", drafter(DFLASH, taps=()), "taps_present", FAIL, "5 x 4096"),
    ("a DSpark drafter without taps", drafter(DSPARK, taps=()), "taps_present", FAIL, NESTED),
    ("an EAGLE-3 head without taps", drafter(EAGLE3, taps=()), "taps_present", WARN, "[2, 18, 33]"),
    ("an EAGLE-3 head that needs none", drafter(EAGLE3, taps=(), uses_taps=False), "taps_present", PASS, ""),
    ("taps stated twice that differ", drafter(DSPARK, taps=(
        TapStatement(key=NESTED, ids=(1, 9)), TapStatement(key="target_layer_ids", ids=(1, 10)),
    )), "taps_present", FAIL, "target_layer_ids says [1, 10]"),
    ("the same taps as outputs and as inputs", drafter(DSPARK, taps=(
        TapStatement(key=NESTED, ids=(1, 9)), TapStatement(key="aux_hidden_state_layer_ids", ids=(2, 10)),
    )), "taps_present", PASS, ""),
    ("a config that cannot be read", drafter(DSPARK, taps=None), "taps_present", UNKNOWN, "readable config.json"),
    ("a tap beyond the target", target(DSPARK, layers=32), "taps_range", FAIL, "[33]"),
    ("a tap beyond the target leaves fewer features", target(DSPARK, layers=32), "taps_range", FAIL, "4 x 4096"),
    ("a tap of the last layer", target(DSPARK, layers=34), "taps_range", WARN, "never reaches it"),
    ("taps of a target of unknown depth", target(DSPARK, layers=None), "taps_range", UNKNOWN, "num_hidden_layers"),
    ("input 36 of 36 layers is output 35", taps(DSPARK, 2, 36, key="aux_hidden_state_layer_ids"),
     "taps_range", WARN, "tap 35"),
    ("input 0 is no output", taps(DSPARK, 0, 9, key="aux_hidden_state_layer_ids"), "taps_range", FAIL, "[-1]"),
    ("taps out of order", taps(DSPARK, 9, 1, 17, 25, 33), "taps_order", WARN, "ascending"),
    ("a tap named twice", taps(DSPARK, 1, 1, 17, 25, 33), "taps_order", FAIL, "twice"),
    ("taps that count inputs on an engine that adds 1", taps(EAGLE3, 2, 18, 33), "taps_offset", WARN, "[3, 19, 34]"),
    ("taps that count outputs", EAGLE3, "taps_offset", PASS, "[2, 18, 33]"),
    ("taps that count outputs on an engine that takes inputs", engine(EAGLE3, kind="vllm"),
     "taps_offset", WARN, "vLLM"),
    ("EAGLE-3 taps at a key that SGLang does not read", taps(
        EAGLE3, 1, 19, 34, key="eagle_aux_hidden_state_layer_ids"
    ), "taps_key", WARN, EAGLE3_KEY),
    ("the same where the fallback says it anyway", taps(
        EAGLE3, 1, 17, 32, key="eagle_aux_hidden_state_layer_ids"
    ), "taps_key", PASS, ""),
    ("the speculators format's key", taps(DSPARK, 2, 10, key="aux_hidden_state_layer_ids"),
     "taps_key", WARN, "write [1, 9] there"),
    ("a projection built for three taps", drafter(DSPARK, fc=(4096, 3 * 4096)), "taps_width", FAIL,
     "config lists 5 taps, fc was built for 3"),
    ("a projection for another width", drafter(DSPARK, fc=(4096, 5 * 4000)), "taps_width", FAIL, "no multiple"),
    ("a projection onto another width", drafter(DSPARK, fc=(2048, 5 * 4096)), "taps_width", FAIL, "hidden_size"),
    ("a projection that nobody has seen", drafter(DSPARK, fc=None), "taps_width", UNKNOWN, ""),
    ("an EAGLE-3 head reads three layers unless it says more", drafter(EAGLE3, taps=()), "taps_width", PASS, ""),
    ("an EAGLE-3 head that says four", drafter(EAGLE3, tap_count=4), "taps_width", FAIL, "4 taps"),
    ("made for a deeper target", drafter(DSPARK, num_target_layers=48), "num_target_layers", WARN, "48"),
    ("a block drafter of another width", drafter(DSPARK, hidden=2048), "hidden_size", FAIL, "2048"),
    ("an EAGLE-3 head of its own width with its own embedding", NARROW, "hidden_size", PASS, ""),
    ("the same without an embedding", drafter(NARROW, own_embedding=False), "hidden_size", FAIL, "no embedding"),
    ("the same with unknown tensors", drafter(NARROW, own_embedding=None), "hidden_size", UNKNOWN, ""),
    ("the same for another target", drafter(NARROW, target_hidden=5120), "hidden_size", FAIL, "5120"),
    ("the same that does not say so", drafter(NARROW, target_hidden=None), "hidden_size", FAIL,
     "write target_hidden_size: 4096"),
    ("another vocabulary", drafter(DSPARK, vocab=128256), "vocabulary", FAIL, "128256"),
    ("a padded vocabulary", drafter(DSPARK, vocab=151669), "vocabulary", WARN, "267 rows of padding"),
    ("a block drafter without a vocabulary", drafter(DSPARK, vocab=None), "vocabulary", PASS, "takes the target's"),
    ("an EAGLE-3 head without one", drafter(EAGLE3, vocab=None), "vocabulary", UNKNOWN, "vocab_size"),
    ("a reduced vocabulary without a map", drafter(EAGLE3, vocabulary_map_rows=None), "draft_vocabulary", FAIL, "d2t"),
    ("the same with unknown tensors", drafter(EAGLE3, vocabulary_map_rows=None, weights_known=False),
     "draft_vocabulary", UNKNOWN, "d2t"),
    ("a map of another size", drafter(EAGLE3, vocabulary_map_rows=16000), "draft_vocabulary", FAIL, "16000"),
    ("a reduced vocabulary of a block drafter", drafter(DSPARK, draft_vocab=32000), "draft_vocabulary", FAIL, ""),
    ("more draft tokens than tokens", drafter(EAGLE3, draft_vocab=200000), "draft_vocabulary", FAIL, "more than"),
    ("a mask token outside the vocabulary", drafter(DSPARK, mask_token_id=151936), "mask_token", FAIL, "151936"),
    ("a mask token in the padding", target(drafter(DSPARK, mask_token_id=151935), vocab=151900),
     "mask_token", WARN, "padding"),
    ("the same for DFlash", target(drafter(DFLASH, mask_token_id=151901), vocab=151900), "mask_token", FAIL, ""),
    ("no mask token for DSpark", drafter(DSPARK, mask_token_id=None), "mask_token", FAIL, "refuses"),
    ("no mask token for DFlash", drafter(DFLASH, mask_token_id=None), "mask_token", WARN, "tokenizer"),
    ("DSpark verifies its block and the anchor", DSPARK, "block", PASS, "7 + 1"),
    ("DSpark started with its bare block", engine(DSPARK, num_draft_tokens=7), "block", FAIL,
     "--speculative-num-draft-tokens 8"),
    ("DSpark running with another block", engine(DSPARK, num_draft_tokens=5, running=True), "block", WARN, ""),
    ("DFlash verifies its block", DFLASH, "block", PASS, "anchor included"),
    ("DFlash with one token more", engine(DFLASH, num_draft_tokens=17), "block", WARN, "17"),
    ("nobody sets the draft tokens", engine(DSPARK, num_draft_tokens=None), "block", PASS, "from the checkpoint"),
    ("no block size recorded", drafter(engine(DSPARK, num_draft_tokens=None), block_size=None), "block", WARN, "7"),
    ("a block set by flag", flags(engine(DSPARK, num_draft_tokens=None), speculative_dspark_block_size=4),
     "block", WARN, "5"),
    ("a window smaller than the block", engine(DFLASH, draft_window=8), "draft_window", FAIL, "8"),
    ("a window of the block", engine(DFLASH, draft_window=16), "draft_window", PASS, ""),
    ("no Markov rank", drafter(DSPARK, markov_rank=0), "markov_head", FAIL, "markov_rank"),
    ("a Markov head of no known type", drafter(DSPARK, markov_type="lstm"), "markov_head", FAIL, "lstm"),
    ("a Markov head without a type", drafter(DSPARK, markov_type=None), "markov_head", FAIL, "markov_head_type"),
    ("a Markov head of another rank", drafter(DSPARK, markov_shape=(151936, 128)), "markov_head", FAIL, "151936 x 128"),
    ("weights without a Markov head", drafter(DSPARK, markov_shape=None), "markov_head", FAIL, "no markov_w1"),
    ("fewer positions than served", drafter(DSPARK, positions=4096), "positions", FAIL, "--context-length 4096"),
    ("the same on an engine that runs", engine(drafter(DSPARK, positions=4096), running=True), "positions", WARN,
     "guesses"),
    ("the same on another engine", engine(drafter(DSPARK, positions=4096), kind="vllm"), "positions", WARN, "guesses"),
    ("fewer positions, allowed", environment(
        drafter(DSPARK, positions=4096), SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1"
    ), "positions", WARN, "guesses"),
    ("fewer positions, stretched", drafter(DSPARK, positions=4096, rope=Rope(kind="yarn")), "positions", WARN,
     "guesses"),
    ("fewer positions than the model, but not than served", flags(drafter(DSPARK, positions=4096), context_length=4096),
     "positions", PASS, ""),
    ("positions that nobody recorded", drafter(DSPARK, positions=None), "positions", UNKNOWN, ""),
    ("partial rotation in whole-head layers", drafter(DSPARK, rope=Rope(theta=1e6, partial=0.25)), "rotary", WARN,
     "remove the key"),
    ("partial rotation in a family that has it",
     drafter(DSPARK, model_type="gemma4_text", rope=Rope(theta=1e6, partial=0.25)), "rotary", PASS, ""),
    ("another base frequency", target(drafter(DSPARK, rope=Rope(theta=1e4)), rope=Rope(theta=1e6)), "rotary", PASS,
     "rope_theta 10000"),
    ("quantised weights without a word", drafter(DSPARK, dtypes=frozenset({"F8_E4M3", "F32"})), "quantization", FAIL,
     "F8_E4M3"),
    ("a quantisation that the weights lack", drafter(DSPARK, quantization="fp8"), "quantization", FAIL, "fp8"),
    ("quantised weights that are announced", drafter(DSPARK, quantization="fp8", dtypes=frozenset({"F8_E4M3"})),
     "quantization", PASS, ""),
    ("the target's quantisation argument", flags(DSPARK, quantization="fp8"), "quantization", WARN, "unquant"),
    ("the same, set apart for the drafter",
     flags(DSPARK, quantization="fp8", speculative_draft_model_quantization="unquant"), "quantization", PASS, ""),
    ("tensors that nobody has seen", drafter(DSPARK, dtypes=None), "quantization", UNKNOWN, ""),
    ("a class that an older release lacks",
     engine(target(DSPARK, architecture="BailingMoeV3ForCausalLM"), version="0.5.18"), "architecture", FAIL, "upgrade"),
    ("the same on the newer release", target(DSPARK, architecture="BailingMoeV3ForCausalLM"), "architecture", PASS, ""),
    ("a release in between", engine(DSPARK, version="0.5.20"), "architecture", UNKNOWN, ""),
    ("a class of no release", target(DSPARK, architecture="LumenForCausalLM"), "architecture", UNKNOWN, "fallback"),
    ("an unknown release", engine(DSPARK, version=None), "architecture", UNKNOWN, "engine.version"),
    ("a ring of two verify windows", LING, "replay_ring", PASS, "32"),
    ("the default ring of 16 for a window of 9",
     flags(engine(LING, num_draft_tokens=9), linear_replayssm_cache_len=16), "replay_ring", FAIL, "set 32"),
    ("a ring that is no power of two", flags(LING, linear_replayssm_cache_len=24), "replay_ring", FAIL, "set 16"),
    ("a ring with a tree of drafts", engine(LING, topk=4), "replay_ring", FAIL, "topk"),
    ("both kinds of replay", flags(LING, enable_linear_replayssm=True), "replay_ring", FAIL, "exclude"),
    ("replay on a prefill server", engine(LING, prefill_only=True), "replay_ring", FAIL, "prefill"),
    ("linear layers whose ring follows the drafts",
     flags(target(LING, architecture="Qwen3NextForCausalLM"), linear_replayssm_cache_len=1), "replay_ring", PASS, ""),
    ("linear layers without replay", flags(LING, enable_linear_replayssm_spec=False), "replay_ring", PASS, "off"),
    ("overlap in the launch arguments", flags(DSPARK, startup_weight_load_mode="overlap"), "staging_mode", FAIL, ""),
    ("overlap in the plan", engine(DSPARK, planned_staging="overlap"), "staging_mode", FAIL, "staging.mode"),
    ("prefetch in the plan", engine(DSPARK, planned_staging="prefetch"), "staging_mode", PASS, ""),
    ("a pipeline of two stages", engine(DSPARK, pipeline_parallel=2), "parallelism", FAIL, "--pp 1"),
    ("the same on a prefill server", engine(DSPARK, pipeline_parallel=2, prefill_only=True), "parallelism", PASS, ""),
    ("heads that do not divide", engine(DSPARK, tensor_parallel=3), "attention_ranks", FAIL, "of the drafter"),
    ("DFlash with attention-DP on the older release", engine(DFLASH, attention_dp=True, version="0.5.18"),
     "attention_dp", FAIL, "0.5.18"),
    ("random weights", flags(DSPARK, speculative_draft_load_format="dummy"), "drafter_weights", FAIL, "dummy"),
    ("no recorded base model", drafter(DSPARK, target_name=None), "trained_for", UNKNOWN, "compatible shapes"),
    ("another base model", drafter(DSPARK, target_name="Qwen/Qwen3-14B"), "trained_for", WARN, "Qwen3-14B"),
    ("a drafter within the target", drafter(DSPARK, bundled=True, target_name=None), "trained_for", PASS, ""),
    ("no algorithm at all", replace(DSPARK, algorithm=None), "algorithm", UNKNOWN, "drafter.algorithm"),
    ("a block drafter without taps and weights", drafter(DFLASH, taps=(), fc=None), "taps_present", FAIL, "is missing"),
    ("a block drafter without taps, of another width", drafter(DFLASH, taps=(), fc=(64, 100)), "taps_present", FAIL,
     "next to nothing; write"),
    ("a head that taps nothing on a shallow target", target(drafter(EAGLE3, taps=(), uses_taps=False), layers=3),
     "taps_range", PASS, "no layer"),
    ("a tap beyond a target of unknown width", target(DSPARK, layers=32, hidden=None), "taps_range", FAIL, "[33]"),
    ("a block drafter with a map", drafter(DSPARK, draft_vocab=32000, vocabulary_map_rows=32000),
     "draft_vocabulary", FAIL, "have no map"),
    ("DFlash with a block set by flag", flags(engine(DFLASH, num_draft_tokens=None), speculative_dflash_block_size=8),
     "block", WARN, "num_draft_tokens 8"),
    ("draft tokens and no block to compare", drafter(DSPARK, block_size=None), "block", WARN, "not comparable"),
    ("a window smaller than the checkpoint's block", engine(DFLASH, draft_window=8, num_draft_tokens=None),
     "draft_window", FAIL, "16"),
    ("a window for a block of unknown size", drafter(
        engine(DFLASH, draft_window=8, num_draft_tokens=None), block_size=None
    ), "draft_window", UNKNOWN, ""),
    ("a Markov rank that nobody states", drafter(DSPARK, markov_rank=None), "markov_head", FAIL, "is missing"),
    ("a drafter whose class is not recorded", drafter(DSPARK, architecture=None), "architecture", UNKNOWN,
     "not recorded"),
    ("a ring for the checkpoint's own block",
     flags(engine(LING, num_draft_tokens=None), linear_replayssm_cache_len=8), "replay_ring", FAIL, "set 16"),
    ("a ring for a chain of three steps", target(
        flags(engine(EAGLE3, num_draft_tokens=None), enable_linear_replayssm_spec=True, linear_replayssm_cache_len=4),
        architecture="KimiLinearForCausalLM", linear_layers=20,
    ), "replay_ring", FAIL, "set 8"),
    ("a target without linear layers", flags(target(LING, linear_layers=0), linear_replayssm_cache_len=1),
     "replay_ring", PASS, "no linear"),
    ("linear layers under unknown arguments", engine(LING, flags=EngineFlags()), "replay_ring", UNKNOWN, "engine.args"),
    ("a ring of unknown length", engine(LING, flags=EngineFlags(enable_linear_replayssm_spec=True)),
     "replay_ring", UNKNOWN, "length"),
    ("a target without a name", target(DSPARK, name=None), "trained_for", UNKNOWN, "Qwen3-8B"),
]  # fmt: skip


ALL_CASES = [*CASES, *CONTENT_CASES, *ENGINE_CASES, *START_CASES]


@pytest.mark.parametrize(
    ("pair", "what", "result", "words"), [case[1:] for case in ALL_CASES], ids=[case[0] for case in ALL_CASES]
)
def test_each_rule_tells_fit_from_misfit(pair: PairFacts, what: str, result: CheckResult, words: str) -> None:
    """The finding has the result, and its message the number or key that a person needs."""
    found = finding(pair, what)
    assert (found.result, words in found.message) == (result, True), found.message


@pytest.mark.parametrize("pair", [DSPARK, DFLASH, EAGLE3, VLLM], ids=["dspark", "dflash", "eagle3", "vllm"])
def test_a_pair_that_fits_passes_every_rule(pair: PairFacts) -> None:
    """Nothing is warned of where nothing is wrong."""
    assert {f.id: f.message for f in judge(pair) if f.result is not PASS} == {}


def test_every_rule_has_a_passing_and_a_complaining_pair() -> None:
    """A rule without a pair that breaks it could be a rule that does nothing."""
    passing = {f.check for pair in (DSPARK, DFLASH, EAGLE3, LING, VLLM) for f in judge(pair) if f.result is PASS}
    complaining = {what for _, _, what, result, _ in ALL_CASES if result in (WARN, FAIL)}
    assert passing == complaining == {rule.what for rule in RULES}


def test_ids_are_unique_and_sources_are_named() -> None:
    """A finding's id is its rule's; a rule says what it asks and where it comes from."""
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.id.startswith("codesign.") and rule.asks.endswith("?") and rule.source for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.what)
def test_a_required_fact_that_is_missing_is_never_a_pass(rule: Rule) -> None:
    """Each fact that a rule reads, taken away, makes its finding unknown and the message says what to supply."""
    for name in rule.reads:
        part, _, key = name.partition(".")
        change = {"target": target, "drafter": drafter, "engine": engine}[part]
        found = finding(change(DSPARK, **{key: None}), rule.what)
        assert found.result is UNKNOWN, name
        assert fact_words(name) in found.message


def test_nothing_known_is_unknown_and_not_a_pass() -> None:
    """Two checkpoints that cannot be read give no green light."""
    empty = PairFacts(
        algorithm=DraftAlgorithm.DFLASH,
        target=type(DSPARK.target)(),
        drafter=type(DSPARK.drafter)(),
        engine=type(DSPARK.engine)(),
    )
    assert overall(judge(empty)) is UNKNOWN


def test_an_ngram_drafter_is_no_pair() -> None:
    """Without a second model only the rules that hold for a target alone say anything."""
    pair = PairFacts(algorithm=DraftAlgorithm.NGRAM, target=DSPARK.target, drafter=DSPARK.drafter, engine=DSPARK.engine)
    assert {f.check for f in judge(pair)} == {rule.what for rule in RULES if rule.alone}
    assert {rule.what for rule in RULES if rule.alone} == {
        "algorithm", "attention_dp", "attention_ranks", "context_length", "layers"
    }  # fmt: skip


def test_an_unseen_drafter_is_judged_by_no_other_checkpoint() -> None:
    """Where the budget does not name the drafter, one finding says so and no rule reads another model's config."""
    pair = flags(replace(EAGLE3, drafter=DrafterFacts(bundled=True, unseen=True)), speculative_draft_model_path="/d/e3")
    assert {f.check for f in judge(pair) if f.result is not PASS} == {"draft_path"}
    assert "hidden_size" not in {f.check for f in judge(pair)}


def test_the_worst_finding_decides() -> None:
    """Fail before unknown before warn; an unknown that is not required counts for nothing."""
    warned = drafter(DSPARK, num_target_layers=48)
    lacking = drafter(warned, hidden=None)
    assert overall(judge(warned)) is WARN
    assert overall(judge(lacking)) is UNKNOWN
    assert overall(judge(drafter(lacking, mask_token_id=None))) is FAIL
    assert overall(judge(drafter(DSPARK, positions=None, target_name=None))) is PASS


def test_results_are_counted_with_zeros() -> None:
    """Every result has a count, so that a gauge exists from the start."""
    found = counts(judge(DSPARK))
    assert found[PASS] == len(judge(DSPARK))
    assert {found[WARN], found[FAIL], found[UNKNOWN]} == {0}
