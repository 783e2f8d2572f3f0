"""Reaching a storage: TLS, client certificates, passwords, tokens, tenants; errors are one line without a secret."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import bcrypt
import numpy as np
import pytest
from tests.certificates import Authority
from tests.prometheus_tools import tool
from tests.review.stores import free_port

from specbudget.catalog.series import ENGINE_QUEUED
from specbudget.domain.axis import Axis
from specbudget.domain.reduction import Reduction
from specbudget.errors import BudgetError, SourceError
from specbudget.review.command import OutputError, ReviewOptions, client_config
from specbudget.sources.prometheus.client import NamesAnswer, PrometheusClient
from specbudget.sources.prometheus.client_config import ClientConfig, Secret, read_client_file
from specbudget.sources.prometheus.samples import MOST_POINTS, PrometheusSamples

SECRET = "correct horse battery staple"
ASKED = ReviewOptions(start="now-1h", end="now")


class Storage(ThreadingHTTPServer):
    """Answers queries with a ramp, or with what `answer` gives, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.most_points: int | None = None
        self.fixed: tuple[int, bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Storage

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer({key: values[0] for key, values in parse_qs(form).items()})

    def _answer(self, form: dict[str, str]) -> None:
        self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, form))
        status, body = self.server.fixed or self._ramp(form)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _ramp(self, form: dict[str, str]) -> tuple[int, bytes]:
        if not form:
            return 200, json.dumps({"status": "success", "data": ["chat"]}).encode()
        start, end, step = (float(form[key]) for key in ("start", "end", "step"))
        count = round((end - start) / step) + 1
        if count > (self.server.most_points or MOST_POINTS):
            told = {
                "status": "error",
                "errorType": "execution",
                "error": "query processing would load too many samples",
            }
            return 422, json.dumps(told).encode()
        values = [[start + step * place, str(start + step * place)] for place in range(count)]
        metric = {"__name__": "x", "specbudget_service": "chat", "rank": "0", "instance": "a", "scraper": "1"}
        double = {**metric, "scraper": "2"}
        result = [{"metric": metric, "values": values}, {"metric": double, "values": values}]
        return 200, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@pytest.fixture
def storage() -> Iterator[Storage]:
    server = Storage()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def client(storage: Storage, config: ClientConfig | None = None) -> PrometheusClient:
    return PrometheusClient(storage.url, config or ClientConfig())


def rows(storage: Storage, axis: Axis):
    samples = PrometheusSamples(client(storage), axis.start, axis.end)
    return samples.rows(ENGINE_QUEUED.full_name, {}, axis, Reduction.HIGHEST, 60.0)


def test_a_month_is_read_in_chunks_that_every_storage_gives(storage: Storage) -> None:
    """Chunks meet without a hole or a double point, and none asks for more points than Prometheus gives."""
    axis = Axis(start=1_796_000_000.0, step=15.0, count=30_000)
    (row,) = rows(storage, axis)
    np.testing.assert_array_equal(row.values, axis.times)
    assert len(storage.asked) > 2


def test_a_storage_that_gives_little_is_asked_for_little(storage: Storage) -> None:
    """A limit of samples makes chunks smaller; it is no error."""
    storage.most_points = 130
    axis = Axis(start=1_796_000_000.0, step=15.0, count=700)
    (row,) = rows(storage, axis)
    np.testing.assert_array_equal(row.values, axis.times)


def test_two_scrapers_of_one_sidecar_count_once(storage: Storage) -> None:
    """Labels that tell scrapers apart tell no replicas apart."""
    assert len(rows(storage, Axis(start=1_796_000_000.0, step=15.0, count=10))) == 1


def test_tenant_token_and_password_go_as_headers(storage: Storage, tmp_path: Path) -> None:
    """X-Scope-OrgID, a bearer token or basic authentication; the secrets are read from their files each time."""
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    asked = client_config(replace(ASKED, tenant="team-a", bearer_token_file=secret))
    client(storage, asked).ask("label/x/values", {}, NamesAnswer)
    assert storage.asked[-1][1]["x-scope-orgid"] == "team-a"
    assert storage.asked[-1][1]["authorization"] == f"Bearer {SECRET}"
    secret.write_text("other")
    client(storage, asked).ask("label/x/values", {}, NamesAnswer)
    assert storage.asked[-1][1]["authorization"] == "Bearer other"
    basic = client_config(replace(ASKED, user="ann", password_file=secret))
    client(storage, basic).ask("label/x/values", {}, NamesAnswer)
    assert storage.asked[-1][1]["authorization"] == "Basic " + base64.b64encode(b"ann:other").decode()


def test_the_client_file_of_promtool_is_read(storage: Storage, tmp_path: Path) -> None:
    """The same file that promtool takes with --http.config.file, paths from its folder."""
    (tmp_path / "password").write_text(SECRET)
    (tmp_path / "client.yml").write_text("basic_auth: {username: ann, password_file: password}\n")
    client(storage, read_client_file(tmp_path / "client.yml")).ask("label/x/values", {}, NamesAnswer)
    assert storage.asked[-1][1]["authorization"] == "Basic " + base64.b64encode(f"ann:{SECRET}".encode()).decode()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("basic_auth: {user: ann}", "basic_auth.user: is not supported; supported: username"),
        ("oauth2: {}", "oauth2: is not supported"),
        ("[]", "must be a mapping"),
        ("a: [", "is no YAML"),
        ("tls_config: {insecure_skip_verify: maybe}", "true or false"),
        ("authorization: {credentials: a}\nbasic_auth: {username: a}", "only one of"),
        ("http_headers: {X: 1}", "values, secrets or files"),
    ],
)
def test_a_client_file_that_is_wrong_is_one_line(text: str, says: str, tmp_path: Path) -> None:
    """The file, the key and what is supported."""
    (tmp_path / "client.yml").write_text(text)
    with pytest.raises(BudgetError, match=says) as raised:
        read_client_file(tmp_path / "client.yml")
    assert "client.yml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_secret_stands_in_no_text(tmp_path: Path) -> None:
    """Neither in a representation nor in an error."""
    assert SECRET not in repr(ClientConfig(password=Secret(None, SECRET)))
    (tmp_path / "secret").write_text(f"{SECRET}\n{SECRET}\n")
    with pytest.raises(BudgetError, match="on one line") as raised:
        Secret(tmp_path / "secret").read()
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"", "answered 401: give --user with --password-file"),
        (302, b"", "give the final address"),
        (404, b"", "is /api/v1 below this address"),
        (400, b'{"status":"error","errorType":"bad_data","error":"invalid parameter"}', "400: invalid parameter"),
        (200, b"<html>", "is not Prometheus'"),
        (500, b"\x00" * 100, "answered 500"),
    ],
)
def test_a_storage_that_refuses_is_one_line(storage: Storage, status: int, body: bytes, says: str) -> None:
    """With the address and what to do."""
    storage.fixed = status, body
    with pytest.raises(SourceError, match=says) as raised:
        client(storage).ask("query_range", {"query": "x"}, NamesAnswer)
    assert storage.url in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("prometheus:9090", "write http://"),
        ("http://ann:secret@host:9090", "no user and password in the address"),
        ("http://127.0.0.1:1", "cannot connect: Connection refused"),
        ("http://no.such.host.invalid", "cannot connect"),
    ],
)
def test_an_address_that_does_not_work_is_one_line(url: str, says: str) -> None:
    """And a password in it is not repeated."""
    with pytest.raises(SourceError, match=says) as raised:
        PrometheusClient(url, ClientConfig()).ask("query_range", {"query": "x"}, NamesAnswer)
    assert "secret@" not in str(raised.value)


def test_a_certificate_without_its_key_is_refused() -> None:
    """Half a pair is a slip."""
    with pytest.raises(OutputError, match="both, or neither"):
        client_config(replace(ASKED, tls_cert=Path("a.crt")))


@pytest.mark.slow
def test_a_prometheus_behind_tls_certificates_and_a_password_is_read(tmp_path: Path) -> None:
    """With all three it answers; without any one of them the line says which."""
    authority = Authority(tmp_path)
    server, own = authority.pair("server"), authority.pair("client", "reviewer@example.org")
    hashed = bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(
        f"tls_server_config: {{cert_file: {server.cert}, key_file: {server.key}, client_ca_file: {authority.file}, "
        f"client_auth_type: RequireAndVerifyClientCert}}\nbasic_auth_users: {{ann: {hashed}}}\n"
    )
    (tmp_path / "prometheus.yml").write_text("{}\n")
    (tmp_path / "password").write_text(SECRET)
    port = free_port()
    command = [
        tool("prometheus"),
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--web.config.file={tmp_path}/web.yml",
    ]
    whole = replace(
        ASKED,
        user="ann",
        password_file=tmp_path / "password",
        tls_ca=authority.file,
        tls_cert=own.cert,
        tls_key=own.key,
    )

    def ask(options: ReviewOptions) -> str:
        try:
            PrometheusClient(f"https://127.0.0.1:{port}", client_config(options)).ask("label/x/values", {}, NamesAnswer)
        except SourceError as error:
            return str(error)
        return "answered"

    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + 30
        while "cannot connect: Connection refused" in ask(whole) and time.monotonic() < until:
            time.sleep(0.1)
        while ask(whole) != "answered" and time.monotonic() < until:
            time.sleep(0.1)
        assert ask(whole) == "answered"
        assert "answered 401" in ask(replace(whole, user=None, password_file=None))
        assert "--tls-ca-path" in ask(replace(whole, tls_ca=None))
        assert "cannot connect" in ask(replace(whole, tls_cert=None, tls_key=None))
    finally:
        process.terminate()
        process.wait(20)
