"""The budgets that people copy from: judged on the pair that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specbudget.check.gather import gather
from specbudget.check.report import judge_plan
from specbudget.domain.finding import CheckResult

ROOT = Path(__file__).parents[2]


def of_readme() -> str:
    """The budget in the README."""
    found = re.search(r"### The budget\n\n```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("text", [of_readme(), (ROOT / "examples/budget.yaml").read_text()], ids=["README", "example"])
def test_a_written_budget_fits_its_pair(text: str, ling_folder: Path, tmp_path: Path) -> None:
    """Nothing fails or warns; what follows loading is known from the first start on."""
    for written, real in (("/models/Ling-3.0-flash-dspark", "drafter"), ("/models/Ling-3.0-flash", "target")):
        assert written in text
        text = text.replace(written, str(ling_folder / real))
    file = tmp_path / "budget.yaml"
    file.write_text(text)
    report = judge_plan(gather(file, asks_engine=False))
    assert [finding.id for finding in report.deciding] == ["staging.cold_start"]
    assert not [f.id for f in report.counted if f.result in (CheckResult.WARN, CheckResult.FAIL)]
