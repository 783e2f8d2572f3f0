"""What a token of either model costs."""

from __future__ import annotations

from specbudget.check.plan import Plan
from specbudget.check.rules.kv_line import (
    GEOMETRY,
    NO_DRAFTER,
    kv_rule,
    line_of,
    why_no_drafter,
    why_no_element,
)
from specbudget.check.rules.kv_words import layer_words
from specbudget.check.rules.rule import told
from specbudget.check.sizing import LATENT_LAYOUT
from specbudget.domain.codesign import DrafterFacts, PairFacts, TargetFacts
from specbudget.domain.codesign.kv_rules import target_scales
from specbudget.domain.finding import Outcome, passes, unknown


def _target_token(plan: Plan) -> Outcome:
    token = plan.kv.target_token_bytes
    if token is None:
        return unknown(f"KV of a token of the target is not known: {_why_no_geometry(plan)}", required=_counts(plan))
    geometry, element = plan.kv.target.geometry, plan.kv.target_element_bytes or 0
    scaled, ranks = bool(plan.kv.scaled_fp8_latent), plan.kv.target_ranks
    steps: tuple[str, ...] = ()
    if geometry is not None:
        steps = layer_words(geometry, ranks=ranks, element_bytes=element, scaled_fp8_latent=scaled)
    return told(f"a token of the target takes {token:,} B on each device", token, arithmetic=steps)


def _counts(plan: Plan) -> bool:
    """Whether something of the line hangs on it."""
    return line_of(plan) is not None


def _why_no_geometry(plan: Plan) -> str:
    if plan.target is None:
        return "target.path is not in the budget"
    problems = [str(problem) for problem in plan.target.checkpoint.problems]
    if problems:
        return problems[0]
    if plan.kv.pipeline_parallel > 1:
        return "which layers each pipeline stage has is the engine's affair"
    if plan.kv.scaled_fp8_latent is None:
        return LATENT_LAYOUT
    return why_no_element(plan.facts.kv_dtype)


def _drafter_token(plan: Plan) -> Outcome:
    if not plan.has_drafter:
        return passes(NO_DRAFTER)
    draft = plan.draft_kv
    if draft is None:
        return unknown(f"KV of a token of the drafter is not known: {why_no_drafter(plan)}", required=_counts(plan))
    token = draft.bytes_per_token
    target = plan.kv.target_token_bytes
    words = f"a token of the drafter takes {token:,} B on each device"
    if target:
        words += f", beside the target's {target:,} B"
    steps = layer_words(draft.geometry, ranks=draft.tensor_parallel, element_bytes=draft.element_bytes)
    return told(words, token, arithmetic=steps)


def _dtype(plan: Plan) -> Outcome | None:
    """Both KV dtypes; where the drafter's follows the target's or not, both sizes are shown."""
    draft = plan.draft_kv
    if draft is None or plan.facts.kv_dtype in (None, "auto") or plan.facts.draft_kv_dtype is not None:
        return None
    wide = draft.bytes_per_token // draft.element_bytes * 2
    own = draft.bytes_per_token
    message = (
        f"--kv-cache-dtype {plan.facts.kv_dtype} counts for the drafter too: {_with_share(plan, own)}; "
        f"in bfloat16 {_with_share(plan, wide)}: set --speculative-draft-kv-cache-dtype to be sure"
    )
    return told(message, own)


def _with_share(plan: Plan, drafter: int) -> str:
    """Bytes of a token of the drafter, and its share of what a token of both takes."""
    target = plan.kv.target_token_bytes
    share = "" if not target else f" ({drafter / (target + drafter):.1%} of both)"
    return f"{drafter:,} B per token{share}"


def _scales(plan: Plan) -> Outcome | None:
    """Scales of the target's KV; with a second model the co-design line tells of them."""
    if plan.has_drafter or plan.target is None or plan.setup.kv_dtype in (None, "auto"):
        return None
    checkpoint = plan.target.checkpoint
    facts = plan.kv.target
    target = TargetFacts(dtype=facts.dtype, kv_quantization=facts.kv_quantization, kv_scales=checkpoint.kv_scales)
    return target_scales(PairFacts(algorithm=None, target=target, drafter=DrafterFacts(), engine=plan.setup))


RULES = (
    kv_rule("target_bytes_per_token", "What does a token of the target cost?", _target_token, GEOMETRY, "bytes"),
    kv_rule("drafter_bytes_per_token", "What does a token of the drafter cost?", _drafter_token, GEOMETRY, "bytes"),
    kv_rule(
        "scales",
        "Has a quantised KV its scales?",
        _scales,
        "SGLang 0.5.23 layers/quantization/kv_cache.py: scales that are not stored become 1.0",
    ),
    kv_rule("drafter_kv_dtype", "Which KV dtype does the drafter get?", _dtype, GEOMETRY, "bytes"),
)
