"""A recorded scenario in a real Prometheus: blocks made by promtool, asked over HTTP."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.prometheus_tools import Suite, tool

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "recordings"
SCENARIOS = tuple(sorted(path.name.removesuffix(".om.gz") for path in RECORDINGS.glob("*.om.gz")))
PATIENCE = 30.0
STEP = 15

Result = list[dict[str, Any]]


@dataclass(frozen=True)
class Recorded:
    """A Prometheus that holds one scenario, from its first sample to its last."""

    scenario: str
    url: str
    first: float
    last: float

    def now(self, query: str) -> Result:
        """What a query gives at the end of the scenario."""
        return self._asked("query", query=query, time=f"{self.last}")

    def over_time(self, query: str) -> Result:
        """What a query gives over the whole scenario."""
        return self._asked("query_range", query=query, start=f"{self.first}", end=f"{self.last}", step=f"{STEP}")

    def _asked(self, path: str, **asked: str) -> Result:
        try:
            with urlopen(f"{self.url}/api/v1/{path}", urlencode(asked).encode(), timeout=PATIENCE) as answer:
                return list(json.load(answer)["data"]["result"])
        except HTTPError as error:
            raise AssertionError(f"{asked['query']}: {json.load(error)['error']}") from error


@cache
def samples(scenario: str) -> str:
    """The recording as text."""
    return gzip.decompress((RECORDINGS / f"{scenario}.om.gz").read_bytes()).decode()


@contextlib.contextmanager
def recorded(scenario: str, suite: Suite, folder: Path) -> Iterator[Recorded]:
    """Prometheus of a suite with a scenario's samples; it ends with the block."""
    times = [float(line.rpartition(" ")[2]) for line in samples(scenario).splitlines() if not line.startswith("#")]
    (folder / "samples.om").write_text(samples(scenario))
    made = [str(tool("promtool", suite)), "tsdb", "create-blocks-from", "openmetrics", "samples.om", "tsdb"]
    subprocess.run(made, cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
    (folder / "prometheus.yml").write_text("")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [
        str(tool("prometheus", suite)),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=tsdb",
        # samples of the day of the recording must not be too old
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(f"http://{address}/-/ready", folder / "log")
            yield Recorded(scenario, f"http://{address}", min(times), max(times))
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(url: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(URLError, OSError), urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"Prometheus is not ready: {log.read_text()[-800:]}")
