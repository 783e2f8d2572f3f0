"""How the work is spread: ranks, pipeline stages, data-parallel attention and expert backends."""

from __future__ import annotations

from specbudget.domain.codesign.facts import FIRST_READ, PairFacts
from specbudget.domain.codesign.rule import BLOCK, EAGLE_WORDS, SGLANG, VLLM, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, warns

RAGGED_VERIFY = "SGLANG_RAGGED_VERIFY_MODE"
"""Environment variable with which SGLang verifies fewer tokens of some requests than of others."""

_RAGGED_MODES = ("static", "cap-accept", "compact")
_PREFILL_COORDINATION = "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION"
_PIPELINED_SPECULATION = "SGLANG_ENABLE_PP_SPEC"
_TRUE = frozenset({"1", "true", "yes", "on", "y"})


def is_on(facts: PairFacts, name: str) -> bool:
    """Whether an environment variable of the engine is set to a true word."""
    return facts.engine.environment.get(name, "").strip().lower() in _TRUE


def ragged_mode(facts: PairFacts) -> str:
    """The engine's mode of verifying; static unless its environment says otherwise."""
    return facts.engine.environment.get(RAGGED_VERIFY) or "static"


def _parallel(facts: PairFacts) -> Outcome:
    engine, tensor = facts.engine, facts.engine.tensor_parallel
    refused = None if engine.kind not in (None, "sglang") or engine.running else _pipeline(facts)
    if refused is not None:
        return refused
    return passes("" if tensor is None else f"{tensor} ranks")


def _pipeline(facts: PairFacts) -> Outcome | None:
    """What SGLang refuses of a pipeline; None when it does not."""
    engine, stages = facts.engine, facts.engine.pipeline_parallel
    if stages is None or stages < 2:
        return None
    if engine.release == FIRST_READ:
        reason = "SGLang 0.5.18 refuses any speculation in a pipeline"
    elif facts.algorithm is DraftAlgorithm.DSPARK or facts.algorithm in EAGLE_WORDS:
        whole = facts.algorithm in EAGLE_WORDS and is_on(facts, _PIPELINED_SPECULATION)
        if engine.prefill_only or whole:
            return None
        reason = "SGLang runs it on prefill servers only"
    else:
        reason = "SGLang refuses it"
    return fails(f"{facts.algorithm} with a pipeline of {stages} stages: {reason}; set --pp 1", value=stages, limit=1)


def _attention_dp(facts: PairFacts) -> Outcome:
    engine, flags = facts.engine, facts.engine.flags
    if not engine.attention_dp:
        return passes("attention is not data parallel")
    if engine.running:
        return passes("the engine started with data-parallel attention")
    first = engine.release == FIRST_READ
    if facts.algorithm is DraftAlgorithm.NGRAM:
        return fails("NGRAM with data-parallel attention is refused by SGLang; drop one of the two")
    if facts.algorithm is DraftAlgorithm.STANDALONE:
        return fails("STANDALONE with data-parallel attention is refused by SGLang; use EAGLE, or drop it")
    if facts.algorithm is DraftAlgorithm.DFLASH and first:
        return fails("DFLASH with attention data parallelism is refused by SGLang 0.5.18; upgrade to 0.5.23")
    if facts.algorithm not in BLOCK or (facts.algorithm is DraftAlgorithm.DSPARK and engine.data_parallel == 1):
        return passes("data-parallel attention")
    if flags.enable_dp_lm_head is False:
        return fails(
            f"{facts.algorithm} with data-parallel attention needs --enable-dp-lm-head: SGLang refuses to start"
        )
    if (flags.attn_cp_size or 1) > 1:
        return fails(
            f"{facts.algorithm} with data-parallel attention refuses context parallelism; set --attn-cp-size 1",
            value=flags.attn_cp_size,
            limit=1,
        )
    if facts.algorithm is DraftAlgorithm.DFLASH:
        if is_on(facts, _PREFILL_COORDINATION):
            return fails(f"DFLASH with data-parallel attention needs {_PREFILL_COORDINATION}=0")
        return passes("data-parallel attention with its head on each rank")
    return _dspark_experts(facts, first)


def _dspark_experts(facts: PairFacts, first: bool) -> Outcome:
    flags, allowed = facts.engine.flags, ("none", "megamoe") if first else ("none", "megamoe", "mori")
    backend, drafters = flags.moe_a2a_backend or "none", flags.speculative_moe_a2a_backend
    if backend not in allowed:
        return fails(
            f"--moe-a2a-backend {backend}: DSPARK with data-parallel attention knows {', '.join(allowed)} only",
            value=backend,
        )
    if drafters is not None and drafters != backend:
        return fails(
            f"--speculative-moe-a2a-backend {drafters} beside --moe-a2a-backend {backend}: DSPARK with data-parallel "
            "attention needs the same; drop the former",
            value=drafters,
            limit=backend,
        )
    needs_static = backend != "none" or (not first and is_on(facts, _PREFILL_COORDINATION))
    if needs_static and ragged_mode(facts) != "static":
        return fails(
            f"{RAGGED_VERIFY}={ragged_mode(facts)} with --moe-a2a-backend {backend}: DSPARK over data-parallel experts "
            f"needs static; set {RAGGED_VERIFY}=static in engine.env",
            value=ragged_mode(facts),
            limit="static",
        )
    return passes(f"data-parallel attention, experts over {backend}")


def _ragged(facts: PairFacts) -> Outcome:
    mode, flags = ragged_mode(facts), facts.engine.flags
    if facts.engine.running:
        return passes("the engine started with its mode of verifying")
    if mode not in _RAGGED_MODES:
        return fails(f"{RAGGED_VERIFY}={mode!r} is unknown to SGLang; it knows {', '.join(_RAGGED_MODES)}", value=mode)
    if mode != "static" and flags.enable_linear_replayssm_spec and facts.target.linear_layers:
        verify = flags.linear_attn_verify_backend
        if facts.algorithm not in BLOCK or verify not in (None, "triton", "nv_cutedsl"):
            return fails(
                f"{RAGGED_VERIFY}={mode} with --enable-linear-replayssm-spec needs DSPARK or DFLASH and "
                f"--linear-attn-verify-backend triton or nv_cutedsl, not {facts.algorithm} on "
                f"{verify or 'its default'}; set {RAGGED_VERIFY}=static",
                value=mode,
                limit="static",
            )
    if mode != "static" and facts.algorithm is DraftAlgorithm.DSPARK and facts.drafter.own_confidence is False:
        return fails(
            f"{RAGGED_VERIFY}={mode} verifies by the drafter's confidence, and the checkpoint has no confidence_head "
            f"tensors: SGLang refuses to start; set {RAGGED_VERIFY}=static, or take the complete weights",
            value=mode,
            limit="static",
        )
    if mode == "static" and flags.speculative_dspark_sps_table_path and facts.algorithm is DraftAlgorithm.DSPARK:
        return warns(
            f"--speculative-dspark-sps-table-path has no effect under {RAGGED_VERIFY}=static; drop it, or set compact"
        )
    return passes(f"{mode} verification", value=mode)


def _draft_parallel(facts: PairFacts) -> Outcome:
    asked, ranks = facts.engine.draft_tensor_parallel, facts.engine.tensor_parallel
    if asked is None or ranks is None or asked == ranks:
        return passes("the drafter is spread as the target is", value=ranks)
    if asked != 1:
        return fails(
            f"draft_tensor_parallel_size {asked}: vLLM takes 1 or the target's {ranks}, and refuses others",
            value=asked,
            limit=ranks,
        )
    return warns(
        f"requested draft tp=1, engine may use {ranks}: the drafter's KV is then 1/{ranks} of it on every GPU instead "
        f"of all of it on one; plan with both, or leave draft_tensor_parallel_size out",
        value=asked,
        limit=ranks,
    )


RULES = (
    Rule(
        what="parallelism",
        asks="Can the drafter be spread over these stages?",
        check=_parallel,
        evidence="pipeline stages, the role of the server; `SGLANG_ENABLE_PP_SPEC`",
        unit="stages",
        source="SGLang 0.5.18 server_args.py, 0.5.23 validation_hook.py (pipeline)",
    ),
    Rule(
        what="attention_dp",
        asks="Does data-parallel attention go with this drafter?",
        check=_attention_dp,
        evidence="data-parallel attention, `--enable-dp-lm-head`, `--attn-cp-size`, the expert backends; `engine.env`",
        engines=SGLANG,
        alone=True,
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py (_handle_dflash, _dspark, _ngram)",
    ),
    Rule(
        what="ragged_verify",
        asks="Does the mode of verifying go with the other arguments?",
        check=_ragged,
        evidence="`SGLANG_RAGGED_VERIFY_MODE` in `engine.env`; linear replay; the confidence head",
        engines=SGLANG,
        source="SGLang 0.5.18 and 0.5.23 speculative/ragged_verify.py, models/dspark.py, attention_hook.py",
    ),
    Rule(
        what="draft_parallelism",
        asks="Will the drafter run on as many ranks as asked?",
        check=_draft_parallel,
        evidence="`draft_tensor_parallel_size`; tensor ranks",
        engines=VLLM,
        unit="ranks",
        source="vLLM 0.32.0 config/speculative.py (_verify_and_get_draft_tp)",
    ),
)
