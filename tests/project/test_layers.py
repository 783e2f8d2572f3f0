"""The import contracts of pyproject.toml hold, and they notice when they do not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter on the package below `root` with the contracts of `root`'s pyproject.toml."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "exporter")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_layers_of_the_package_are_kept() -> None:
    """No module imports what its layer may not."""
    linted = lint_imports(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


BREAKS = [
    ("a source that imports the server", "sources/broken.py", "import specbudget.serve\n", "layers point inward"),
    ("the gate that imports the server", "check/broken.py", "import specbudget.serve\n", "layers point inward"),
    ("the domain that imports the catalog", "domain/broken.py", "import specbudget.catalog\n", "layers point inward"),
    ("the domain that logs", "domain/broken.py", "import logging\n", "domain and catalog are pure"),
    ("the catalog that reads YAML", "catalog/broken.py", "import yaml\n", "domain and catalog are pure"),
]


@pytest.mark.parametrize(
    ("module", "text", "contract"), [case[1:] for case in BREAKS], ids=[case[0] for case in BREAKS]
)
def test_a_forbidden_import_breaks_its_contract(tmp_path: Path, module: str, text: str, contract: str) -> None:
    """In a copy of the package each kind of forbidden import makes the linter fail and name the contract."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(
        ROOT / "exporter", tmp_path / "exporter", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    (tmp_path / "exporter" / "specbudget" / module).write_text(text)
    linted = lint_imports(tmp_path)
    assert linted.returncode == 1, linted.stdout + linted.stderr
    assert f"{contract} BROKEN" in linted.stdout
