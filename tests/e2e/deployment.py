"""Real processes for end-to-end tests: the stand-in engine and the sidecar, as a user starts them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specbudget.demo.readings import Reading, fetch

COMMAND = [sys.executable, "-m", "specbudget"]


@dataclass
class Deployment:
    """A running pair and its folder."""

    engine: subprocess.Popen[bytes]
    sidecar: subprocess.Popen[bytes]
    engine_url: str
    url: str
    folder: Path
    budget: Path

    def reading(self) -> Reading | None:
        """What /metrics says now; None while nobody answers."""
        return fetch(self.url)

    def wait_for(self, what: str, holds: Callable[[Reading], bool], seconds: float = 30.0) -> Reading:
        """The first reading for which `holds`; fails after `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reading = self.reading()
            if reading is not None and holds(reading):
                return reading
            time.sleep(0.2)
        raise AssertionError(f"not within {seconds} s: {what}")

    def truth(self) -> dict[str, Any]:
        """The stand-in's exact totals."""
        return dict(json.loads((self.folder / "truth.json").read_text()))

    def end_engine(self) -> dict[str, Any]:
        """Ends the engine; returns its final totals."""
        stop(self.engine)
        return self.truth()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def reserved_ports(count: int) -> list[int]:
    """Ports that nobody listens on and that no connection is given by chance: they can be told before they are used."""
    first_of_connections = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    candidates = iter(random.sample(range(10_000, first_of_connections), 20 * count))
    while len(found) < count:
        port = next(candidates)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


def stop(process: subprocess.Popen[bytes]) -> None:
    """Sends SIGTERM and waits, long enough for a machine that is busy."""
    process.send_signal(signal.SIGTERM)
    process.wait(60.0)


@contextlib.contextmanager
def started(folder: Path, name: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """One process of the command line, its output in `name`.out; killed on the way out."""
    with (folder / f"{name}.out").open("ab") as output:
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment}
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


@contextlib.contextmanager
def deployed(
    scenario: str,
    folder: Path,
    *,
    speed: float = 1.0,
    seed: int = 0,
    port: int | None = None,
    budgeted: Callable[[str], str] | None = None,
) -> Iterator[Deployment]:
    """The stand-in in `scenario` and a sidecar on `port`, by default a free one.

    The sidecar goes by the budget that the stand-in writes, or by what `budgeted` makes of its text.
    """
    engine_port, port = free_port(), port or free_port()
    where = ["--listen", f"127.0.0.1:{engine_port}", "--dir", str(folder)]
    with started(
        folder, "engine", "simulate", "--scenario", scenario, *where, "--speed", str(speed), "--seed", str(seed)
    ) as engine:
        end = time.monotonic() + 60
        while not (folder / "budget.yaml").exists():
            assert time.monotonic() < end, (folder / "engine.out").read_text()
            time.sleep(0.05)
        budget = folder / "budget.yaml"
        if budgeted is not None:
            budget = folder / "other-budget.yaml"
            budget.write_text(budgeted((folder / "budget.yaml").read_text()))
        with started(
            folder,
            "sidecar",
            *("serve", "--budget", str(budget)),
            *("--listen", f"127.0.0.1:{port}", "--state", str(folder / "state")),
        ) as sidecar:
            urls = f"http://127.0.0.1:{engine_port}", f"http://127.0.0.1:{port}"
            yield Deployment(engine, sidecar, *urls, folder, budget)
