"""Fixtures of the gate: `plans`, a folder with a plan that passes, and the published pair `ling`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.check.plans import Judged, PlanFolder

from specbudget.budget.model import Budget
from specbudget.check.plan import Plan
from specbudget.check.report import judge_plan
from specbudget.pair.side import Side, read_side
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.sources.checkpoint import read_checkpoint

LING_ARGS = (
    "--tp 4 --page-size 64 --mem-fraction-static 0.85 --speculative-algorithm DSPARK "
    "--enable-linear-replayssm-spec --linear-replayssm-cache-len 32"
)


@pytest.fixture
def plans(tmp_path: Path) -> PlanFolder:
    """A folder with a plan that passes."""
    return PlanFolder(tmp_path)


@pytest.fixture(scope="session")
def ling_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ling-3.0-flash and its DSpark drafter: published configs, true headers, no weights."""
    folder = tmp_path_factory.mktemp("ling")
    write_target(folder / "target")
    write_drafter(folder / "drafter")
    return folder


@pytest.fixture(scope="session")
def ling_sides(ling_folder: Path) -> tuple[Side, Side]:
    """Both checkpoints, read once."""
    target, drafter = (read_side(read_checkpoint(ling_folder / name)) for name in ("target", "drafter"))
    return target, drafter


@pytest.fixture
def ling(ling_folder: Path, ling_sides: tuple[Side, Side]) -> Callable[..., Judged]:
    """Judges the published pair: `ling(kv={...}, engine={...})` with the lines and the engine's keys given."""
    target, drafter = ling_sides

    def judge(*, engine: dict[str, Any] | None = None, **lines: Any) -> Judged:
        budget = Budget.model_validate(
            {
                "service": "ling",
                "engine": {"version": "0.5.23", "args": LING_ARGS, "free_before_load": "182272MiB", **(engine or {})},
                "target": {"path": "target"},
                "drafter": {"path": "drafter", "algorithm": "dspark"},
                "budget": lines,
            }
        )
        plan = Plan(budget=budget, budget_file=ling_folder / "budget.yaml", target=target, drafter=drafter)
        return Judged(replace(plan), judge_plan(plan))

    return judge
