"""What the rules of the KV line share."""

from __future__ import annotations

from collections.abc import Callable

from specbudget.budget.model import KvLine
from specbudget.catalog.lines import KV
from specbudget.check.plan import Plan
from specbudget.check.rules.engine_words import set_draft_tokens
from specbudget.check.rules.rule import GateRule
from specbudget.domain.finding import Exactness, Outcome, RuleText
from specbudget.domain.pool_sizing import NotEnoughMemory, Prediction

NO_DRAFTER = "no second model"

GEOMETRY = "SGLang 0.5.18 and 0.5.23 model_executor/pool_configurator.py; the checkpoints' config.json"
SIZING = "SGLang 0.5.18 and 0.5.23 mem_cache/kv_cache_configurator.py; engine.free_before_load, or its log"
OWN_NEED = "rows = min(context, the layer's own window) + one verify step, over the planned requests"


def line_of(plan: Plan) -> KvLine | None:
    """The budget's KV line; None where it is not budgeted."""
    return plan.budget.budget.kv


def limit_of(plan: Plan, key: str) -> float | None:
    """One of the line's limits."""
    line = line_of(plan)
    return None if line is None else getattr(line, key)


def exactness_of(plan: Plan) -> Exactness:
    """How the pool's tokens are known."""
    return Exactness(plan.pool.certainty)


def steps_of(plan: Plan) -> tuple[str, ...]:
    """The arithmetic of the prediction, and whose number the pool's tokens are."""
    outcome = plan.pool.outcome
    steps = tuple(map(str, outcome.steps)) if isinstance(outcome, Prediction | NotEnoughMemory) else ()
    return (*steps, *((f"tokens of the pool: {plan.pool.told_by}",) if plan.pool.told_by else ()))


def why_no_element(kv_dtype: str | None) -> str:
    """Why an element of a KV has no size: no dtype is known, or it is one with scales."""
    if kv_dtype in (None, "auto"):
        return "neither config.json nor weights tell its dtype: set --kv-cache-dtype"
    return f"the KV dtype {kv_dtype} has no plain size per element"


def why_no_drafter(plan: Plan) -> str:
    """What is missing of the drafter's KV."""
    holder = plan.drafter_holder
    if plan.algorithm is None:
        return "the algorithm is not known: set drafter.algorithm"
    if holder is None:
        return "drafter.path is not in the budget"
    problems = [str(problem) for problem in holder.checkpoint.problems]
    if problems:
        return problems[0]
    if plan.kv.drafter.geometry is None:
        return "its layers are not described in the checkpoint"
    if plan.kv.drafter_element_bytes is None:
        return why_no_element(plan.facts.draft_kv_dtype or plan.facts.kv_dtype)
    return f"the number of draft tokens is not known: {set_draft_tokens(plan)}"


def kv_rule(what: str, asks: str, check: Callable[[Plan], Outcome | None], source: str, unit: str = "") -> GateRule:
    """A rule of this line."""
    return GateRule(text=RuleText(id=f"{KV.id}.{what}", asks=asks, source=source, unit=unit), check=check)


def rows_of(plan: Plan, tokens: int) -> int:
    """Rows of a rank's pools behind a number of tokens: 0.5.23 reports those of all decode-context ranks together."""
    release = plan.setup.release
    return tokens if release == (0, 5, 18) else tokens // plan.kv.decode_context_parallel
