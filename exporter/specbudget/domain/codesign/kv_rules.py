"""The KV of both models: which element each takes, and whether a quantised one has its scales."""

from __future__ import annotations

from specbudget.domain.codesign.facts import PairFacts
from specbudget.domain.codesign.rule import BLOCK, Rule
from specbudget.domain.finding import Outcome, passes, unknown, warns

_SCALED = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})
"""KV elements with one scale per tensor; the block formats carry theirs with the data."""

_WHERE_SCALES_STAND = "k_scale and v_scale"


def target_kv_dtype(facts: PairFacts) -> str | None:
    """The element of the target's KV, lower case: auto follows the checkpoint; None when not known."""
    return _resolved(facts.engine.kv_dtype, facts.target.kv_quantization, facts.target.dtype)


def drafter_kv_dtype(facts: PairFacts) -> str | None:
    """The element of the drafter's KV: its own argument, else the target's argument, then as its checkpoint says."""
    argument = facts.engine.draft_kv_dtype or facts.engine.kv_dtype
    return _resolved(argument, facts.drafter.kv_quantization, facts.drafter.dtype)


def _resolved(argument: str | None, quantization: str | None, dtype: str | None) -> str | None:
    if argument is None:
        return None
    if argument.lower() != "auto":
        return argument.lower()
    if quantization is not None and quantization.lower() == "fp8":
        return "fp8_e4m3"
    return dtype


def target_scales(facts: PairFacts) -> Outcome:
    """Whether a quantised KV of the target has its scales; the drafter plays no part in it."""
    name, argument = target_kv_dtype(facts), facts.engine.kv_dtype
    if name is None:
        return unknown("the KV dtype is not known: set engine.args", required=False)
    if name not in _SCALED:
        return passes(f"{name} needs no scales", value=name)
    if facts.engine.flags.quantization_param_path:
        return passes(f"{name}, scales from --quantization-param-path", value=name)
    if facts.target.kv_scales is None:
        return unknown(f"{name}, and the target's tensor names are not known", required=False)
    if facts.target.kv_scales:
        return passes(f"{name} with {_WHERE_SCALES_STAND}", value=name)
    asked = f"--kv-cache-dtype {argument}" if argument not in (None, "auto") else f"the checkpoint asks for {name}"
    return warns(
        f"fp8 KV, no KV scales found ({asked}): every value is scaled by 1, which costs accuracy and with it accepted "
        f"drafts; use a checkpoint with {_WHERE_SCALES_STAND}, or --kv-cache-dtype auto",
        value=name,
    )


def _draft_dtype(facts: PairFacts) -> Outcome:
    target, drafter, engine = target_kv_dtype(facts), drafter_kv_dtype(facts), facts.engine
    if target is None or drafter is None:
        return unknown(
            f"the target's KV is {target or 'of unknown dtype'}, the drafter's {drafter or 'of unknown dtype'}: set "
            "engine.args, dtype in both config.json",
            required=False,
        )
    both = f"target {target}, drafter {drafter}"
    if drafter not in _SCALED or facts.drafter.kv_scales:
        return passes(both, value=drafter)
    follows = engine.draft_kv_dtype is None
    if follows and facts.algorithm in BLOCK and engine.kind in (None, "sglang"):
        backend = engine.flags.speculative_draft_attention_backend or engine.flags.attention_backend
        if backend == "fa4":
            return passes(f"target {target}, drafter {facts.drafter.dtype}: a fa4 draft backend keeps its own dtype")
        if backend is None:
            return unknown(
                f"{both}, or {facts.drafter.dtype} where the draft attention backend is fa4: give "
                "--speculative-draft-attention-backend",
                required=False,
            )
    unscaled = f"its checkpoint has no {_WHERE_SCALES_STAND}, so its values are scaled by 1"
    if follows:
        return passes(f"{both}, which follows --kv-cache-dtype {engine.kv_dtype}; {unscaled}", value=drafter)
    return warns(
        f"{both} by --speculative-draft-kv-cache-dtype {engine.draft_kv_dtype}: {unscaled}; compare the acceptance "
        "length with bf16",
        value=drafter,
    )


RULES = (
    Rule(
        what="kv_scales",
        asks="Has a quantised KV of the target its scales?",
        check=target_scales,
        evidence="`--kv-cache-dtype`, `kv_cache_quant_algo`; names of the target's tensors",
        required=False,
        source="SGLang 0.5.23 layers/quantization/kv_cache.py: scales that are not stored become 1.0",
    ),
    Rule(
        what="draft_kv_dtype",
        asks="Which element does each KV take, and has the drafter's its scales?",
        check=_draft_dtype,
        evidence="`--kv-cache-dtype`, `--speculative-draft-kv-cache-dtype`, the draft attention backend; both `dtype`",
        required=False,
        source="SGLang 0.5.18 and 0.5.23 mem_cache/kv_cache_dtype.py: the drafter follows --kv-cache-dtype",
    ),
)
