"""The generated configuration in a real Alertmanager, and a receiver that keeps what it is sent."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.prometheus_tools import Suite, tool

from specbudget.budget.model import Budget
from specbudget.generate import alertmanager
from specbudget.generate.files import write

DEFAULT_TEMPLATE = Path("/usr/share/prometheus/alertmanager/default.tmpl")
"""Where Debian's Alertmanager looks for it, wherever it was unpacked."""
PATIENCE = 20.0
"""Seconds until a condition that should come true is given up."""
SETTLED = 3.0
"""Seconds after which what has not been sent is not sent: three times the group interval of the tests."""

Labels = dict[str, str]
Configuration = dict[str, Any]


def amtool(*arguments: str | Path, suite: Suite = Suite.USUAL) -> subprocess.CompletedProcess[str]:
    """Runs amtool."""
    command = [str(tool("amtool", suite)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def alert(name: str, *, annotations: Labels | None = None, resolved: bool = False, **labels: str) -> dict[str, Any]:
    """An alert as Prometheus sends it; it began just now, since an older one is sent without the wait for its group."""
    now = time.time()
    sent: dict[str, Any] = {"labels": {"alertname": name, **labels}, "annotations": annotations or {"summary": name}}
    sent["startsAt"] = _rfc3339(now - 2 if resolved else now)
    sent["endsAt"] = _rfc3339(now - 1 if resolved else now + 300)
    return sent


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class Received(NamedTuple):
    """One message, and when it came in seconds since the epoch."""

    path: str
    body: dict[str, Any]
    at: float


@dataclass
class Receiver:
    """What came in, in order."""

    port: int
    received: list[Received] = field(default_factory=list)

    def of(self, path: str, word: str) -> list[dict[str, Any]]:
        """The bodies that were sent to a path and hold a word."""
        return [one.body for one in self.received if one.path == path and word in json.dumps(one.body)]


@dataclass
class Running:
    """An Alertmanager that runs, and its receiver."""

    url: str
    receiver: Receiver

    def post(self, *alerts: dict[str, Any]) -> None:
        """Sends alerts in one request."""
        body = json.dumps(alerts).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.url}/api/v2/alerts", body, headers), timeout=10) as response:
            assert response.status == 200

    def suppressed(self, service: str, **labels: str) -> dict[str, bool]:
        """By alert and replica of one service: is it inhibited?"""
        labels["specbudget_service"] = service
        query = urlencode([("filter", f'{name}="{value}"') for name, value in labels.items()])
        with urlopen(f"{self.url}/api/v2/alerts?{query}", timeout=10) as response:
            alerts = json.load(response)
        return {
            " ".join(filter(None, (a["labels"]["alertname"], a["labels"].get("instance")))): bool(
                a["status"]["inhibitedBy"]
            )
            for a in alerts
        }

    def notified(self, service: str) -> list[tuple[str, list[str]]]:
        """Receiver and names of the firing alerts of each notification about a service."""
        return [
            (path.removeprefix("/webhook/"), sorted(a["labels"]["alertname"] for a in body["alerts"]))
            for path, body, _ in self.receiver.received
            if path.startswith("/webhook/") and body["commonLabels"].get("specbudget_service") == service
        ]


def wait_until(holds: Callable[[], bool]) -> bool:
    """True as soon as it holds, False when patience is over."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A server on a port of its own that answers 200 and keeps every body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.received.append(Received(self.path, json.loads(body), time.time()))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join(PATIENCE)


def sent_here(configuration: Configuration, secrets: Path, receiver: Receiver) -> Configuration:
    """The generated configuration with secrets and addresses of the test; all else is as generated."""
    text = yaml.safe_dump(configuration).replace(str(alertmanager.SECRETS), str(secrets))
    changed: Configuration = yaml.safe_load(text)
    here = f"http://127.0.0.1:{receiver.port}"
    changed["global"]["pagerduty_url"] = f"{here}/pagerduty"
    secrets.mkdir()
    (secrets / alertmanager.CHAT_ADDRESS.name).write_text(f"{here}/slack\n")
    (secrets / alertmanager.PAGER_KEY.name).write_text("key-of-the-test\n")
    for target in changed["receivers"]:
        target["webhook_configs"] = [{"url": f"{here}/webhook/{target['name']}"}]
    return changed


def waiting_a_second(configuration: Configuration) -> Configuration:
    """Every notification waits a second for others of its group."""
    routes = [configuration["route"]]
    while routes:
        route = routes.pop()
        route.update(group_wait="1s", group_interval="1s")
        routes.extend(route.get("routes", ()))
    return configuration


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    suite: Suite = Suite.USUAL,
    budget: Budget | None = None,
    paced: Callable[[Configuration], Configuration] = waiting_a_second,
) -> Iterator[Running]:
    """Alertmanager with what is generated, until the block ends; `paced` shortens its waits."""
    binary = tool("prometheus-alertmanager", suite)
    if not DEFAULT_TEMPLATE.exists():
        pytest.fail(f"{DEFAULT_TEMPLATE} is not there: make tools says how to put it there")
    write(alertmanager.files(budget or Budget(service="any")), folder)
    path = folder / alertmanager.CONFIG
    with receiving() as receiver:
        generated = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump(paced(sent_here(generated, folder / "secrets", receiver))))
        port = _free_port()
        command = [str(binary), f"--config.file={path}", f"--storage.path={folder / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            if not wait_until(lambda: process.poll() is not None or _ready(url)) or process.poll() is not None:
                pytest.fail(f"Alertmanager does not start: {(folder / 'log').read_text()[-2000:]}")
            yield Running(url, receiver)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/-/ready", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False
