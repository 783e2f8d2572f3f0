"""A storage that holds recordings, each under a service of its own."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.prometheus_tools import Suite, tool
from tests.recordings import recording

READY_WITHIN = 60.0
_SERVICE = re.compile(r'specbudget_service="[^"]*"')
_SAMPLE = re.compile(r"^(.*) (\S+) ([0-9.]+)$", re.MULTILINE)


def service_of(scenario: str) -> str:
    """The service under which a scenario is stored."""
    return f"ling-{scenario}"


def text_of(scenario: str) -> str:
    """A recording with its service renamed, in OpenMetrics text."""
    with gzip.open(recording(scenario), "rt", encoding="utf-8") as file:
        return _SERVICE.sub(f'specbudget_service="{service_of(scenario)}"', file.read())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prometheus(folder: Path, scenarios: Iterable[str], suite: Suite = Suite.USUAL) -> Iterator[str]:
    """A real Prometheus with the recordings back-filled; gives its address."""
    blocks = folder / "tsdb"
    for scenario in scenarios:
        text = folder / f"{scenario}.om"
        text.write_text(text_of(scenario), encoding="utf-8")
        command = [tool("promtool", suite), "tsdb", "create-blocks-from", "openmetrics", text, blocks]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    (folder / "prometheus.yml").write_text("{}\n", encoding="utf-8")
    port = free_port()
    command = [
        tool("prometheus", suite),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={blocks}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with _running(command, folder / "prometheus.log", f"http://127.0.0.1:{port}/-/ready"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def victoria_metrics(folder: Path, scenarios: Iterable[str], suite: Suite = Suite.USUAL) -> Iterator[str]:
    """A real VictoriaMetrics that has imported the recordings; gives its address."""
    port = free_port()
    command = [
        tool("victoria-metrics", suite),
        f"-storageDataPath={folder / 'vm'}",
        "-retentionPeriod=100y",
        f"-httpListenAddr=127.0.0.1:{port}",
    ]
    with _running(command, folder / "vm.log", f"http://127.0.0.1:{port}/health"):
        for scenario in scenarios:
            rows = _SAMPLE.sub(lambda m: f"{m[1]} {m[2]} {round(float(m[3]) * 1000)}", text_of(scenario))
            body = rows.replace("# EOF\n", "").encode()
            with urlopen(Request(f"http://127.0.0.1:{port}/api/v1/import/prometheus", data=body), timeout=60):
                pass
        with urlopen(f"http://127.0.0.1:{port}/internal/force_flush", timeout=60):
            pass
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: list[object], log: Path, ready: str) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + READY_WITHIN
        while not _answers(ready):
            assert process.poll() is None, log.read_text()[-1000:]
            assert time.monotonic() < until, log.read_text()[-1000:]
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False
