"""Whether target and drafter stand in each other's place."""

from __future__ import annotations

from specbudget.check.plan import Plan
from specbudget.domain.finding import CheckResult, Outcome, fails, passes, warns
from specbudget.pair.facts import stated_algorithm

_FIX = "swap target.path and drafter.path"


def roles(plan: Plan) -> Outcome | None:
    """None without two checkpoints whose classes are known.

    They are swapped where the target calls itself a drafter and the other, which does not, is the larger. Two plain
    models may be a pair either way round, of which a larger drafter is odd.
    """
    if plan.target is None or plan.drafter is None:
        return None
    target, drafter = plan.target.checkpoint, plan.drafter.checkpoint
    if target.architecture is None or drafter.architecture is None:
        return None
    target_is, drafter_is = stated_algorithm(target), stated_algorithm(drafter)
    sizes = (target.parameters, drafter.parameters)
    larger = None if None in sizes else (drafter.parameters or 0) > (target.parameters or 0)
    counted = "" if larger is None else f" of {drafter.parameters:,} parameters beside {target.parameters:,}"
    if target_is is not None and drafter_is is None and larger is not False:
        return fails(
            f"target and drafter are swapped: {target.path} is a {target_is} drafter ({target.architecture}), "
            f"{drafter.path} is none ({drafter.architecture}{counted}): {_FIX}"
        )
    if larger and drafter_is is None:
        return warns(f"the drafter {drafter.path} is the larger model,{counted}: if they are swapped, {_FIX}")
    return passes("the target is the larger model" if larger is False else "the drafter calls itself one")


def are_swapped(plan: Plan) -> str | None:
    """What is said of a pair that is certainly swapped; None of any other."""
    found = roles(plan)
    return found.message if found is not None and found.result is CheckResult.FAIL else None
