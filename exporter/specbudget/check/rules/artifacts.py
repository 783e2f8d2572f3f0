"""The artifacts line: are both checkpoints whole, and do they fit where they are stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specbudget.catalog.lines import ARTIFACTS
from specbudget.check.plan import Plan
from specbudget.check.rules.limits import against
from specbudget.check.rules.rule import GateRule, told
from specbudget.domain.finding import Outcome, RuleText, fails, passes, unknown, warns
from specbudget.pair.side import Side
from specbudget.sources.checkpoint import Checkpoint, ProblemKind, StoredWeights
from specbudget.words import size

_BROKEN = frozenset(ProblemKind) - {ProblemKind.INCOMPLETE, ProblemKind.UNSUPPORTED}
_MOST_TOLD = 3


def _side(plan: Plan, artifact: str) -> Side | None:
    return plan.target if artifact == "target" else plan.drafter


def _bundled(plan: Plan, artifact: str) -> bool:
    return artifact == "drafter" and plan.drafter is None and plan.has_drafter


def _complete(plan: Plan, artifact: str) -> Outcome | None:
    side = _side(plan, artifact)
    if side is None:
        return None
    checkpoint = side.checkpoint
    broken = [problem for problem in checkpoint.problems if problem.kind in _BROKEN]
    if broken:
        told_ones = "; ".join(str(problem) for problem in broken[:_MOST_TOLD])
        more = f"; and {len(broken) - _MOST_TOLD} more" if len(broken) > _MOST_TOLD else ""
        return fails(f"{told_ones}{more}{_present(plan, artifact)}")
    if checkpoint.problems:
        return warns("; ".join(str(problem) for problem in checkpoint.problems[:_MOST_TOLD]))
    if checkpoint.disk_bytes is None:
        return unknown(f"{checkpoint.path} holds a config and no weights: their size is not known", required=False)
    stored = plan.stored.get(artifact)
    copies = "" if stored is None or not stored.ignored else f"; {_ignored(stored)}"
    return passes(f"every file that {checkpoint.path} names is there and whole{copies}")


def _ignored(stored: StoredWeights) -> str:
    """Copies in the folder that are not loaded and do not count."""
    shown = ", ".join(stored.ignored[:_MOST_TOLD])
    more = f" and {len(stored.ignored) - _MOST_TOLD} more" if len(stored.ignored) > _MOST_TOLD else ""
    return f"{len(stored.ignored)} more weight files are not loaded and not counted: {shown}{more}"


def _present(plan: Plan, artifact: str) -> str:
    """How much of a checkpoint that is not whole is there."""
    stored = plan.stored.get(artifact)
    share = None if stored is None else stored.present_share
    if stored is None or share is None or share >= 1.0:
        return ""
    return f"; {stored.tensor_bytes:,} of {stored.declared_bytes:,} B of tensors are here ({share:.1%})"


def _parameters(plan: Plan, artifact: str) -> Outcome | None:
    if artifact == "drafter" and not plan.has_drafter:
        return unknown("no second model is budgeted", required=False)
    if _bundled(plan, artifact):
        return _bundled_parameters(plan)
    side = _side(plan, artifact)
    if side is None:
        return unknown(f"{artifact}.path is not in the budget", required=False)
    checkpoint = side.checkpoint
    if checkpoint.parameters is None:
        return unknown(f"the tensors of {checkpoint.path} are not known", required=False)
    return told(_parameter_words(plan, artifact, checkpoint), checkpoint.parameters)


def _bundled_parameters(plan: Plan) -> Outcome:
    loaded = plan.drafter_loaded_weights
    if loaded is None:
        return unknown("the drafter is part of the target's checkpoint and cannot be told apart in it", required=False)
    return told(f"{loaded.resident_parameters:,} of the target's checkpoint", loaded.resident_parameters)


def _parameter_words(plan: Plan, artifact: str, checkpoint: Checkpoint) -> str:
    words = f"{checkpoint.parameters:,} on disk"
    if checkpoint.packed:
        words += " as stored: several quantised ones in each, so the logical count is larger"
    loaded = plan.drafter_loaded_weights if artifact == "drafter" else None
    if loaded is not None and loaded.resident_parameters != checkpoint.parameters:
        words += f", {loaded.resident_parameters:,} stay loaded"
        if plan.algorithm is not None and plan.algorithm.is_block:
            words += " (embedding and head are the target's)"
    return words


def _disk(plan: Plan, artifact: str) -> int | None:
    side = _side(plan, artifact)
    return None if side is None else side.checkpoint.disk_bytes


def _bytes(plan: Plan, budget: str) -> Outcome | None:
    line = plan.budget.budget.artifacts
    limit = None if line is None else getattr(line, budget)
    target, drafter = _disk(plan, "target"), _disk(plan, "drafter")
    if plan.drafter is None:
        drafter = 0
    both = None if target is None or drafter is None else target + drafter
    spent = {"target": target, "drafter": drafter, "total": both, "image": both}[budget]
    what = {"target": "the target takes", "drafter": "the drafter takes"}.get(budget, "both models take")
    if budget == "image":
        what = "the artifacts in the image take"
    if spent is None:
        return None if limit is None else unknown(f"{what} an unknown size: a checkpoint is incomplete")
    if limit is None:
        shown = budget == "target" or (budget == "drafter" and plan.drafter is not None)
        if not shown:
            return None
        return told(f"{what} {size(spent)} on disk", spent, arithmetic=_size_steps(plan, budget))
    return against(
        what,
        value=spent,
        limit=limit,
        shown=size(spent),
        limit_shown=size(limit),
        fix=f"raise artifacts.{budget}, or use smaller weights",
        arithmetic=_size_steps(plan, budget),
    )


def _size_steps(plan: Plan, budget: str) -> tuple[str, ...]:
    """Where the bytes lie: whole files, of which the tensors, and what does not count."""
    steps = []
    for artifact in (budget,) if budget in ("target", "drafter") else ("target", "drafter"):
        side, stored = _side(plan, artifact), plan.stored.get(artifact)
        if side is None:
            continue
        groups = side.checkpoint.tensor_groups
        tensors = "" if groups is None else f", of which tensors {sum(group.bytes for group in groups):,} B"
        steps.append(f"{artifact}, files with their headers: {side.checkpoint.disk_bytes:,} B{tensors}")
        if stored is not None and stored.ignored:
            steps.append(f"{artifact}: {_ignored(stored)}")
    return tuple(steps)


def _resident(plan: Plan) -> Outcome | None:
    """The drafter's three numbers on one device: on disk, charged while the pool is sized, resident."""
    weights = plan.drafter_device_weights
    if weights is None:
        return None
    words = f"{size(weights.resident_bytes)} of the drafter stay on each device"
    freed = weights.charged_bytes - weights.resident_bytes
    if freed:
        words += (
            f"; {size(weights.charged_bytes)} are charged while the KV pool is sized, {size(freed)} of it copies of "
            "embedding and head that are freed afterwards"
        )
    disk = _disk(plan, "drafter")
    arithmetic = (
        *(() if disk is None else (f"on disk, all ranks: {disk:,} B",)),
        f"charged per device at --tp {plan.tensor_parallel}: {weights.charged_bytes:,} B",
        f"resident per device: {weights.resident_bytes:,} B",
    )
    return told(words, weights.resident_bytes, arithmetic=arithmetic)


def _rule(what: str, asks: str, check: Callable[[Plan], Outcome | None], source: str, unit: str = "") -> GateRule:
    return GateRule(text=RuleText(id=f"{ARTIFACTS.id}.{what}", asks=asks, source=source, unit=unit), check=check)


_HEADERS = "the weight index and the tensor headers of the checkpoint; SGLang loads what the index names"

RULES = (
    *(
        _rule(
            f"{artifact}_complete",
            f"Is the {artifact}'s checkpoint whole?",
            partial(_complete, artifact=artifact),
            _HEADERS,
        )
        for artifact in ("target", "drafter")
    ),
    *(
        _rule(
            f"{artifact}_parameters",
            f"How many parameters does the {artifact} have?",
            partial(_parameters, artifact=artifact),
            _HEADERS,
            unit="parameters",
        )
        for artifact in ("target", "drafter")
    ),
    *(
        _rule(
            f"{budget.id}_bytes",
            f"Do {budget.spent} fit?",
            partial(_bytes, budget=budget.id),
            "sizes of the files that the index names; other files of the folder do not count",
            unit="bytes",
        )
        for budget in ARTIFACTS.budgets
    ),
    _rule(
        "drafter_resident_bytes",
        "What of the drafter stays on each device?",
        _resident,
        "SGLang 0.5.23 models/dspark.py, models/dflash.py (tensors not loaded), eagle_worker_v2.py (init_lm_head)",
        unit="bytes",
    ),
)
