"""A DSpark drafter that lies in its target's folder is read, as the engine reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from specbudget.check.gather import gather
from specbudget.check.report import judge_plan
from specbudget.domain.finding import CheckResult
from specbudget.pair.nested_drafter import load_deployment
from specbudget.serve.command import load_deployment as served
from specbudget.simulate.checkpoint import write_drafter, write_target

ARGS = "--tp 4 --speculative-algorithm DSPARK --mem-fraction-static 0.85 --model-path target"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Ling pair, its drafter within the target's folder."""
    folder = tmp_path_factory.mktemp("nested")
    write_target(folder / "target")
    write_drafter(folder / "target" / "dspark")
    return folder


def budget(folder: Path, **changes: Any) -> Path:
    """A budget of the pair that does not name the drafter; `engine` adds to its section."""
    engine = {"url": "http://127.0.0.1:9", "version": "0.5.23", "args": ARGS, **changes.pop("engine", {})}
    path = folder / "budget.yaml"
    path.write_text(yaml.safe_dump({"service": "ling", "target": {"path": "target"}, **changes, "engine": engine}))
    return path


def test_the_drafter_is_read_where_the_engine_looks(folder: Path) -> None:
    """Its KV, its weights and the rules on the pair are judged, and no path is asked for."""
    plan = gather(budget(folder))
    found = {finding.id: finding for finding in judge_plan(plan).findings}
    assert plan.drafter is not None
    assert found["artifacts.drafter_parameters"].value == 1_363_707_905
    assert found["kv.drafter_bytes_per_token"].value == 20_480
    assert found["codesign.arguments"].result is CheckResult.PASS
    assert found["codesign.draft_path"].result is CheckResult.PASS


def test_gate_and_sidecar_see_the_same_pair() -> None:
    """Else a lock that the gate writes would be out of date for the sidecar at once."""
    assert served is load_deployment


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"engine": {"version": "0.5.18"}}, id="an engine that does not look there"),
        pytest.param({"engine": {"args": "--speculative-algorithm DFLASH"}}, id="another algorithm"),
        pytest.param({"engine": {"args": f"{ARGS} --speculative-draft-model-path x"}}, id="another drafter is named"),
        pytest.param({"engine": {"kind": "vllm"}}, id="another engine"),
        pytest.param({"target": {"path": "nowhere"}}, id="no such folder"),
        pytest.param({"target": {}}, id="no target"),
    ],
)
def test_where_the_engine_takes_another_nothing_is_filled_in(folder: Path, changes: dict[str, Any]) -> None:
    """A guess would judge a drafter that never runs."""
    assert load_deployment(budget(folder, **changes)).budget.drafter.path is None


def test_what_the_budget_names_stands(folder: Path) -> None:
    """Its own path is not touched, and the algorithm may stand there alone."""
    named = budget(folder, drafter={"path": "other", "algorithm": "dspark"})
    assert load_deployment(named).budget.drafter.path == "other"
    by_algorithm = budget(folder, drafter={"algorithm": "dspark"}, engine={"args": "--tp 4"})
    assert load_deployment(by_algorithm).budget.drafter.path == "target/dspark"


def test_a_drafter_in_the_target_s_own_config_comes_first(tmp_path: Path) -> None:
    """SGLang asks the config before the folder."""
    for name in ("target", "target/dspark"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    assert load_deployment(budget(tmp_path)).budget.drafter.path == "target/dspark"
    (tmp_path / "target" / "config.json").write_text(json.dumps({"dspark_target_layer_ids": [1]}))
    assert load_deployment(budget(tmp_path)).budget.drafter.path is None
