"""The demo as a new user starts it."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from e2e.deployment import COMMAND, free_port
from specbudget.catalog.lines import LINES
from specbudget.demo.readings import fetch

pytestmark = pytest.mark.slow


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_demo_serves_five_lines_and_ends_cleanly(tmp_path: Path) -> None:
    """Plain flushed lines with addresses off a terminal, five lines on /metrics, promtool silent, Ctrl-C ends all."""
    port = free_port()
    demo = subprocess.Popen(
        [*COMMAND, "demo", "--listen", f"127.0.0.1:{port}", "--dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # as a shell starts what it runs in the background
        preexec_fn=_ignore_interrupts,
    )
    try:
        assert demo.stdout is not None
        first = demo.stdout.readline()
        engine, sidecar = re.findall(r"http://[\d.]+:\d+", first)
        assert sidecar == f"http://127.0.0.1:{port}"
        end = time.monotonic() + 30
        while (reading := fetch(sidecar)) is None or not any("running" in n for n in reading.values):
            assert time.monotonic() < end
            time.sleep(0.3)
        with urlopen(f"{sidecar}/metrics") as response:
            body = response.read()
        for line in LINES:
            assert f'specbudget_line_state{{line="{line.id}"'.encode() in body
        promtool = shutil.which("promtool")
        if promtool is not None:
            checked = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, check=False)
            assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
        for name in ("budget.yaml", "requests", "server.log", "target", "drafter", "state"):
            assert (tmp_path / name).exists()
        began = time.monotonic()
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=10)
        assert time.monotonic() - began < 6.0
        assert demo.returncode == 0
        assert "Traceback" not in errors
        for url in (engine, sidecar):
            assert fetch(url) is None
    finally:
        demo.kill()
        demo.wait()


def test_an_unknown_scenario_is_one_line(tmp_path: Path) -> None:
    """The names that exist are told, exit 2."""
    done = subprocess.run(
        [*COMMAND, "demo", "--scenario", "nonsense", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "acceptance-drop" in done.stderr
    assert "Traceback" not in done.stderr
