"""The target's pool: its tokens, its bytes, and whether the planned requests fit."""

from __future__ import annotations

from specbudget.check.memory_advice import larger_pool, surer_pool
from specbudget.check.plan import Plan
from specbudget.check.rules.kv_line import (
    SIZING,
    exactness_of,
    kv_rule,
    limit_of,
    line_of,
    rows_of,
    steps_of,
)
from specbudget.check.rules.limits import against
from specbudget.check.rules.rule import told
from specbudget.domain.finding import CheckResult, Exactness, Outcome, passes, unknown, warns
from specbudget.domain.pool_sizing import NotEnoughMemory, Prediction
from specbudget.domain.step_reserve import StepReserve, step_reserve
from specbudget.words import count, size


def _pool_tokens(plan: Plan) -> Outcome | None:
    limit, tokens = limit_of(plan, "min_target_tokens"), plan.pool.tokens
    if isinstance(plan.pool.outcome, NotEnoughMemory) and tokens is None:
        outcome = plan.pool.outcome
        return Outcome(
            result=CheckResult.FAIL,
            message=f"{outcome.message}: {larger_pool(plan, limit or 1)}",
            value=0,
            limit=limit,
            floor=True,
            exactness=Exactness(outcome.certainty),
            arithmetic=steps_of(plan),
        )
    if tokens is None:
        return unknown(f"not predicted: {plan.pool.reason}", required=limit is not None)
    what = "the target's pool holds" if plan.pool.told_by != "predicted" else "the target's pool will hold"
    if limit is None:
        return told(
            f"{what} {count(tokens.point)} tokens, {plan.pool.told_by}",
            tokens.point,
            low=tokens.low,
            high=tokens.high,
            exactness=exactness_of(plan),
            arithmetic=steps_of(plan),
        )
    return against(
        what,
        value=tokens.point,
        low=tokens.low,
        high=tokens.high,
        limit=limit,
        shown=f"{count(tokens.point)} tokens",
        limit_shown=count(limit),
        fix=f"{larger_pool(plan, limit)}, or lower kv.min_target_tokens",
        floor=True,
        undecided=surer_pool(plan),
        exactness=exactness_of(plan),
        arithmetic=steps_of(plan),
    )


def _target_pool(plan: Plan) -> Outcome | None:
    limit, tokens, token = limit_of(plan, "target"), plan.pool.tokens, plan.kv.target_token_bytes
    if tokens is None or token is None:
        return None if limit is None else unknown(f"the target's pool is not known: {plan.pool.reason or 'geometry'}")
    low, point, high = ((rows_of(plan, n) + plan.page) * token for n in (tokens.low, tokens.point, tokens.high))
    if limit is None:
        return told(f"the target's pool has {size(point)}", point, low=low, high=high, exactness=exactness_of(plan))
    return against(
        "the target's pool takes",
        value=point,
        low=low,
        high=high,
        limit=limit,
        shown=size(point),
        limit_shown=size(limit),
        fix="raise kv.target, or lower --max-total-tokens",
        undecided=surer_pool(plan),
        exactness=exactness_of(plan),
        arithmetic=steps_of(plan),
    )


def _planned_load(plan: Plan) -> Outcome | None:
    """Whether the planned requests fit under the high-water mark, their steps' reserve included."""
    line, tokens, pool = line_of(plan), plan.tokens_per_request, plan.pool.tokens
    if line is None or tokens is None or pool is None or pool.low <= 0:
        return None
    if not plan.has_drafter and line.concurrency is None and plan.most_running is None:
        # without speculation the engine has no such default
        return None
    kept = _reserve(plan)
    reserve = 0 if kept is None else kept.reserved
    wanted = plan.concurrency * (tokens + reserve)
    ratios = [wanted / max(1, n) for n in (pool.high, pool.point, pool.low)]
    steps = (
        f"{plan.concurrency} requests x ({tokens:,} tokens + {reserve} reserved for steps) = {wanted:,} tokens",
        f"pool: {pool.point:,} tokens, {plan.pool.told_by}; mark {line.high_water:.0%}",
    )
    words = f"the planned requests fill {ratios[1]:.1%} of the pool, the mark is {line.high_water:.0%}"
    if ratios[0] > line.high_water:
        result = CheckResult.WARN
        words += ": beyond it requests queue or are retracted; plan fewer or shorter requests, or a larger pool"
    elif ratios[2] > line.high_water:
        result, words = CheckResult.WARN, f"{words}: within the interval it may be passed"
    else:
        result = CheckResult.PASS
    return told(
        words,
        round(ratios[1], 4),
        result=result,
        limit=line.high_water,
        low=round(ratios[0], 4),
        high=round(ratios[2], 4),
        exactness=exactness_of(plan),
        arithmetic=steps,
    )


def _reserve(plan: Plan) -> StepReserve | None:
    """What a running request holds for its next step; None where drafts or window are not known or move."""
    facts, algorithm = plan.facts, plan.algorithm
    if plan.budget.engine.kind != "sglang" or algorithm is None or plan.draft_kv is None or facts.adaptive:
        return None
    return step_reserve(
        plan.setup.release or (),
        algorithm=algorithm,
        num_steps=facts.num_steps or 1,
        topk=facts.topk or 1,
        draft_tokens=facts.num_draft_tokens or 1,
        page=plan.page,
        decode_context_parallel=facts.sizing.dcp_size or 1,
    )


def _step_reserve(plan: Plan) -> Outcome | None:
    reserve = _reserve(plan)
    if reserve is None:
        return None
    facts, running = plan.facts, plan.concurrency
    reserved = reserve.reserved * running
    twice = "" if reserve.times == 1 else ", twice, for the next step is prepared while one runs"
    steps = (
        f"one step of one request: {reserve.step} slots (steps {facts.num_steps}, top-k {facts.topk}, draft tokens "
        f"{facts.num_draft_tokens}, page {plan.page}){twice}",
        f"reserved per request: {reserve.reserved} slots; written by the drafter per step: {reserve.written} slots",
        f"{running} requests: {reserved:,} slots reserved, {reserve.written * running:,} written per step",
        *(() if reserve.is_read else (f"the rule of SGLang {facts.version} was not read: its neighbour's is taken",)),
    )
    return told(
        f"{running} running requests keep {count(reserved)} slots reserved for their next step, "
        f"{reserve.reserved} each; the drafter writes {reserve.written} of them",
        reserved,
        exactness=Exactness.EXACT if reserve.is_read else Exactness.ESTIMATE,
        arithmetic=steps,
    )


def _prediction_holds(plan: Plan) -> Outcome | None:
    """The prediction against the number that an engine of the same arguments printed or serves."""
    outcome = plan.pool.outcome
    if plan.pool.told_by != "predicted" and plan.pool.tokens is not None:
        real, whose = plan.pool.tokens.point, "the running engine"
    elif plan.start is not None and plan.start.tokens is not None:
        real, whose = plan.start.tokens, f"its last start ({plan.start.source})"
    else:
        return None
    if isinstance(outcome, NotEnoughMemory):
        return warns(
            f"{whose} has {count(real)} tokens, and by the plan there is no memory for any ({outcome.message}): the "
            "plan is not the deployment that runs",
            value=real,
            limit=0,
        )
    if not isinstance(outcome, Prediction):
        return None
    tokens = outcome.tokens
    if tokens.low <= real <= tokens.high:
        return passes(f"{whose} has {count(real)} tokens, predicted were {count(tokens.point)}", value=real)
    return warns(
        f"{whose} has {count(real)} tokens, predicted were {count(tokens.low)} to {count(tokens.high)}: the plan is "
        "not the deployment that runs, or something else takes memory before the pool is sized",
        value=real,
        limit=tokens.point,
    )


RULES = (
    kv_rule("min_target_tokens", "How many tokens will the target's pool hold?", _pool_tokens, SIZING, "tokens"),
    kv_rule("target_pool_bytes", "How large is the target's pool?", _target_pool, SIZING, "bytes"),
    kv_rule("high_water", "Do the planned requests fit?", _planned_load, SIZING, "ratio"),
    kv_rule(
        "step_reserve_tokens",
        "What do running requests keep reserved?",
        _step_reserve,
        "SGLang 0.5.18 and 0.5.23 mem_cache/allocation_sizing.py (get_alloc_reserve_per_decode)",
        "tokens",
    ),
    kv_rule("prediction", "Does the prediction hold where a number is known?", _prediction_holds, SIZING, "tokens"),
)
