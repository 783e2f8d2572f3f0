"""A real Prometheus with a configuration of the caller, until the block ends."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.prometheus_tools import Suite, tool

PATIENCE = 60.0
"""Seconds that Prometheus has to start, to answer, and to end."""


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str
    process: subprocess.Popen[bytes]

    def reload(self) -> None:
        """Reads configuration and rules anew, as after a change of them."""
        self.process.send_signal(signal.SIGHUP)

    def query(self, text: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """The result of an instant query, now or at a time in seconds since the epoch."""
        asked = {"query": text} | ({} if at is None else {"time": f"{at:.3f}"})
        try:
            with urlopen(f"{self.url}/api/v1/query", urlencode(asked).encode(), timeout=PATIENCE) as answer:
                return list(json.load(answer)["data"]["result"])
        except HTTPError as error:
            raise AssertionError(f"{text}: {json.load(error)['error']}") from error


@contextlib.contextmanager
def running_prometheus(
    folder: Path, configuration: Mapping[str, Any], port: int, *, suite: Suite = Suite.USUAL
) -> Iterator[Prometheus]:
    """Prometheus on a port of this machine, its files in `folder`; rule files may be named relative to it."""
    # which is YAML too
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    address = f"127.0.0.1:{port}"
    command = [str(tool("prometheus", suite)), "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--web.listen-address={address}"], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        end = time.monotonic() + PATIENCE
        while not _answers(f"http://{address}/-/ready"):
            said = (folder / "prometheus.log").read_text()[-1500:]
            assert process.poll() is None and time.monotonic() < end, f"Prometheus does not start: {said}"  # noqa: PT018
            time.sleep(0.1)
        yield Prometheus(f"http://{address}", process)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    with contextlib.suppress(URLError, OSError), urlopen(url, timeout=5):
        return True
    return False
