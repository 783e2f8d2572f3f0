"""A real Prometheus and a real VictoriaMetrics that scrape one sidecar, and what they answer."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.deployment import free_port
from tests.prometheus_tools import Suite, tool

PATIENCE = 30.0
SCRAPE_SECONDS = 1

Sample = tuple[float, float]
"""Time in seconds since the epoch, and value."""


@dataclass(frozen=True)
class Server:
    """One that keeps samples and answers queries."""

    name: str
    url: str

    def query(self, query: str, at: float) -> list[dict[str, Any]]:
        """The result of an instant query."""
        asked = urllib.parse.urlencode({"query": query, "time": f"{at:.3f}"})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=PATIENCE) as answer:
            return list(json.loads(answer.read())["data"]["result"])

    def samples(self, selector: str, seconds: int = 600) -> list[list[Sample]]:
        """The raw samples of each series that is selected, of the last seconds.

        VictoriaMetrics gives marks of staleness too, as NaN.
        """
        found = self.query(f"{selector}[{seconds}s]", time.time() + 1)
        return [[(float(at), float(value)) for at, value in one["values"] if value != "NaN"] for one in found]


@contextmanager
def scraping(target: str, folder: Path, suite: Suite = Suite.USUAL) -> Iterator[tuple[Server, Server]]:
    """Both servers, on ports of their own, until the block ends."""
    folder.mkdir()
    config = folder / "scrape.yml"
    job = {"job_name": "specbudget", "static_configs": [{"targets": [target]}]}
    interval = f"{SCRAPE_SECONDS}s"
    config.write_text(
        json.dumps({"global": {"scrape_interval": interval, "scrape_timeout": interval}, "scrape_configs": [job]})
    )
    ports = free_port(), free_port()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    commands = {
        "prometheus": [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={addresses[0]}",
        ],
        "victoria-metrics": [
            f"-promscrape.config={config}",
            f"-storageDataPath={folder / 'victoria-metrics'}",
            f"-httpListenAddr={addresses[1]}",
            "-search.latencyOffset=0s",
            "-search.disableCache",
        ],
    }
    with ExitStack() as stack:
        for name, arguments in commands.items():
            stack.enter_context(_running([str(tool(name, suite)), *arguments], folder / f"{name}.log"))
        servers = [Server(name, f"http://{address}") for name, address in zip(commands, addresses, strict=True)]
        for server in servers:
            wait_for(f"{server.name} answers", lambda one=server: _answers(one))
        yield servers[0], servers[1]


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def _answers(server: Server) -> bool:
    try:
        return bool(server.query("1", time.time()))
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def wait_for(what: str, holds: Any) -> None:
    """Waits until a condition holds; fails when it never does."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE} s: {what}"
        time.sleep(0.1)
