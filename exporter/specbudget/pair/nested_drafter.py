"""A DSpark drafter in the folder `dspark` of its target: SGLang takes it where nobody names another.

Source: SGLang 0.5.23 arg_groups/speculative_hook.py (_target_checkpoint_dspark_subfolder); 0.5.18 does not look there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specbudget.budget.model import Budget, resolve
from specbudget.budget.reading import LoadedBudget, load_budget
from specbudget.domain.drafter import DraftAlgorithm, parse_algorithm
from specbudget.domain.pool_sizing.inputs import read_release
from specbudget.pair.launch_facts import launch_facts
from specbudget.sources.checkpoint.config_file import CONFIG_NAME, load_config
from specbudget.sources.checkpoint.model import CheckpointError

FOLDER = "dspark"


def load_deployment(path: Path) -> LoadedBudget:
    """A budget file with the drafter's path filled in where it lies within the target's; raises BudgetError."""
    loaded = load_budget(path)
    nested = nested_drafter(loaded.budget, path)
    if nested is None:
        return loaded
    drafter = loaded.budget.drafter.model_copy(update={"path": nested})
    return replace(loaded, budget=loaded.budget.model_copy(update={"drafter": drafter}))


def nested_drafter(budget: Budget, file: Path) -> str | None:
    """The path of the drafter that the engine finds in its target's folder; None where it takes another, or none.

    By the words of the budget alone, so that the gate and the sidecar see the same pair whether an engine runs or not.
    """
    engine, target = budget.engine, budget.target.path
    if engine.kind != "sglang" or target is None or budget.drafter.path is not None:
        return None
    launch = launch_facts(budget)
    algorithm = parse_algorithm(launch.algorithm) or budget.drafter.algorithm
    if algorithm is not DraftAlgorithm.DSPARK or launch.drafter_path is not None:
        return None
    if read_release(engine.version or "") == "0.5.18":
        return None
    folder = resolve(target, file)
    if not (folder / FOLDER / CONFIG_NAME).is_file() or _holds_drafter(folder):
        return None
    return str(Path(target) / FOLDER)


def is_nested(target: str | None, drafter: str | None) -> bool:
    """Whether a drafter's path is the folder in which SGLang looks by itself."""
    return target is not None and drafter is not None and Path(drafter) == Path(target) / FOLDER


def _holds_drafter(folder: Path) -> bool:
    """Whether the target's own config describes a block drafter, which comes first."""
    try:
        config, _ = load_config(folder / CONFIG_NAME)
    except CheckpointError:
        return False
    nested = [value for value in config.values() if isinstance(value, dict)]
    return any(key.startswith("dspark_") for part in (config, *nested) for key in part)
