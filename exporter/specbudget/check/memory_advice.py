"""What to write where the pool is too small or its size too vague: which fraction, and where the numbers come from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from specbudget.check.plan import Plan
from specbudget.domain.pool_sizing import PoolInputs, Prediction, predict_pool
from specbudget.words import size

_STEPS = 100
_MOST = 0.97
"""Above this nothing is left for a forward pass on any device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fraction:
    """The smallest mem_fraction_static, in hundredths, that is sure to do, and what it leaves of each device."""

    value: float
    left_bytes: float


def fraction_for(inputs: PoolInputs, tokens: float) -> Fraction | None:
    """None where no fraction up to 0.97 gives so many; the pool grows with it, so that a search by halves finds it."""

    def held(step: int) -> Prediction | None:
        found = predict_pool(replace(inputs, fraction=step / _STEPS, fraction_estimated=False))
        return found if isinstance(found, Prediction) and found.tokens.low >= max(tokens, 1) else None

    low, high = 1, round(_MOST * _STEPS)
    best = held(high)
    if best is None:
        return None
    while low < high:
        middle = (low + high) // 2
        found = held(middle)
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return Fraction(value=high / _STEPS, left_bytes=best.slack_bytes)


def larger_pool(plan: Plan, tokens: float) -> str:
    """How the target's pool gets to hold so many tokens, with the fraction that does it."""
    others = "use more devices, or a drafter with fewer KV heads"
    inputs = plan.pool.inputs
    if inputs is None or inputs.fraction is None:
        return f"raise --mem-fraction-static, {others}"
    fraction, uncapped = inputs.fraction, ""
    if inputs.max_tokens is not None and inputs.max_tokens < tokens:
        uncapped = f"raise --max-total-tokens from {inputs.max_tokens:,} to {math.ceil(tokens):,}"
        inputs = replace(inputs, max_tokens=None)
    wanted = fraction_for(inputs, tokens)
    if wanted is None:
        return f"no --mem-fraction-static up to {_MOST} holds so many: {others}"
    if wanted.value <= fraction:
        return uncapped or others
    own = plan.pool.own_fraction
    said = "" if own is None else f"; SGLang by itself would take {own:g}"
    about = "about " if inputs.fraction_estimated else ""
    steps = (
        *([uncapped] if uncapped else []),
        f"raise --mem-fraction-static from {about}{fraction:g} to {wanted.value:g}, which leaves "
        f"{size(wanted.left_bytes)} of each device for activations and graphs{said}",
    )
    return f"{' and '.join(steps)}; or {others}"


def surer_pool(plan: Plan) -> str:
    """Which evidence narrows the prediction: that which is not in the budget yet."""
    engine, inputs = plan.budget.engine, plan.pool.inputs
    wanted = []
    if inputs is not None and inputs.fraction_estimated:
        wanted.append(f"set --mem-fraction-static, which is taken to be {inputs.fraction:g}")
    if plan.start is None:
        if engine.free_before_load is None:
            wanted.append(
                "set engine.free_before_load to `avail mem` of the first `Load weight begin` in an engine's log, or "
                "name such a log as engine.server_log"
            )
        else:
            wanted.append("name the log of a start of this pair as engine.server_log")
    return "; ".join(wanted) or "start the engine once and name its new log as engine.server_log"
