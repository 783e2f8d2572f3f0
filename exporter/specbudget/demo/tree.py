"""The demo's process tree: the stand-in engine first, the sidecar on the budget that it wrote."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from specbudget.errors import SpecbudgetError

FIRST_PORT = 9877
START_SECONDS = 20.0
STOP_SECONDS = 3.0
SHOWN_BYTES = 2000

_WRONG_USE = 2
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\S+ [A-Z]+ ")


class DemoError(SpecbudgetError):
    """A process of the demo did not start or ended by itself."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Two running processes, their addresses and the folder of the small deployment."""

    engine: subprocess.Popen[bytes]
    sidecar: subprocess.Popen[bytes]
    engine_url: str
    sidecar_url: str
    folder: Path

    def check(self) -> None:
        """Raises DemoError with the last output of a process that ended."""
        for process, name in ((self.engine, "engine"), (self.sidecar, "sidecar")):
            _check(process, name, self.folder)


@contextlib.contextmanager
def running(*, scenario: str, listen: tuple[str, int] | None, folder: Path, seed: int, speed: float) -> Iterator[Tree]:
    """Starts both processes and ends them on the way out, whatever happens. Raises DemoError."""
    engine_port = _free_port("127.0.0.1", 0)
    host, port = listen if listen is not None else ("127.0.0.1", _free_port("127.0.0.1", FIRST_PORT))
    budget = _cleared(folder) / "budget.yaml"
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(
            _process(
                folder,
                "engine",
                ["simulate", "--scenario", scenario, "--listen", f"127.0.0.1:{engine_port}", "--dir", str(folder)],
                ["--seed", str(seed), "--speed", str(speed)],
            )
        )
        deadline = time.monotonic() + START_SECONDS
        while not budget.exists():
            _check(engine, "engine", folder)
            if time.monotonic() > deadline:
                raise DemoError(f"the stand-in engine wrote no budget within {START_SECONDS:g} s: see {folder}")
            time.sleep(0.05)
        shown = f"[{host}]" if ":" in host else host
        sidecar = stack.enter_context(
            _process(
                folder,
                "sidecar",
                ["serve", "--budget", str(budget), "--listen", f"{shown}:{port}", "--state", str(folder / "state")],
            )
        )
        yield Tree(
            engine=engine,
            sidecar=sidecar,
            engine_url=f"http://127.0.0.1:{engine_port}",
            sidecar_url=f"http://{'127.0.0.1' if host == '0.0.0.0' else shown}:{port}",
            folder=folder,
        )


def _cleared(folder: Path) -> Path:
    """The folder, made where it is not there, without a budget of an earlier run. Raises DemoError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "budget.yaml").unlink(missing_ok=True)
        # what a process says goes there too
        _output(folder, "engine").touch()
    except OSError as error:
        raise DemoError(f"--dir {folder}: cannot be written: {error.strerror or error}: name another folder") from error
    return folder


@contextlib.contextmanager
def _process(folder: Path, name: str, *arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with _output(folder, name).open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "specbudget", *chain(*arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C goes to the demo alone, which ends its children in order
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _output(folder: Path, name: str) -> Path:
    return folder / f"{name}.out"


def _check(process: subprocess.Popen[bytes], name: str, folder: Path) -> None:
    if process.poll() is None:
        return
    with _output(folder, name).open("rb") as output:
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - SHOWN_BYTES))
        tail = output.read().decode("utf-8", "replace").strip()
    said = "\n".join(line for line in tail.splitlines() if not _LOG_LINE.match(line))
    if process.returncode == _WRONG_USE and said:
        # it has said what is wrong and what to do, and that it ended is no news beside it
        raise DemoError(said)
    raise DemoError(f"the {name} ended with status {process.returncode}:\n{tail}")


def _free_port(host: str, first: int) -> int:
    """`first`, or the next port above it that is free; with 0 any free one."""
    for port in [0] if first == 0 else range(first, first + 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    raise DemoError(f"no free port from {first} on: give one with --listen")
