"""The artifacts line: are both checkpoints whole, and do they fit where they are stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specbudget.catalog.lines import ARTIFACTS
from specbudget.check.plan import Plan
from specbudget.check.rules.kv_line import NO_DRAFTER
from specbudget.check.rules.limits import against
from specbudget.check.rules.rule import GateRule, told
from specbudget.domain.drafter_parameters import drafter_parameters
from specbudget.domain.finding import Exactness, Outcome, RuleText, fails, passes, unknown, warns
from specbudget.pair.served_weights import as_served
from specbudget.pair.side import Side
from specbudget.sources.checkpoint import Checkpoint, ProblemKind
from specbudget.sources.checkpoint.config_parameters import block_drafter_shape
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
        return fails(f"{told_ones}{more}")
    if checkpoint.problems:
        return warns("; ".join(str(problem) for problem in checkpoint.problems[:_MOST_TOLD]))
    if checkpoint.disk_bytes is None:
        return unknown(f"{checkpoint.path} holds a config and no weights: their size is not known", required=False)
    return passes(f"every file that {checkpoint.path} names is there and whole")


def _parameters(plan: Plan, artifact: str) -> Outcome | None:
    if artifact == "drafter" and not plan.has_drafter:
        return passes(NO_DRAFTER)
    if _bundled(plan, artifact):
        return _bundled_parameters(plan)
    side = _side(plan, artifact)
    if side is None:
        return unknown(f"{artifact}.path is not in the budget", required=False)
    checkpoint = side.checkpoint
    if checkpoint.parameters is None:
        stated = _from_config(plan, checkpoint) if artifact == "drafter" else None
        return stated or unknown(f"the tensors of {checkpoint.path} are not known", required=False)
    return told(_parameter_words(plan, artifact, checkpoint), checkpoint.parameters)


def _from_config(plan: Plan, checkpoint: Checkpoint) -> Outcome | None:
    """A block drafter's parameters without its weights: exact but for embedding and head, which it may hold or not."""
    shape = block_drafter_shape(checkpoint, plan.algorithm)
    loaded = None if shape is None else drafter_parameters(shape)
    if shape is None or loaded is None:
        return None
    most = loaded + 2 * shape.vocabulary_matrix
    return told(
        f"{loaded:,} are loaded, by its config; on disk up to {most:,} with an embedding and a head of its own",
        loaded,
        low=loaded,
        high=most,
        exactness=Exactness.ESTIMATE,
    )


def _not_loaded(plan: Plan, artifact: str) -> Outcome | None:
    """Weights in the folder that no engine loads: they cost storage, and in an image its size."""
    side = _side(plan, artifact)
    if side is None or not side.checkpoint.not_loaded_count:
        return None
    checkpoint = side.checkpoint
    named = [f"{f.name} ({f.why.words})" for f in checkpoint.not_loaded[:_MOST_TOLD]]
    more = checkpoint.not_loaded_count - len(named)
    files = ", ".join(named) + (f", and {more} more" if more > 0 else "")
    words = f"{size(checkpoint.not_loaded_bytes)} lie beside the weights and are not loaded: {files}"
    line = plan.budget.budget.artifacts
    if line is not None and line.image is not None:
        return warns(f"{words}; leave them out of the image", value=checkpoint.not_loaded_bytes)
    return told(words, checkpoint.not_loaded_bytes)


def _bundled_parameters(plan: Plan) -> Outcome:
    loaded = plan.drafter_loaded_weights
    if loaded is None:
        return unknown("the drafter is part of the target's checkpoint and cannot be told apart in it", required=False)
    return told(f"{loaded.resident_parameters:,} of the target's checkpoint", loaded.resident_parameters)


def _parameter_words(plan: Plan, artifact: str, checkpoint: Checkpoint) -> str:
    words = f"{checkpoint.parameters:,} on disk"
    if checkpoint.packed:
        logical = checkpoint.logical_parameters
        words += " as stored, several quantised ones in each"
        words += "" if logical is None else f": {logical:,} parameters"
    if checkpoint.storage:
        words += f" ({checkpoint.storage})"
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
        return told(f"{what} {size(spent)} on disk", spent, arithmetic=_sizes(plan)) if shown else None
    return against(
        what,
        value=spent,
        limit=limit,
        shown=size(spent),
        limit_shown=size(limit),
        fix=f"raise artifacts.{budget}, or use smaller weights",
        arithmetic=_sizes(plan),
    )


def _sizes(plan: Plan) -> tuple[str, ...]:
    """The bytes of both models' files, and of the tensors in them."""
    steps = []
    for artifact in ("target", "drafter"):
        side = _side(plan, artifact)
        if side is not None and side.checkpoint.disk_bytes is not None:
            tensors = side.checkpoint.tensor_bytes
            inner = "" if tensors is None else f", of which tensors {tensors:,} B"
            steps.append(f"{artifact}: files {side.checkpoint.disk_bytes:,} B{inner}")
    return tuple(steps)


def _resident(plan: Plan) -> Outcome | None:
    """The drafter's three numbers on one device: on disk, charged while the pool is sized, resident."""
    weights = as_served(plan.drafter_device_weights, plan.kv.drafter, plan.facts, of_drafter=True)
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
    *(
        _rule(
            f"{artifact}_not_loaded_bytes",
            f"What else lies in the {artifact}'s folder?",
            partial(_not_loaded, artifact=artifact),
            "SGLang 0.5.23 model_loader/loader.py: the index's files alone, else model.safetensors",
            unit="bytes",
        )
        for artifact in ("target", "drafter")
    ),
    _rule(
        "drafter_resident_bytes",
        "What of the drafter stays on each device?",
        _resident,
        "SGLang 0.5.23 models/dspark.py, models/dflash.py (tensors not loaded), eagle_worker_v2.py (init_lm_head)",
        unit="bytes",
    ),
)
