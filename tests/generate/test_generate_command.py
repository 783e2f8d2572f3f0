"""`specbudget generate`: writes what differs, checks without writing, refuses in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbudget.cli import GENERATED, main
from specbudget.generate.command import ALL, MODULES

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "budget.yaml"
FILES = {"alerts/recording.rules.yml", "alerts/alerts.rules.yml", "alerts/slo/sloth.yml", "alerts/slo/pyrra.yml"}


def generate(*arguments: str | Path) -> int:
    return main(["generate", *map(str, arguments)])


def budget(folder: Path, acceptance: str, more: str = "") -> Path:
    file = folder / "budget.yaml"
    file.write_text(f"service: chat\nbudget:\n  acceptance: {acceptance}\n{more}")
    return file


def test_the_committed_files_are_those_of_the_example() -> None:
    """`make generate` writes them anew."""
    assert generate("all", "--budget", EXAMPLE, "--out", ROOT, "--check") == 0


def test_the_command_knows_every_target() -> None:
    """What `generate` takes is what there are modules for, and `all`."""
    assert set(GENERATED) == {"all", *MODULES}
    assert set(ALL) <= set(MODULES)


def test_files_are_written_once_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths that were written are printed; a file that was changed is told and nothing is written over it."""
    assert generate("rules", "--budget", EXAMPLE, "--out", tmp_path) == 0
    assert set(capsys.readouterr().out.split()) == {str(tmp_path / name) for name in FILES}
    assert generate("rules", "--budget", EXAMPLE, "--out", tmp_path) == 0
    assert capsys.readouterr().out == ""
    changed = tmp_path / "alerts" / "alerts.rules.yml"
    changed.write_text("groups: []\n")
    assert generate("rules", "--budget", EXAMPLE, "--out", tmp_path, "--check") == 1
    assert str(changed) in capsys.readouterr().err
    assert changed.read_text() == "groups: []\n"


def test_a_hopeless_objective_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below one half no burn rate works: file, key, reason and the other forms are named, and nothing is written."""
    file = budget(tmp_path, "{target_length: 2.6, objective: 0.4}")
    assert generate("rules", "--budget", file, "--out", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"{file}: budget.acceptance.objective: 0.4 ")
    assert "`sli: batch` or `sli: step`" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("objective", [0.5, 0.6, 0.9, 0.95, 0.999])
def test_every_other_objective_has_rules(tmp_path: Path, objective: float) -> None:
    """From one half on, windows are stretched where a factor could not be reached."""
    file = budget(tmp_path, f"{{target_length: 2.6, objective: {objective}}}")
    assert generate("rules", "--budget", file, "--out", tmp_path) == 0


def test_without_an_slo_the_other_alerts_are_there(tmp_path: Path) -> None:
    """No burn alert, no specification for others, and nothing is broken."""
    file = budget(tmp_path, "{}")
    assert generate("rules", "--budget", file, "--out", tmp_path) == 0
    text = (tmp_path / "alerts" / "alerts.rules.yml").read_text()
    assert "FastBurn" not in text
    assert "SpecbudgetAcceptanceCollapsed" in text
    assert not (tmp_path / "alerts" / "slo").exists()


def test_labels_of_the_fleet_can_be_chosen(tmp_path: Path) -> None:
    """`rules.labels` stands in every aggregation in place of cluster and namespace."""
    file = budget(tmp_path, "{target_length: 2.6}", "rules: {labels: [region, specbudget_service]}\n")
    assert generate("rules", "--budget", file, "--out", tmp_path) == 0
    text = (tmp_path / "alerts" / "alerts.rules.yml").read_text()
    assert "by (region, specbudget_service)" in text
    assert "namespace" not in text


def test_files_of_another_service_are_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two budgets with one output folder: the second is refused in one line, the first one's files stay."""
    assert generate("rules", "--budget", EXAMPLE, "--out", tmp_path) == 0
    before = {path: path.read_text() for path in tmp_path.rglob("*.yml")}
    other = budget(tmp_path, "{target_length: 2}")
    capsys.readouterr()
    assert generate("all", "--budget", other, "--out", tmp_path) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "belongs to the service ling-flash-chat" in said
    assert "an --out of its own" in said
    assert {path: path.read_text() for path in tmp_path.rglob("*.yml")} == before
    assert not (tmp_path / "docs").exists()


def test_files_of_all_services_are_written_by_any(tmp_path: Path) -> None:
    """Alertmanager's files name no service, so a second budget may write them where the first did."""
    assert generate("alertmanager", "--budget", EXAMPLE, "--out", tmp_path) == 0
    assert generate("alertmanager", "--budget", budget(tmp_path, "{target_length: 2}"), "--out", tmp_path) == 0
