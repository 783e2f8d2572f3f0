"""Every age of Prometheus and vmalert that is supported reads the files of every kind of budget."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.prometheus_tools import Suite, tool

from specbudget.budget.reading import load_budget
from specbudget.generate.rules import files

ROOT = Path(__file__).parents[2]
SLO = "target_length: 2.6, objective: 0.95"
BUDGETS = {
    "example": (ROOT / "examples" / "budget.yaml").read_text(),
    "full": (ROOT / "tests" / "budget" / "full.yaml").read_text(),
    "nothing budgeted": "service: chat\n",
    "vllm": f"service: chat\nengine: {{kind: vllm}}\nbudget: {{acceptance: {{{SLO}, sli: step}}}}\n",
    "batch": f"service: chat\nbudget: {{acceptance: {{{SLO}, sli: batch}}}}\n",
    "stretched windows": "service: chat\nbudget: {acceptance: {target_length: 2.6, objective: 0.6, window: 7d}}\n",
    "labels": f"service: chat\nrules: {{labels: [zone, specbudget_service]}}\nbudget: {{acceptance: {{{SLO}}}}}\n",
    "text in links": "service: chat\nlinks: {runbook: 'https://x/{{y}}?a=\"b\"', dashboards: 'https://g/模型'}\n",
}


@pytest.fixture(params=BUDGETS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The two files of rules of a budget."""
    (tmp_path / "budget.yaml").write_text(BUDGETS[request.param])
    made = files(load_budget(tmp_path / "budget.yaml").budget)
    kept = []
    for name in ("recording.rules.yml", "alerts.rules.yml"):
        (content,) = (text for path, text in made.items() if path.name == name)
        kept.append(tmp_path / name)
        kept[-1].write_text(content)
    return kept


@pytest.mark.parametrize("suite", Suite)
def test_promtool_reads_them(written: list[Path], suite: Suite) -> None:
    """Expressions, templates and names are taken, and no rule is there twice."""
    command = [tool("promtool", suite), "check", "rules", "--lint=all", "--lint-fatal", *written]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("suite", Suite)
def test_vmalert_reads_them(written: list[Path], suite: Suite) -> None:
    """With its own parser of expressions and of templates, from vmalert 1.79 on."""
    command = [
        tool("vmalert", suite),
        "-dryRun",
        "-datasource.url=http://127.0.0.1:1",
        *(f"-rule={f}" for f in written),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("suite", Suite)
def test_vmalert_refuses_what_is_wrong(suite: Suite, tmp_path: Path) -> None:
    """The check above can fail: an expression, a template and a key that are wrong are refused."""
    for wrong in ("expr: sum(", "expr: up\n        annotations: {a: '{{ nothing }}'}", "expr: up\n        unknown: 1"):
        file = tmp_path / "wrong.yml"
        file.write_text(f"groups:\n  - name: a\n    rules:\n      - alert: A\n        {wrong}\n")
        command = [tool("vmalert", suite), "-dryRun", "-datasource.url=http://127.0.0.1:1", f"-rule={file}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0, wrong
