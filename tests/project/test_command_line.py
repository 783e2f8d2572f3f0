"""The command line by itself, before any command runs."""

from __future__ import annotations

import pytest

from specbudget.cli import main


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever types the bare name is told each command with what it does; wrong use all the same, exit 2."""
    assert main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    for line in (
        "check     the gate before rollout",
        "serve     exporter and SLO sidecar",
        "demo      a stand-in engine",
    ):
        assert line in told.err
