"""Pairs whose engine is set up against a rule, or rightly is not."""

from __future__ import annotations

from dataclasses import replace

from domain.codesign.cases_of_content import STANDALONE
from domain.codesign.pairs_to_judge import DFLASH, DSPARK, EAGLE3, VLLM, drafter, engine, environment, flags, target
from specbudget.domain.codesign import PairFacts
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import CheckResult

PASS, WARN, FAIL, UNKNOWN = CheckResult.PASS, CheckResult.WARN, CheckResult.FAIL, CheckResult.UNKNOWN

FIRST = "0.5.18"
MTP = replace(engine(EAGLE3, algorithm=DraftAlgorithm.MTP), algorithm=DraftAlgorithm.MTP)
MTP = target(drafter(MTP, stated_algorithm=DraftAlgorithm.MTP), nextn_layers=1)
TREE = flags(engine(EAGLE3, topk=4, num_draft_tokens=8), page_size=1, attention_backend="fa3")
DP = engine(flags(DSPARK, enable_dp_lm_head=True), attention_dp=True, data_parallel=4)
DP_DFLASH = engine(flags(DFLASH, enable_dp_lm_head=True), attention_dp=True, data_parallel=4)
REPLAY = target(flags(DSPARK, enable_linear_replayssm_spec=True), linear_layers=35)
NO_STEPS = engine(EAGLE3, num_steps=None, topk=None, num_draft_tokens=None)


ENGINE_CASES: list[tuple[str, PairFacts, str, CheckResult, str]] = [
    ("an EAGLE-3 head told to be DSpark", engine(EAGLE3, algorithm=DraftAlgorithm.DSPARK), "algorithm", FAIL, "EAGLE3"),
    ("a DSpark drafter told to be EAGLE-3", engine(DSPARK, algorithm=DraftAlgorithm.EAGLE3), "algorithm", FAIL,
     "block drafter"),
    ("another algorithm in the budget", replace(DSPARK, budgeted=DraftAlgorithm.DFLASH), "algorithm", WARN,
     "drafter.algorithm in the budget is dflash"),
    ("the budget's word where the engine is silent", replace(
        engine(DSPARK, algorithm=None), budgeted=DraftAlgorithm.DFLASH
    ), "algorithm", WARN, "of dspark"),
    ("MTP in the budget is the engine's EAGLE", replace(
        engine(MTP, algorithm=DraftAlgorithm.EAGLE), budgeted=DraftAlgorithm.MTP
    ), "algorithm", PASS, ""),
    ("a Gemma assistant told to be EAGLE-3", drafter(EAGLE3, architecture="Gemma4AssistantForCausalLM"),
     "algorithm", FAIL, "NEXTN"),
    ("a target that hands out layers", DFLASH, "taps_capture", PASS, "Qwen3ForCausalLM"),
    ("a target that hands them to DSpark only", target(DFLASH, architecture="BailingMoeV3ForCausalLM"),
     "taps_capture", FAIL, "set_dflash_layers_to_capture"),
    ("the same with DSpark", target(DSPARK, architecture="BailingMoeV3ForCausalLM"), "taps_capture", PASS, ""),
    ("a target that the newer release taught", target(engine(DFLASH, version=FIRST), architecture="MiMoV2ForCausalLM"),
     "taps_capture", FAIL, "upgrade to 0.5.23"),
    ("a target of no release", target(DFLASH, architecture="LumenForCausalLM"), "taps_capture", UNKNOWN, "none of"),
    ("a target on an unknown release", engine(DFLASH, version="0.5.20"), "taps_capture", UNKNOWN, "release"),
    ("a head that taps nothing", target(drafter(EAGLE3, uses_taps=False), architecture="ZayaForCausalLM"),
     "taps_capture", PASS, "taps no layer"),
    ("layers of an engine that runs", target(engine(DFLASH, running=True), architecture="ZayaForCausalLM"),
     "taps_capture", PASS, "started"),
    ("a chain with one token more", engine(EAGLE3, num_draft_tokens=5), "steps", WARN, "SGLang runs 4"),
    ("steps without branches", engine(EAGLE3, topk=None), "steps", FAIL, "--speculative-eagle-topk"),
    ("branches without steps", engine(EAGLE3, num_steps=None), "steps", FAIL, "without steps"),
    ("nothing said of steps", NO_STEPS, "steps", PASS, "chooses"),
    ("adaptive steps", flags(engine(NO_STEPS, topk=1), speculative_adaptive=True), "steps", PASS, "adaptive"),
    ("a tree without draft tokens", engine(TREE, num_draft_tokens=None), "steps", FAIL, "tree of 4"),
    ("a tree that has as many nodes", TREE, "steps", PASS, "8 of the 37"),
    ("a tree that has too few", engine(TREE, num_draft_tokens=38), "steps", FAIL, "at most 37"),
    ("steps of a block drafter", engine(DSPARK, num_steps=3), "steps", WARN, "sets both to 1"),
    ("steps of an engine that runs", engine(EAGLE3, running=True, topk=None), "steps", PASS, "unknown branches"),
    ("a tree on pages of 1", TREE, "tree", PASS, "4 branches"),
    ("a tree on a backend of chains", flags(TREE, decode_attention_backend="trtllm_mha"), "tree", FAIL, "trtllm_mha"),
    ("a tree on large pages", flags(TREE, page_size=64, attention_backend="flashmla"), "tree", FAIL, "--page-size 64"),
    ("a tree on large pages of a backend that can", flags(TREE, page_size=64), "tree", PASS, ""),
    ("a tree on pages of unknown size", engine(EAGLE3, topk=4), "tree", UNKNOWN, "--page-size"),
    ("a tree that runs", engine(TREE, running=True), "tree", PASS, "started"),
    ("adaptive drafting by EAGLE-3", flags(EAGLE3, speculative_adaptive=True), "adaptive", PASS, "adapts"),
    ("adaptive drafting by DSpark", flags(DSPARK, speculative_adaptive=True), "adaptive", WARN, "dspark"),
    ("adaptive drafting in a tree", flags(TREE, speculative_adaptive=True), "adaptive", WARN, "topk is 4"),
    ("adaptive drafting over data-parallel attention", flags(
        engine(EAGLE3, attention_dp=True), speculative_adaptive=True
    ), "adaptive", WARN, "data parallel"),
    ("adaptive drafting from steps it never takes", flags(
        EAGLE3, speculative_adaptive=True, speculative_num_steps=4
    ), "adaptive", FAIL, "0, 1, 3, 5, 7"),
    ("five adaptive steps on the older release", flags(
        engine(EAGLE3, version=FIRST), speculative_adaptive=True, speculative_num_steps=5
    ), "adaptive", FAIL, "0, 1, 3, 7"),
    ("adaptive or not, nobody knows", engine(EAGLE3, flags=type(EAGLE3.engine.flags)()), "adaptive", UNKNOWN, ""),
    ("rejection sampling from a reduced vocabulary", flags(EAGLE3, speculative_use_rejection_sampling=True),
     "rejection_sampling", FAIL, "drafts from 32000"),
    ("rejection sampling by MTP from a reduced one", flags(MTP, speculative_use_rejection_sampling=True),
     "rejection_sampling", FAIL, "32000"),
    ("rejection sampling by a head of all tokens", flags(
        drafter(MTP, draft_vocab=None, vocabulary_map_rows=None), speculative_use_rejection_sampling=True
    ), "rejection_sampling", PASS, "whole vocabulary"),
    ("rejection sampling in a tree", flags(TREE, speculative_use_rejection_sampling=True),
     "rejection_sampling", FAIL, "topk is 4"),
    ("rejection sampling with thresholds", flags(
        EAGLE3, speculative_use_rejection_sampling=True, speculative_accept_threshold_acc=0.9
    ), "rejection_sampling", FAIL, "thresholds"),
    ("rejection sampling by a standalone drafter", flags(STANDALONE, speculative_use_rejection_sampling=True),
     "rejection_sampling", FAIL, "STANDALONE"),
    ("rejection sampling by a block drafter", flags(DSPARK, speculative_use_rejection_sampling=True),
     "rejection_sampling", WARN, "no effect"),
    ("deterministic rejection sampling on the older release", flags(
        engine(EAGLE3, version=FIRST), speculative_use_rejection_sampling=True, enable_deterministic_inference=True
    ), "rejection_sampling", FAIL, "deterministic"),
    ("rejection sampling that runs", flags(
        engine(EAGLE3, running=True), speculative_use_rejection_sampling=True
    ), "rejection_sampling", PASS, "started"),
    ("block verification on the older release", flags(
        engine(DSPARK, version=FIRST), speculative_use_block_verification=True
    ), "rejection_sampling", FAIL, "0.5.18 has no"),
    ("block verification of a standalone drafter", flags(STANDALONE, speculative_use_block_verification=True),
     "rejection_sampling", FAIL, "block-verification"),
    ("a window that DSpark does not honour", engine(DSPARK, draft_window=512), "draft_window", WARN, "no effect"),
    ("a window that EAGLE-3 honours", engine(EAGLE3, draft_window=512), "draft_window", PASS, "last 512"),
    ("a window that the older release's MTP ignores", engine(MTP, draft_window=512, version=FIRST),
     "draft_window", WARN, "no effect"),
    ("a sink that runs", flags(engine(EAGLE3, running=True), speculative_draft_sink_size=4), "draft_window", PASS, ""),
    ("a window of nothing", engine(EAGLE3, draft_window=0), "draft_window", FAIL, "positive"),
    ("a sink without a window", flags(EAGLE3, speculative_draft_sink_size=4), "draft_window", FAIL, "needs"),
    ("a sink on the older release", flags(
        engine(EAGLE3, draft_window=512, version=FIRST), speculative_draft_sink_size=4
    ), "draft_window", FAIL, "0.5.18"),
    ("any speculation in a pipeline of the older release", engine(MTP, pipeline_parallel=2, version=FIRST),
     "parallelism", FAIL, "any speculation"),
    ("EAGLE-3 in a pipeline", engine(EAGLE3, pipeline_parallel=2), "parallelism", FAIL, "SGLang refuses it"),
    ("MTP in a pipeline", engine(MTP, pipeline_parallel=2), "parallelism", FAIL, "prefill servers only"),
    ("MTP in a pipeline that is allowed", environment(
        engine(MTP, pipeline_parallel=2), SGLANG_ENABLE_PP_SPEC="1"
    ), "parallelism", PASS, ""),
    ("a pipeline that runs", engine(EAGLE3, pipeline_parallel=2, running=True), "parallelism", PASS, ""),
    ("data-parallel attention with its head", DP, "attention_dp", PASS, "over none"),
    ("data-parallel attention without its head", engine(DSPARK, attention_dp=True, data_parallel=4),
     "attention_dp", FAIL, "--enable-dp-lm-head"),
    ("one data-parallel rank", engine(DSPARK, attention_dp=True), "attention_dp", PASS, ""),
    ("DFlash without its head", engine(DFLASH, attention_dp=True), "attention_dp", FAIL, "--enable-dp-lm-head"),
    ("DFlash with its head", DP_DFLASH, "attention_dp", PASS, "head on each rank"),
    ("DFlash with prefill coordination", environment(
        DP_DFLASH, SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION="true"
    ), "attention_dp", FAIL, "=0"),
    ("context parallelism beside data-parallel attention", flags(DP, attn_cp_size=2), "attention_dp", FAIL,
     "--attn-cp-size 1"),
    ("a standalone drafter and data-parallel attention", engine(STANDALONE, attention_dp=True),
     "attention_dp", FAIL, "STANDALONE"),
    ("an EAGLE-3 head and data-parallel attention", engine(EAGLE3, attention_dp=True), "attention_dp", PASS, ""),
    ("data-parallel attention that runs", engine(DP, running=True), "attention_dp", PASS, "started"),
    ("experts over an unknown backend", flags(DP, moe_a2a_backend="deepep"), "attention_dp", FAIL, "megamoe, mori"),
    ("experts over mori on the older release", flags(engine(DP, version=FIRST), moe_a2a_backend="mori"),
     "attention_dp", FAIL, "none, megamoe only"),
    ("experts of the drafter elsewhere", flags(DP, speculative_moe_a2a_backend="deepep"), "attention_dp", FAIL,
     "beside"),
    ("experts over MegaMoE", flags(DP, moe_a2a_backend="megamoe"), "attention_dp", PASS, "over megamoe"),
    ("experts over MegaMoE, verified raggedly", environment(
        flags(DP, moe_a2a_backend="megamoe"), SGLANG_RAGGED_VERIFY_MODE="compact"
    ), "attention_dp", FAIL, "SGLANG_RAGGED_VERIFY_MODE=static"),
    ("ragged verification", environment(DSPARK, SGLANG_RAGGED_VERIFY_MODE="compact"), "ragged_verify", PASS, "compact"),
    ("ragged verification without a confidence head", environment(
        drafter(DSPARK, own_confidence=False), SGLANG_RAGGED_VERIFY_MODE="compact"
    ), "ragged_verify", FAIL, "confidence_head"),
    ("static verification without one", drafter(DSPARK, own_confidence=False), "ragged_verify", PASS, "static"),
    ("a mode that runs", environment(
        engine(DSPARK, running=True), SGLANG_RAGGED_VERIFY_MODE="fast"
    ), "ragged_verify", PASS, "started"),
    ("an unknown mode", environment(DSPARK, SGLANG_RAGGED_VERIFY_MODE="fast"), "ragged_verify", FAIL, "cap-accept"),
    ("ragged replay", environment(REPLAY, SGLANG_RAGGED_VERIFY_MODE="compact"), "ragged_verify", PASS, ""),
    ("ragged replay on another kernel", environment(
        flags(REPLAY, linear_attn_verify_backend="flashinfer"), SGLANG_RAGGED_VERIFY_MODE="compact"
    ), "ragged_verify", FAIL, "flashinfer"),
    ("a table that static verification ignores", flags(DSPARK, speculative_dspark_sps_table_path="/t"),
     "ragged_verify", WARN, "no effect"),
    ("vLLM's drafter on one rank of four", engine(VLLM, draft_tensor_parallel=1), "draft_parallelism", WARN,
     "requested draft tp=1, engine may use 4"),
    ("vLLM's drafter on two ranks of four", engine(VLLM, draft_tensor_parallel=2), "draft_parallelism", FAIL,
     "refuses"),
    ("vLLM's drafter on unknown ranks", engine(VLLM, draft_tensor_parallel=None), "draft_parallelism", PASS, ""),
    ("a draft path without an algorithm", flags(
        engine(DSPARK, algorithm=None), speculative_draft_model_path="/d"
    ), "draft_path", FAIL, "without speculation"),
    ("a drafter of its own that no argument names", DSPARK, "draft_path", PASS, "name its folder to the engine"),
    ("the same beside an engine that runs", engine(DSPARK, running=True), "draft_path", PASS, "drafter of the budget"),
    ("a draft path with its algorithm", flags(DSPARK, speculative_draft_model_path="/d"), "draft_path", PASS, "name"),
    ("prediction layers and a path beside them", drafter(
        flags(MTP, speculative_draft_model_path="/d"), bundled=True
    ), "draft_path", WARN, "drafter.path"),
    ("prediction layers and the target's own path", drafter(
        flags(MTP, speculative_draft_model_path="/models/Qwen3-8B"), bundled=True
    ), "draft_path", PASS, ""),
    ("prediction layers of a checkpoint of their own", flags(MTP, speculative_draft_model_path="/d"),
     "draft_path", PASS, "name"),
    ("DSpark in a folder of its target", drafter(DSPARK, bundled=True, bundled_folder=True), "draft_path", UNKNOWN,
     "set drafter.path"),
    ("the same on the older release", drafter(engine(DSPARK, version=FIRST), bundled=True, bundled_folder=True),
     "draft_path", FAIL, "refuses"),
    ("DFlash without a drafter", drafter(DFLASH, bundled=True), "draft_path", FAIL, "drafter.path"),
    ("DFlash that runs without a budgeted drafter", drafter(engine(DFLASH, running=True), bundled=True),
     "draft_path", PASS, "started"),
    ("DSpark without a drafter", drafter(DSPARK, bundled=True), "draft_path", FAIL, "dspark_ keys"),
    ("DSpark within its target", drafter(DSPARK, bundled=True, bundled_block=True), "draft_path", PASS, "part of"),
    ("MTP of a target without prediction layers", target(drafter(MTP, bundled=True), nextn_layers=0),
     "draft_path", FAIL, "no prediction layers"),
    ("mixed prefill", flags(DSPARK, enable_mixed_chunk=True), "mixed_chunk", PASS, "mixed"),
    ("mixed prefill on the older release", flags(engine(DSPARK, version=FIRST), enable_mixed_chunk=True),
     "mixed_chunk", WARN, "on 0.5.18"),
    ("mixed prefill of a standalone drafter", flags(STANDALONE, enable_mixed_chunk=True), "mixed_chunk", WARN, "off"),
    ("a host cache", flags(DSPARK, enable_hierarchical_cache=True), "host_cache", PASS, "goes to the host"),
    ("a host cache under unknown arguments", engine(DSPARK, flags=type(DSPARK.engine.flags)()),
     "host_cache", UNKNOWN, "engine.args"),
    ("a host cache over context ranks", flags(EAGLE3, enable_hierarchical_cache=True, dcp_size=2), "host_cache", FAIL,
     "--dcp-size 2"),
    ("a host cache with several draft layers", flags(
        EAGLE3, enable_hierarchical_cache=True, enable_multi_layer_eagle=True
    ), "host_cache", WARN, "multi-layer"),
    ("a host cache and windows on the older release", drafter(
        flags(engine(DSPARK, version=FIRST), enable_hierarchical_cache=True), windowed_layers=3
    ), "host_cache", WARN, "3 windowed layers"),
    ("a host cache and Inkling on the older release", drafter(
        flags(engine(MTP, version=FIRST), enable_hierarchical_cache=True),
        architecture="InklingForConditionalGenerationMTP",
    ), "host_cache", FAIL, "Inkling"),
    ("the target's quantisation argument on vLLM", flags(VLLM, quantization="fp8"), "quantization", PASS, ""),
    ("simulated acceptance", environment(DSPARK, SGLANG_SIMULATE_ACC_LEN="3.5"), "simulated_acceptance", FAIL, "=3.5"),
    ("simulation turned off", environment(DSPARK, SGLANG_SIMULATE_ACC_LEN="-1"), "simulated_acceptance", PASS, ""),
    ("simulation by a word", environment(DSPARK, SGLANG_SIMULATE_ACC_LEN="much"), "simulated_acceptance", PASS, ""),
    ("a weight cache", flags(DSPARK, weight_cache_mode="daemon"), "exclusions", FAIL, "--weight-cache-mode"),
    ("flex attention", flags(DSPARK, attention_backend="flex_attention"), "exclusions", FAIL, "flex_attention"),
    ("LMCache", flags(DSPARK, enable_lmcache=True), "exclusions", FAIL, "--enable-lmcache"),
    ("adapters", flags(DSPARK, enable_lora=True), "exclusions", PASS, ""),
    ("adapters on the older release", flags(engine(DSPARK, version=FIRST), lora_paths="a=b"), "exclusions", FAIL,
     "--enable-lora"),
    ("adapters, verified raggedly", environment(
        flags(DSPARK, enable_lora=True), SGLANG_RAGGED_VERIFY_MODE="compact"
    ), "exclusions", FAIL, "static"),
    ("unified memory of EAGLE-3", flags(EAGLE3, enable_unified_memory=True), "exclusions", PASS, ""),
    ("unified memory of EAGLE-3 on the older release", flags(
        engine(EAGLE3, version=FIRST), enable_unified_memory=True
    ), "exclusions", FAIL, "--enable-unified-memory"),
    ("unified memory of a tree", flags(TREE, enable_unified_memory=True), "exclusions", FAIL, "needs a chain"),
    ("prefix reuse on a DFlash decode server", flags(
        DFLASH, disaggregation_decode_enable_radix_cache=True, disaggregation_mode="decode"
    ), "exclusions", FAIL, "radix-cache"),
    ("prefix reuse on a DSpark decode server", flags(
        DSPARK, disaggregation_decode_enable_radix_cache=True, disaggregation_mode="decode"
    ), "exclusions", PASS, ""),
    ("roles that switch", flags(DSPARK, enable_pd_role_switch=True), "exclusions", FAIL, "role-switch"),
    ("watermarks of a block drafter", flags(DSPARK, enable_watermark=True), "exclusions", FAIL, "watermark"),
    ("DFlash on DeepSeek V4", target(DFLASH, architecture="DeepseekV4ForCausalLM"), "exclusions", FAIL,
     "EAGLE or DSPARK only"),
    ("a tree on DeepSeek V4", replace(
        target(TREE, architecture="DeepseekV4ForCausalLM"), algorithm=DraftAlgorithm.EAGLE
    ), "exclusions", FAIL, "one branch"),
    ("DSpark on DeepSeek V4", target(DSPARK, architecture="DeepseekV4ForCausalLM"), "exclusions", PASS, ""),
    ("an engine that runs in spite of all", flags(engine(DSPARK, running=True), weight_cache_mode="daemon"),
     "exclusions", PASS, "started"),
]  # fmt: skip
