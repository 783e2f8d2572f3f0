"""The demo as a new user starts it."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import threading
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--scenario", "acceptance_drop"), "did you mean acceptance-drop?", id="an unknown scenario"),
        pytest.param(("--speed", "0"), "--speed: 0.0: give a number above 0", id="a speed of nothing"),
        pytest.param(("--dir", "/dev/null"), "--dir /dev/null: cannot be written", id="a folder that is none"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, words: tuple[str, str], told: str) -> None:
    """What is wrong and what to do, with nothing before it about processes that ended; exit 2."""
    folder = () if "--dir" in words else ("--dir", str(tmp_path))
    done = subprocess.run([*COMMAND, "demo", *words, *folder], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert "ended with" not in done.stderr


def test_a_child_that_says_what_is_wrong_is_heard_alone(tmp_path: Path) -> None:
    """A port that is taken: the sidecar's own line, without its log and without the news that it ended."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [*COMMAND, "demo", "--listen", address, "--dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"--listen {address}: ")
    assert done.stderr.count("\n") == 1


def test_a_plain_line_that_is_not_ok_says_why(tmp_path: Path) -> None:
    """Below the states stands the rule that the pair breaks, once and not with every line."""
    demo = subprocess.Popen(
        [*COMMAND, "demo", "--scenario", "pair-unfit", "--speed", "4", "--dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert demo.stdout is not None
        # a demo that says nothing of it would be read without end
        ending = threading.Timer(60.0, demo.send_signal, (signal.SIGINT,))
        ending.start()
        seen: list[str] = []
        for line in demo.stdout:
            seen.append(line)
            if "codesign breach  |" in line and sum("codesign breach  |" in each for each in seen) == 3:
                break
        ending.cancel()
        told = [line for line in seen if line.strip().startswith("codesign breach: ")]
        assert len(told) == 1
        assert "codesign.taps_range: taps [47]" in told[0]
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=10)
