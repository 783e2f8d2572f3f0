"""What stands before every route of a real sidecar: passwords, certificates of clients, rate, headers."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest
from tests.certificates import Authority
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import running
from tests.serve.web_client import NOBODY, RIGHT, UNKNOWN, USERS, WRONG, asked, client, written

from specbudget.serve.web_guard import Bucket
from specbudget.serve.web_model import RateLimit


@pytest.mark.parametrize("auth", [None, WRONG, UNKNOWN], ids=["none", "wrong password", "unknown user"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/metrics"),
        ("HEAD", "/metrics"),
        ("POST", "/-/reload"),
        ("GET", "/-/reload"),
        ("POST", "/metrics"),
        ("GET", "/nothing"),
        ("POST", "/-/healthy"),
        ("GET", "/-/healthy/"),
        ("GET", "//-/healthy"),
        ("GET", "/-/healthy/../../metrics"),
        ("GET", "/-/healthy%2f..%2f..%2fmetrics"),
        ("OPTIONS", "/metrics"),
    ],
)
async def test_nothing_but_the_probes_is_open(tmp_path: Path, method: str, path: str, auth: str | None) -> None:
    """401 with `WWW-Authenticate: Basic` and no word of the page; also where there is nothing."""
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, USERS)) as sidecar:
        status, text, headers = await asked(sidecar, path, method=method, auth=auth)
        assert (status, headers["WWW-Authenticate"]) == (401, "Basic")
        assert "specbudget" not in text


async def test_the_right_password_opens_everything(tmp_path: Path) -> None:
    """Pages as without a configuration, and a reload is done."""
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, USERS)) as sidecar:
        for method, path, status in (
            ("GET", "/", 200),
            ("GET", "/metrics", 200),
            ("POST", "/-/reload", 200),
            ("GET", "/-/reload", 405),
            ("GET", "/nothing", 404),
        ):
            assert (await asked(sidecar, path, method=method, auth=RIGHT))[0] == status, path
        assert "specbudget_build_info" in (await asked(sidecar, "/metrics", auth=RIGHT))[1]


@pytest.mark.parametrize("auth", [None, RIGHT, WRONG], ids=["none", "right", "wrong"])
async def test_probes_need_no_password(tmp_path: Path, auth: str | None) -> None:
    """Kubernetes would have to hold the password in the pod's manifest; each says one word."""
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, USERS)) as sidecar:
        assert (await asked(sidecar, "/-/healthy", auth=auth))[:2] == (200, "healthy\n")
        assert (await asked(sidecar, "/-/ready", auth=auth))[:2] == (200, "ready\n")
        assert (await asked(sidecar, "/-/healthy", method="HEAD", auth=auth))[0] == 200


async def test_a_reload_without_the_password_reads_nothing(tmp_path: Path) -> None:
    """The budget in force stays, whoever asks."""
    path = write_budget(tmp_path, NOBODY)
    async with running(path, web=written(tmp_path, USERS)) as sidecar:
        loaded = sidecar.sidecar.desk.loaded_at
        for auth in (None, WRONG, UNKNOWN):
            assert (await asked(sidecar, "/-/reload", method="POST", auth=auth))[0] == 401
        assert sidecar.sidecar.desk.loaded_at == loaded
        assert (await asked(sidecar, "/-/reload", method="POST", auth=RIGHT))[0] == 200
        assert sidecar.sidecar.desk.loaded_at > loaded


@pytest.mark.parametrize(
    ("path", "auth"), [("/", RIGHT), ("/metrics", None), ("/nothing", RIGHT), ("/-/healthy", None)]
)
async def test_the_files_headers_are_on_every_answer(tmp_path: Path, path: str, auth: str | None) -> None:
    """Pages, refusals and what is not there; the file's word stands before our own."""
    text = USERS + (
        "http_server_config: {headers: {X-Frame-Options: deny, X-Content-Type-Options: nosniff,\n"
        '  Content-Security-Policy: "frame-ancestors none", Strict-Transport-Security: max-age=60}}\n'
    )
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, text)) as sidecar:
        _, _, headers = await asked(sidecar, path, auth=auth)
    assert headers["X-Frame-Options"] == "deny"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "frame-ancestors none"
    assert headers["Strict-Transport-Security"] == "max-age=60"
    assert "X-XSS-Protection" not in headers


async def test_more_requests_than_the_rate_allows_are_429(tmp_path: Path) -> None:
    """A burst passes, what is beyond it does not, password or not; the probes always pass."""
    text = USERS + "rate_limit: {interval: 1h, burst: 3}\n"
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, text)) as sidecar:
        got = [(await asked(sidecar, "/metrics", auth=auth))[0] for auth in (RIGHT, WRONG, RIGHT, RIGHT, WRONG)]
        assert got == [200, 401, 200, 429, 429]
        assert (await asked(sidecar, "/-/healthy"))[0] == 200


def test_a_bucket_fills_with_time_up_to_its_burst() -> None:
    """One token each interval, never more than the burst."""
    now = [100.0]
    bucket = Bucket(RateLimit.model_validate({"interval": "2s", "burst": 2}), clock=lambda: now[0])
    assert [bucket.takes_one() for _ in range(3)] == [True, True, False]
    now[0] += 1.9
    assert not bucket.takes_one()
    now[0] += 0.2
    assert [bucket.takes_one() for _ in range(2)] == [True, False]
    now[0] += 3600
    assert [bucket.takes_one() for _ in range(3)] == [True, True, False]


async def test_a_rate_of_zero_is_no_limit(tmp_path: Path) -> None:
    """As the format says."""
    text = "rate_limit: {interval: 0, burst: 1}\n"
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, text)) as sidecar:
        assert [(await asked(sidecar, "/metrics"))[0] for _ in range(5)] == [200] * 5


CERTIFICATE_REFUSED = (aiohttp.ClientError, ssl.SSLError, ConnectionError)


async def test_required_client_certificates(tmp_path: Path) -> None:
    """Only certificates of the client authority connect, probes included: TLS comes before everything."""
    ours, clients, others = Authority(tmp_path), Authority(tmp_path, "clients"), Authority(tmp_path, "others")
    ours.pair("web")
    web = written(
        tmp_path,
        "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: clients.pem,\n"
        "  client_auth_type: RequireAndVerifyClientCert}\n",
    )
    mine, foreign = clients.pair("mine", "prometheus.example"), others.pair("foreign", "prometheus.example")
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        for path in ("/metrics", "/-/healthy"):
            assert (await asked(sidecar, path, tls=client(ours, mine)))[0] == 200
            for pair in (None, foreign, ours.pair("own", "prometheus.example")):
                with pytest.raises(CERTIFICATE_REFUSED):
                    await asked(sidecar, path, tls=client(ours, pair))


async def test_client_certificates_if_given(tmp_path: Path) -> None:
    """Who shows none is served; who shows one of another authority is not."""
    ours, clients, others = Authority(tmp_path), Authority(tmp_path, "clients"), Authority(tmp_path, "others")
    ours.pair("web")
    web = written(
        tmp_path,
        "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: clients.pem,\n"
        "  client_auth_type: VerifyClientCertIfGiven}\n",
    )
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        for pair in (None, clients.pair("mine")):
            assert (await asked(sidecar, "/metrics", tls=client(ours, pair)))[0] == 200
        with pytest.raises(CERTIFICATE_REFUSED):
            await asked(sidecar, "/metrics", tls=client(ours, others.pair("foreign")))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("prometheus.example", 200),
        ("10.0.0.7", 200),
        ("2001:db8::1", 200),
        ("sre@example.org", 200),
        ("example", 403),
        ("a.prometheus.example", 403),
        ("10.0.0.8", 403),
    ],
)
async def test_only_listed_names_of_clients_are_served(tmp_path: Path, name: str, status: int) -> None:
    """An exact match of one name, address or mail address; others get nothing, not even health."""
    ours, clients = Authority(tmp_path), Authority(tmp_path, "clients")
    ours.pair("web")
    web = written(
        tmp_path,
        "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: clients.pem,\n"
        "  client_auth_type: RequireAndVerifyClientCert,\n"
        "  client_allowed_sans: [prometheus.example, 10.0.0.7, '2001:DB8:0::1', sre@example.org]}\n",
    )
    mine = client(ours, clients.pair("mine", name))
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        for path in ("/metrics", "/-/healthy", "/nothing"):
            got, text, _ = await asked(sidecar, path, tls=mine)
            assert got == (404 if path == "/nothing" and status == 200 else status)
            assert status == 200 or "specbudget" not in text


@pytest.mark.parametrize(("most", "meets"), [(ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)])
async def test_a_version_below_the_least_is_refused(tmp_path: Path, most: ssl.TLSVersion, meets: bool) -> None:
    """min_version: TLS13 serves no client that speaks TLS 1.2 at most."""
    ours = Authority(tmp_path)
    ours.pair("web")
    web = written(tmp_path, "tls_server_config: {cert_file: web.crt, key_file: web.key, min_version: TLS13}\n")
    context = client(ours)
    context.maximum_version = most
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        if meets:
            assert (await asked(sidecar, "/metrics", tls=context))[0] == 200
        else:
            with pytest.raises(CERTIFICATE_REFUSED):
                await asked(sidecar, "/metrics", tls=context)
