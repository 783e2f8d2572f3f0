"""What the drafter needs of KV, gets, and costs the target."""

from __future__ import annotations

from dataclasses import replace

from specbudget.check.memory_advice import surer_pool
from specbudget.check.plan import Plan
from specbudget.check.rules.kv_line import (
    NO_DRAFTER,
    OWN_NEED,
    SIZING,
    exactness_of,
    kv_rule,
    limit_of,
    rows_of,
    steps_of,
    why_no_drafter,
)
from specbudget.check.rules.limits import against
from specbudget.check.rules.rule import told
from specbudget.domain.drafter_cost import kv_cost_ratio
from specbudget.domain.finding import CheckResult, Exactness, Outcome, passes, unknown
from specbudget.domain.pool_sizing import Prediction
from specbudget.words import count, size

_IDLE = 2.0
"""A drafter's pool of more than so many times its planned need is memory that the target could have."""


def _block_floor(plan: Plan) -> Outcome | None:
    draft = plan.draft_kv
    if draft is None:
        return None
    floor = draft.block_floor_bytes(plan.concurrency)
    steps = (
        f"{plan.concurrency} requests x {draft.step_rows} rows of a verify step x {draft.bytes_per_token:,} B = "
        f"{floor:,} B",
    )
    return told(f"{size(floor)} for the draft blocks alone, without the context", floor, arithmetic=steps)


def _need(plan: Plan) -> Outcome:
    if not plan.has_drafter:
        return passes(NO_DRAFTER)
    draft, tokens = plan.draft_kv, plan.tokens_per_request
    if draft is None:
        return unknown(f"the drafter's need is not known: {why_no_drafter(plan)}", required=False)
    if tokens is None:
        return unknown("the drafter's need is not known: set kv.tokens_per_request", required=False)
    need = draft.planned_need_bytes(concurrency=plan.concurrency, tokens_per_request=tokens)
    windows = " within its own windows" if draft.geometry.has_windows or draft.draft_window else ""
    steps = (
        f"{plan.concurrency} requests of {tokens:,} tokens and {draft.step_rows} rows of a verify step{windows}",
        f"need: {need:,} B; a whole context costs {draft.bytes_per_token:,} B per token",
    )
    return told(
        f"{plan.concurrency} requests of {tokens:,} tokens need {size(need)} of drafter KV{windows}",
        need,
        arithmetic=steps,
    )


def _allocated(plan: Plan) -> Outcome:
    limit = limit_of(plan, "drafter")
    if not plan.has_drafter:
        return passes(NO_DRAFTER)
    draft, tokens = plan.draft_kv, plan.pool.tokens
    if draft is None or tokens is None:
        why = why_no_drafter(plan) if draft is None else plan.pool.reason
        return unknown(f"the drafter's pool is not known: {why}", required=limit is not None)
    dcp = plan.kv.decode_context_parallel
    low, point, high = (
        draft.allocated_bytes(rows_of(plan, n), decode_context_parallel=dcp)
        for n in (tokens.low, tokens.point, tokens.high)
    )
    ranks = "" if dcp == 1 else f" x {dcp} decode-context ranks"
    rows = f"({rows_of(plan, tokens.point):,} rows + a page of {draft.page}){ranks}"
    steps = (*steps_of(plan), f"{rows} x {draft.bytes_per_token:,} B = {point:,} B")
    message = f"the drafter's pool has {size(point)}: a row for each of the target's {count(tokens.point)} tokens"
    if limit is None:
        return told(message, point, low=low, high=high, exactness=exactness_of(plan), arithmetic=steps)
    return against(
        "the drafter's pool takes",
        value=point,
        low=low,
        high=high,
        limit=limit,
        shown=size(point),
        limit_shown=size(limit),
        fix="raise kv.drafter, lower --max-total-tokens, or set --speculative-draft-kv-cache-dtype fp8_e4m3",
        undecided=surer_pool(plan),
        exactness=exactness_of(plan),
        arithmetic=steps,
    )


def _cost(plan: Plan) -> Outcome:
    if not plan.has_drafter:
        return passes(NO_DRAFTER)
    target, draft = plan.kv.target_token_bytes, plan.draft_kv
    charged = None if draft is None else plan.kv.charged_token_bytes(draft.bytes_per_token)
    share, parts_of_a_token = "", ""
    if target and charged is not None:
        parts_of_a_token = f"a token: {target:,} B of the target + {charged:,} B charged for the drafter"
        ratio = kv_cost_ratio(target_token_bytes=target, charged_token_bytes=charged)
        share = f"the drafter takes {ratio:.1%} of the target's token budget ({charged:,} of {target + charged:,} B)"
    outcome = plan.pool.outcome
    if not isinstance(outcome, Prediction) or outcome.cost is None or outcome.without_drafter is None:
        why = plan.pool.reason or "the drafter's weights on one device are not known"
        message = (
            f"{share}; in tokens it is not known: {why}" if share else f"what the drafter costs is not known: {why}"
        )
        return replace(unknown(message, required=False), arithmetic=(parts_of_a_token,) if share else ())
    cost = outcome.cost
    parts = f"{count(cost.kv_tokens)} for its KV, {count(cost.weights_tokens)} for its weights"
    if cost.state_tokens:
        parts += f", {count(cost.state_tokens)} for recurrent state"
    steps = (
        *steps_of(plan),
        f"without the drafter: {outcome.without_drafter.point:,} tokens; with it {outcome.tokens.point:,}",
        f"cost: {cost.tokens:,} tokens = {cost.kv_tokens:,} KV + {cost.state_tokens:,} recurrent state + "
        f"{cost.weights_tokens:,} weights",
    )
    return told(
        f"{share}: without it the target's pool would hold {count(cost.tokens)} tokens more ({parts})",
        cost.tokens,
        exactness=Exactness(outcome.certainty),
        arithmetic=steps,
    )


def _unpriced(plan: Plan) -> Outcome | None:
    outcome = plan.pool.outcome
    if not isinstance(outcome, Prediction) or not plan.has_drafter:
        return None
    unpriced = outcome.unpriced_bytes
    padding = plan.page * plan.kv.decode_context_parallel * outcome.drafter_token_bytes
    steps = (
        f"the drafter's pool: {outcome.drafter_pool_bytes:,} B; charged for it: {outcome.charged_bytes:,} B",
        f"left beside the pools for activations and graphs: {round(outcome.slack_bytes):,} B",
    )
    if unpriced > padding:
        result = CheckResult.FAIL if unpriced > outcome.slack_bytes else CheckResult.WARN
        message = (
            f"the engine charges the drafter as layers of the target: {size(unpriced)} of its pool are not kept for it "
            f"and must fit beside activations and graphs in {size(outcome.slack_bytes)}; lower --mem-fraction-static"
        )
    elif unpriced < -padding:
        result = CheckResult.PASS
        message = f"the engine keeps {size(-unpriced)} more for the drafter than its pool takes; they lie idle"
    else:
        result, message = CheckResult.PASS, "the engine keeps for the drafter what its pool takes"
    return told(message, unpriced, result=result, exactness=Exactness(outcome.certainty), arithmetic=steps)


def _copies(plan: Plan) -> Outcome | None:
    """What copies of embedding and head cost, that an EAGLE or MTP drafter holds while the pool is sized."""
    weights, target, draft = plan.drafter_device_weights, plan.kv.target_token_bytes, plan.draft_kv
    if weights is None or not target or draft is None:
        return None
    freed = weights.charged_bytes - weights.resident_bytes
    charged = plan.kv.charged_token_bytes(draft.bytes_per_token)
    if freed <= 0 or charged is None:
        return None
    lost = freed // (target + charged)
    steps = (
        f"copies of embedding and head on one device: {freed:,} B, freed after the pool is made",
        f"{freed:,} B / ({target:,} + {charged:,} B per token) = {lost:,} tokens",
    )
    return told(
        f"copies of embedding and head are charged while the pool is sized and freed afterwards: {size(freed)}, "
        f"{count(lost)} tokens that the pool never gets",
        lost,
        arithmetic=steps,
    )


def _idle(plan: Plan) -> Outcome | None:
    draft, tokens, per_request = plan.draft_kv, plan.pool.tokens, plan.tokens_per_request
    if draft is None or tokens is None or per_request is None or tokens.point <= 0:
        return None
    need = draft.planned_need_bytes(concurrency=plan.concurrency, tokens_per_request=per_request)
    allocated = draft.allocated_bytes(
        rows_of(plan, tokens.point), decode_context_parallel=plan.kv.decode_context_parallel
    )
    idle = allocated - need
    if need and allocated > _IDLE * need:
        return told(
            f"{size(idle)} of the drafter's pool are beyond the planned need: its own windows or few requests leave "
            "them idle, and the engine cannot give them to the target",
            idle,
            exactness=exactness_of(plan),
        )
    if idle < 0:
        return told(
            f"nothing of the drafter's pool is idle: the planned requests need {size(-idle)} more than it has",
            0,
            exactness=exactness_of(plan),
        )
    return told(f"{size(idle)} of the drafter's pool are beyond the planned need", idle, exactness=exactness_of(plan))


RULES = (
    kv_rule("drafter_block_floor_bytes", "What would the draft blocks alone need?", _block_floor, OWN_NEED, "bytes"),
    kv_rule("drafter_need_bytes", "What does the drafter need?", _need, OWN_NEED, "bytes"),
    kv_rule("drafter_allocated_bytes", "What does the engine give the drafter?", _allocated, SIZING, "bytes"),
    kv_rule("drafter_cost_tokens", "What does the drafter cost in target tokens?", _cost, SIZING, "tokens"),
    kv_rule("drafter_idle_bytes", "Is much of the drafter's pool idle?", _idle, OWN_NEED, "bytes"),
    kv_rule(
        "unpriced_bytes",
        "Is the drafter's pool kept for?",
        _unpriced,
        "SGLang 0.5.18 and 0.5.23 pool_configurator.py: EAGLE, MTP, standalone drafters are charged as target layers",
        "bytes",
    ),
    kv_rule(
        "duplicate_vocabulary",
        "Do copies of embedding and head cost tokens?",
        _copies,
        "SGLang 0.5.23 speculative/eagle_worker_v2.py: init_lm_head frees them after the pool is sized",
        "tokens",
    ),
)
