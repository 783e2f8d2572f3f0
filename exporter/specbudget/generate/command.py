"""`specbudget generate`: rules, routes, pages and runbook of a budget; it never needs the engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path, PurePosixPath

from specbudget.budget.model import Budget
from specbudget.budget.reading import load_budget
from specbudget.generate.files import CannotGenerate, Files, stale, write

ALL: tuple[str, ...] = ("rules", "alertmanager", "dashboards", "runbook")
"""Targets of `all`, in the order in which they are written."""

MODULES: dict[str, str] = {
    "rules": "specbudget.generate.rules",
    "alertmanager": "specbudget.generate.alertmanager",
    "dashboards": "specbudget.generate.dashboards.render",
    "runbook": "specbudget.generate.runbook",
}
"""The module of each target; its `files(budget)` renders what the target writes. Imported only when asked for."""


def run_generate(target: str, budget: Path, out: Path, *, check: bool) -> int:
    """Writes the files of a target below `out`; with `check` writes nothing and returns 1 where one is out of date.

    Raises BudgetError for a budget that cannot be used, CannotGenerate, CannotWrite.
    """
    loaded = load_budget(budget).budget
    files: dict[PurePosixPath, str] = {}
    try:
        for name in ALL if target == "all" else (target,):
            files |= renderer(name)(loaded)
    except CannotGenerate as error:
        raise CannotGenerate(f"{budget}: {error}") from error
    if check:
        outdated = stale(files, out)
        for path in outdated:
            again = f"run `specbudget generate {target} --budget {budget} --out {out}`"
            print(f"{out / path}: not what the budget says: {again}", file=sys.stderr)
        return 1 if outdated else 0
    for path in write(files, out):
        print(out / path)
    return 0


def renderer(name: str) -> Callable[[Budget], Files]:
    """What renders a target's files."""
    found: Callable[[Budget], Files] = import_module(MODULES[name]).files
    return found
