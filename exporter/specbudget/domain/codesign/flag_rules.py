"""Launch arguments that change, hinder or forbid speculation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from specbudget.domain.codesign.facts import FIRST_READ, PairFacts
from specbudget.domain.codesign.launch import EngineFlags
from specbudget.domain.codesign.parallel_rules import ragged_mode
from specbudget.domain.codesign.rule import CHAIN, EAGLE_WORDS, SGLANG, Rule
from specbudget.domain.drafter import DraftAlgorithm
from specbudget.domain.finding import Outcome, fails, passes, unknown, warns

SIMULATED_LENGTH = "SGLANG_SIMULATE_ACC_LEN"
"""Environment variable with which SGLang pretends an acceptance length."""

_EAGLES = EAGLE_WORDS | {DraftAlgorithm.EAGLE3}
_ALL = frozenset(DraftAlgorithm)


def _draft_path(facts: PairFacts) -> Outcome:
    flags, drafter = facts.engine.flags, facts.drafter
    path = flags.speculative_draft_model_path
    if path is not None and flags.speculative_algorithm is None and facts.engine.algorithm is None:
        return fails(
            "--speculative-draft-model-path without --speculative-algorithm: SGLang starts without speculation; "
            "give the algorithm",
            value=path,
        )
    if drafter.unseen and (path is not None or facts.engine.running):
        return unknown(
            f"drafter.path is missing in the budget: {path or 'the drafter that the engine runs'} was not read, and "
            "nothing of it is judged; set drafter.path"
        )
    if path is None and drafter.bundled:
        return _bundled(facts)
    if path is not None and drafter.bundled and _last_part(path) != _last_part(facts.target.name or ""):
        return warns(
            f"--speculative-draft-model-path {path} beside a budget without drafter.path: the engine loads another "
            "drafter than the prediction layers in the target's checkpoint; set drafter.path, or drop the argument",
            value=path,
        )
    if path is not None:
        return passes("the arguments name the drafter")
    if facts.engine.running:
        return passes("the drafter of the budget")
    return passes("the drafter of the budget; name its folder to the engine with --speculative-draft-model-path")


def _bundled(facts: PairFacts) -> Outcome:
    if facts.engine.running:
        return passes("the engine started, so it has a drafter")
    match facts.algorithm:
        case DraftAlgorithm.DFLASH | DraftAlgorithm.EAGLE3 | DraftAlgorithm.STANDALONE:
            return fails(
                f"{facts.algorithm} needs a drafter of its own: give --speculative-draft-model-path and drafter.path"
            )
        case DraftAlgorithm.DSPARK if facts.drafter.bundled_folder and facts.engine.release != FIRST_READ:
            return unknown("the drafter lies in the target's folder dspark: set drafter.path to it")
        case DraftAlgorithm.DSPARK if not facts.drafter.bundled_block:
            return fails(
                "DSPARK without --speculative-draft-model-path, and the target's config has no dspark_ keys: SGLang "
                "refuses to start; give the path, and drafter.path"
            )
        case DraftAlgorithm.MTP | DraftAlgorithm.EAGLE if facts.target.nextn_layers == 0:
            return fails("the target's config counts no prediction layers: give --speculative-draft-model-path")
    return passes("the drafter is part of the target's checkpoint")


def _mixed_chunk(facts: PairFacts) -> Outcome:
    asked, release = facts.engine.flags.enable_mixed_chunk, facts.engine.release
    if asked and (release == FIRST_READ or facts.algorithm is DraftAlgorithm.STANDALONE):
        return warns(
            f"--enable-mixed-chunk is turned off by SGLang with {facts.algorithm}"
            f"{' on 0.5.18' if release == FIRST_READ else ''}: prefill and decode take turns; drop it"
        )
    return passes("prefill and decode mixed" if asked else "no mixed prefill")


def _host_cache(facts: PairFacts) -> Outcome:
    flags, release = facts.engine.flags, facts.engine.release
    if flags.enable_hierarchical_cache is None:
        return unknown("the engine's arguments are not known: set engine.args", required=False)
    if not flags.enable_hierarchical_cache:
        return passes("no host cache")
    running = facts.engine.running
    if (flags.dcp_size or 1) > 1 and not running and facts.algorithm is not DraftAlgorithm.DSPARK:
        return fails(
            f"--enable-hierarchical-cache with --dcp-size {flags.dcp_size}: SGLang carries the KV of DSPARK drafters "
            f"only, not of {facts.algorithm}; set --dcp-size 1",
            value=flags.dcp_size,
            limit=1,
        )
    if release == FIRST_READ and not running and facts.drafter.architecture == "InklingForConditionalGenerationMTP":
        return fails("SGLang 0.5.18 has no host cache for Inkling's prediction layers; upgrade, or drop the cache")
    left = _left_behind(facts)
    if left is not None:
        return warns(
            f"--enable-hierarchical-cache does not carry {left}: a prefix that comes back from the host has no drafter "
            "KV, and the acceptance length falls after it; watch it, or drop the host cache"
        )
    return passes("the drafter's KV goes to the host with the target's")


def _left_behind(facts: PairFacts) -> str | None:
    if facts.engine.flags.enable_multi_layer_eagle:
        return "the KV of any draft layer but the first (--enable-multi-layer-eagle)"
    if facts.engine.release == FIRST_READ and facts.drafter.windowed_layers:
        return f"the drafter's pool with {facts.drafter.windowed_layers} windowed layers on 0.5.18"
    return None


def _simulated(facts: PairFacts) -> Outcome:
    text = facts.engine.environment.get(SIMULATED_LENGTH, "")
    try:
        length = float(text)
    except ValueError:
        length = -1.0
    if math.isfinite(length) and length > 0:
        return fails(
            f"{SIMULATED_LENGTH}={text[:20]} in engine.env: the engine pretends an acceptance length and answers with "
            "wrong tokens; remove it",
            value=length,
        )
    return passes("acceptance is real")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """An argument that SGLang refuses beside speculation.

    `given` says whether it stands in the arguments; `allowed` are the algorithms with which a release takes it,
    `allowed_first` those of 0.5.18.
    """

    flag: str
    given: Callable[[EngineFlags], bool]
    allowed: frozenset[DraftAlgorithm] = frozenset()
    allowed_first: frozenset[DraftAlgorithm] = frozenset()


_NOT_STANDALONE = _ALL - {DraftAlgorithm.STANDALONE}

EXCLUSIONS = (
    Exclusion(flag="--weight-cache-mode", given=lambda flags: flags.weight_cache_mode not in (None, "off")),
    Exclusion(
        flag="--attention-backend flex_attention", given=lambda flags: flags.attention_backend == "flex_attention"
    ),
    Exclusion(flag="--enable-lmcache", given=lambda flags: bool(flags.enable_lmcache), allowed_first=_ALL),
    Exclusion(
        flag="--enable-unified-memory",
        given=lambda flags: bool(flags.enable_unified_memory),
        allowed=_NOT_STANDALONE,
        allowed_first=frozenset({DraftAlgorithm.DSPARK}),
    ),
    Exclusion(
        flag="--enable-lora",
        given=lambda flags: bool(flags.enable_lora or flags.lora_paths),
        allowed=_NOT_STANDALONE,
    ),
    Exclusion(
        flag="--disaggregation-decode-enable-radix-cache",
        given=lambda flags: (
            bool(flags.disaggregation_decode_enable_radix_cache) and flags.disaggregation_mode == "decode"
        ),
        allowed=_EAGLES | {DraftAlgorithm.DSPARK},
    ),
    Exclusion(
        flag="--enable-pd-role-switch", given=lambda flags: bool(flags.enable_pd_role_switch), allowed_first=_ALL
    ),
    Exclusion(
        flag="--enable-watermark",
        given=lambda flags: bool(flags.enable_watermark),
        allowed=_EAGLES,
        allowed_first=_ALL,
    ),
)
"""Read from 0.5.18 server_args.py and 0.5.23 arg_groups: model_path_hook, attention_hook, kv_cache_hook, lora_hook,
speculative_hook, pd_disaggregation_hook and validation_hook. What 0.5.18 does not have, it does not refuse here."""

_NARROW_TARGETS = frozenset({"DeepseekV4ForCausalLM"})
"""Targets that SGLang serves with EAGLE of one branch or DSPARK only (arg_groups/deepseek_v4_hook.py)."""


def _exclusions(facts: PairFacts) -> Outcome:
    engine, flags, algorithm = facts.engine, facts.engine.flags, facts.algorithm
    if engine.running:
        return passes("the engine started with its arguments")
    first = engine.release == FIRST_READ
    refused = [
        rule.flag
        for rule in EXCLUSIONS
        if rule.given(flags) and algorithm not in (rule.allowed_first if first else rule.allowed)
    ]
    if refused:
        return fails(f"{', '.join(refused)} with {algorithm}: SGLang refuses to start; drop what is named")
    if (
        (flags.enable_lora or flags.lora_paths)
        and algorithm is DraftAlgorithm.DSPARK
        and ragged_mode(facts) != "static"
    ):
        return fails("--enable-lora with DSPARK needs SGLANG_RAGGED_VERIFY_MODE=static: SGLang refuses to start")
    if flags.enable_unified_memory and engine.branches not in (None, 1):
        return fails(f"--enable-unified-memory needs a chain, {engine.branches_words}; set it to 1")
    if facts.target.architecture in _NARROW_TARGETS and algorithm is not None:
        if algorithm not in EAGLE_WORDS | {DraftAlgorithm.DSPARK}:
            return fails(f"{facts.target.architecture} runs with EAGLE or DSPARK only, not with {algorithm}")
        if algorithm in CHAIN and engine.branches not in (None, 1):
            return fails(f"{facts.target.architecture} takes one branch, {engine.branches_words}")
    return passes("no argument that excludes speculation")


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].lower()


RULES = (
    Rule(
        what="draft_path",
        asks="Is there a drafter where the engine looks for one?",
        check=_draft_path,
        evidence="`--speculative-draft-model-path`, `-algorithm`; `drafter.path`; `num_nextn_predict_layers`",
        engines=SGLANG,
        source="SGLang 0.5.18 and 0.5.23 arg_groups/speculative_hook.py (draft_model_path of each algorithm)",
    ),
    Rule(
        what="mixed_chunk",
        asks="Does mixed prefill stay on?",
        check=_mixed_chunk,
        evidence="`--enable-mixed-chunk`; the engine's release",
        engines=SGLANG,
        source="SGLang 0.5.18 arg_groups/speculative_hook.py, 0.5.23 speculative/spec_info.py (supports_mixed_chunk)",
    ),
    Rule(
        what="host_cache",
        asks="Does the host cache carry the drafter's KV?",
        check=_host_cache,
        evidence="`--enable-hierarchical-cache`, `--dcp-size`, `--enable-multi-layer-eagle`; the drafter's windows",
        engines=SGLANG,
        required=False,
        source="SGLang 0.5.18 and 0.5.23 speculative/base_spec_worker.py (HiCacheDraftPlan), kv_cache_builder.py",
    ),
    Rule(
        what="simulated_acceptance",
        asks="Is acceptance real?",
        check=_simulated,
        evidence="`SGLANG_SIMULATE_ACC_LEN` in `engine.env`",
        engines=SGLANG,
        source="SGLang 0.5.18 and 0.5.23 speculative/spec_utils.py (SGLANG_SIMULATE_ACC_LEN)",
    ),
    Rule(
        what="exclusions",
        asks="Is there an argument beside which SGLang refuses speculation?",
        check=_exclusions,
        evidence="arguments of weight cache, LMCache, LoRA, unified memory, PD, attention; the target's class",
        engines=SGLANG,
        source="SGLang 0.5.18 server_args.py, 0.5.23 arg_groups/ (weight cache, LMCache, LoRA, unified memory, PD)",
    ),
)
