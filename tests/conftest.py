"""What a run of the tests tells besides their results."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows what tests measured; nothing of it is asserted by a clock."""
    reports = terminalreporter.stats.get("passed", ())
    told = [f"{name}: {value}" for report in reports for name, value in getattr(report, "user_properties", ())]
    if told:
        terminalreporter.section("measured")
        for line in told:
            terminalreporter.write_line(line)
