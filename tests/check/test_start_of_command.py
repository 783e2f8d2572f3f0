"""What the command costs to start, and what it says while it works."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time

import pytest
from tests.check.plans import PlanFolder
from tests.check.test_reference import record

from specbudget.check.progress import Progress

_ASK = """
import json, sys
from specbudget.cli import main
code = main(sys.argv[1:])
print(json.dumps([name for name in ("aiohttp", "numpy", "prometheus_client", "rich") if name in sys.modules]))
sys.exit(code)
"""


def imported(plans: PlanFolder, *words: str) -> list[str]:
    """The heavy packages that one run of the command imports."""
    command = [sys.executable, "-c", _ASK, "check", "--budget", str(plans.file), "--format", "json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_nothing_heavy_is_imported_without_need(plans: PlanFolder) -> None:
    """No HTTP client where no engine listens, no arrays without request records, no terminal for JSON."""
    plans.write(budget__acceptance={"target_length": 2.0})
    assert imported(plans) == []
    (plans.folder / "bench.json").write_text('{"profiles": {"default": {"length": 4.0}}}')
    plans.write(budget__acceptance={"target_length": 2.0, "reference": "bench.json"})
    assert imported(plans) == []
    (plans.folder / "requests.log").write_text(record(100, 20, 60))
    plans.write(budget__acceptance={"target_length": 2.0, "reference": "requests.log"})
    assert imported(plans) == ["numpy"]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_progress_shows_on_a_terminal_once_it_takes_long() -> None:
    """One line that is rewritten and taken away at the end, with nothing in it that a terminal would obey."""
    terminal = Terminal()
    with Progress(terminal, patience=0.01) as progress:
        progress.working("reading /a\x1b[2Jb")
        deadline = time.monotonic() + 5
        while not terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        progress.working("asking")
    shown = terminal.getvalue()
    assert "reading /a?[2Jb" in shown
    assert shown.endswith("\r\x1b[2K")
    assert "asking" in shown


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_progress_is_silent_for_quick_work_and_in_a_pipe(stream: io.StringIO) -> None:
    """A pipe gets nothing however long it takes."""
    with Progress(stream, patience=60.0 if stream.isatty() else 0.0) as progress:
        progress.working("reading")
    assert stream.getvalue() == ""
