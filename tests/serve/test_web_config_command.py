"""`specbudget serve --web-config` as a process: what it refuses to start with, and what it serves and prints."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.serve.web_client import RIGHT, UNKNOWN, USERS, WRONG, basic, client, hashed, written

pytestmark = pytest.mark.slow

TLS = "tls_server_config: {cert_file: web.crt, key_file: web.key}\n"


def command(folder: Path, *more: str) -> list[str]:
    """The command for the budget in `folder`, on a port that the system chooses."""
    budget = ["--budget", str(folder / "budget.yaml"), "--listen", "127.0.0.1:0"]
    return [sys.executable, "-m", "specbudget", "serve", *budget, *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a budget for an engine that nobody runs, and an authority's certificate web.crt."""
    (tmp_path / "budget.yaml").write_text('{"service": "chat", "engine": {"url": "http://127.0.0.1:9"}}')
    Authority(tmp_path).pair("web")
    return tmp_path


def refused(folder: Path, *more: str) -> str:
    """What a command that must not start says; it ends with 2 and without a traceback."""
    done = subprocess.run(command(folder, *more), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "serving:" not in done.stdout
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_plain_text_password_is_no_open_endpoint(folder: Path) -> None:
    """The line names the user and bcrypt; the password is printed nowhere."""
    web = written(folder, "basic_auth_users:\n  watcher: not-a-bcrypt-hash\n")
    said = refused(folder, "--web-config", str(web))
    assert said.startswith(f"{web}:2: basic_auth_users.watcher: ")
    assert "bcrypt" in said
    assert "not-a-bcrypt-hash" not in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TLS.replace("web.crt", "none.crt"), "tls_server_config.cert_file: {folder}/none.crt cannot be read"),
        (TLS.replace("web.key", "none.key"), "tls_server_config.key_file: {folder}/none.key cannot be read"),
        (TLS.replace("web.crt", "web.key"), "tls_server_config.cert_file: {folder}/web.key is no PEM certificate"),
        (TLS.replace("web.key", "web.crt"), "tls_server_config.key_file: {folder}/web.crt is no PEM private key"),
    ],
    ids=["no certificate", "no key", "a key for a certificate", "a certificate for a key"],
)
def test_a_certificate_that_cannot_be_used_ends_the_start(folder: Path, text: str, says: str) -> None:
    """One line that names the file, exit 2."""
    said = refused(folder, "--web-config", str(written(folder, text)))
    assert says.format(folder=folder) in said


def test_a_web_configuration_that_is_not_there_ends_the_start(folder: Path) -> None:
    """A mistyped path is no open endpoint."""
    assert refused(folder, "--web-config", str(folder / "none.yml")).startswith(f"{folder}/none.yml: cannot be read")


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read: No such file or directory"), ("not a certificate\n", "is no PEM certificate")],
    ids=["missing", "text"],
)
def test_a_ca_file_towards_the_engine_that_cannot_be_used_ends_the_start(
    folder: Path, content: str | None, says: str
) -> None:
    """Neither a fallback to no check nor an endless failure of a source: one line with key and file, exit 2."""
    tls = {"ca_file": "./missing-ca.pem"}
    budget = {"service": "chat", "engine": {"url": "https://127.0.0.1:30443", "tls": tls}}
    (folder / "budget.yaml").write_text(json.dumps(budget))
    if content is not None:
        (folder / "missing-ca.pem").write_text(content)
    said = refused(folder)
    assert said.startswith(f"{folder}/budget.yaml: engine.tls.ca_file: {folder}/missing-ca.pem {says}")


class Process:
    """The command, started; `log` is all that it printed so far."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command(folder, *more),
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        assert self.until(lambda: "serving:" in self.log), self.log
        found = re.search(r"url=(https?)://127\.0\.0\.1:(\d+)/metrics", self.log)
        assert found is not None
        self.scheme, self.port = found[1], int(found[2])

    @property
    def log(self) -> str:
        """Standard output and standard error."""
        return self._output.read_text()

    def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> bool:
        """Waits for a condition; False when it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return True
            time.sleep(0.05)
        return False

    def ask(
        self, path: str, *, tls: ssl.SSLContext | None, auth: str | None = None, method: str = "GET"
    ) -> tuple[int, str, str]:
        """Status, WWW-Authenticate and body of one request on a connection of its own."""
        connection = (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            if tls is None
            else http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=tls)
        )
        try:
            connection.request(method, path, headers={} if auth is None else {"Authorization": auth})
            answer = connection.getresponse()
            return answer.status, answer.getheader("WWW-Authenticate", ""), answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[str], Process]]:
    """Starts the command with this web configuration; it must end by itself, or is killed."""
    started: list[Process] = []

    def make(text: str) -> Process:
        started.append(Process(folder, "--web-config", str(written(folder, text))))
        return started[-1]

    yield make
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(10)


def test_tls_and_passwords_from_start_to_end(folder: Path, start: Callable[[str], Process]) -> None:
    """Right, wrong, unknown and none; http on the https port; a rotation and new users; SIGTERM; nothing printed."""
    ours = Authority(folder, "second")
    trusts = ssl.create_default_context(cafile=folder / "ca.pem")
    sidecar = start(TLS + USERS)
    assert sidecar.scheme == "https"

    status, _, page = sidecar.ask("/metrics", tls=trusts, auth=RIGHT)
    assert status == 200
    assert "specbudget_build_info" in page
    for auth in (None, WRONG, UNKNOWN):
        for method, path in (("GET", "/metrics"), ("POST", "/-/reload"), ("GET", "/")):
            assert sidecar.ask(path, tls=trusts, auth=auth, method=method)[:2] == (401, "Basic")
    assert sidecar.ask("/-/healthy", tls=trusts) == (200, "", "healthy\n")

    with pytest.raises((http.client.HTTPException, OSError)):
        sidecar.ask("/metrics", tls=None, auth=RIGHT)
    with socket.create_connection(("127.0.0.1", sidecar.port)):
        # who connects and says nothing holds up nobody
        assert sidecar.ask("/-/healthy", tls=trusts)[0] == 200
    with pytest.raises(ssl.SSLError):
        sidecar.ask("/metrics", tls=ssl.create_default_context(), auth=RIGHT)

    (folder / "web.yml").write_text("basic_auth_users: {watcher: made-up-plain}\n")
    assert sidecar.until(lambda: "web configuration not loaded" in sidecar.log)
    assert sidecar.ask("/metrics", tls=trusts)[0] == 401
    failed = re.compile(r"^specbudget_config_last_reload_successful\{.*\} 0\.0$", re.M)
    assert sidecar.until(lambda: failed.search(sidecar.ask("/metrics", tls=trusts, auth=RIGHT)[2]) is not None)
    page = sidecar.ask("/metrics", tls=trusts, auth=RIGHT)[2]

    pair = ours.pair("next")
    (folder / "web.crt").write_bytes(pair.cert.read_bytes())
    (folder / "web.key").write_bytes(pair.key.read_bytes())
    written(folder, TLS + f"basic_auth_users: {{second: {hashed('made-up-second')}}}\n")
    sidecar.process.send_signal(signal.SIGHUP)

    def rotated() -> bool:
        try:
            return sidecar.ask("/metrics", tls=client(ours), auth=basic("second", "made-up-second"))[0] == 200
        except ssl.SSLError:
            return False

    assert sidecar.until(rotated)
    assert sidecar.ask("/metrics", tls=client(ours), auth=RIGHT)[0] == 401

    held = socket.create_connection(("127.0.0.1", sidecar.port))
    with client(ours).wrap_socket(held, server_hostname="127.0.0.1"):
        sidecar.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert sidecar.process.wait(10) == 0
        assert time.monotonic() - began < 2

    said = sidecar.log
    assert "Traceback" not in said
    assert len(re.findall("web configuration not loaded", said)) == 1
    key = (folder / "web.key").read_text().splitlines()[1]
    secrets = ("open sesame", "made-up", "$2b$", RIGHT.split()[1], WRONG.split()[1], key)
    assert [secret for secret in secrets if secret in said + page] == []


def test_passwords_without_tls_are_warned_of(start: Callable[[str], Process]) -> None:
    """It works, as in the format; the log says that passwords can be read on the way."""
    sidecar = start(USERS)
    assert sidecar.scheme == "http"
    assert "passwords will cross the network in clear text" in sidecar.log
    assert sidecar.ask("/metrics", tls=None)[0] == 401
    assert sidecar.ask("/metrics", tls=None, auth=RIGHT)[0] == 200
    with pytest.raises(ssl.SSLError):
        sidecar.ask("/metrics", tls=ssl.create_default_context(), auth=RIGHT)
    sidecar.process.send_signal(signal.SIGTERM)
    assert sidecar.process.wait(10) == 0
    assert "Traceback" not in sidecar.log


def test_help_names_the_option() -> None:
    """`serve --help` says what the file is."""
    said = subprocess.run(
        [sys.executable, "-m", "specbudget", "serve", "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "--web-config FILE" in said
