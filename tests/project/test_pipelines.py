"""The example pipelines are YAML, and every option of ours in them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from specbudget.cli import main

PIPELINES = sorted((Path(__file__).parents[2] / "docs" / "pipelines").glob("*.yml"))


@pytest.mark.parametrize("file", PIPELINES, ids=lambda path: path.name)
def test_a_pipeline_speaks_as_the_command_does(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each call of the gate names options that `check --help` lists."""
    assert isinstance(yaml.safe_load(file.read_text()), dict)
    calls = re.findall(r"^(?!\s*#).*specbudget check (.*)$", file.read_text(), re.M)
    assert calls
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    for call in calls:
        assert set(re.findall(r"--[a-z-]+", call)) <= known
