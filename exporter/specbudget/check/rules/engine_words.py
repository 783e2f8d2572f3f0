"""Advice in the words of the engine that the budget is of: an option of another engine helps nobody."""

from __future__ import annotations

from specbudget.check.plan import Plan

_DRAFT_TOKENS = {
    "sglang": "set --speculative-num-steps or --speculative-num-draft-tokens in engine.args",
    "vllm": "give num_speculative_tokens in --speculative-config in engine.args",
}
"""Where an engine is told how many tokens to draft, by its kind."""


def is_sglang(plan: Plan) -> bool:
    """Whether the engine is the one whose sources the rules on its start were read from."""
    return plan.budget.engine.kind == "sglang"


def set_draft_tokens(plan: Plan) -> str:
    """How the number of draft tokens becomes known."""
    kind = plan.budget.engine.kind
    return _DRAFT_TOKENS.get(kind, f"the arguments of {kind} are not read yet")


def not_read(plan: Plan, what: str) -> str:
    """That `what` is not known of an engine of this kind, or of one whose arguments are missing."""
    kind = plan.budget.engine.kind
    return f"{what} is not known: " + (
        "set engine.args" if is_sglang(plan) else f"that was read of SGLang only, not of {kind}"
    )
