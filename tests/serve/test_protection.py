"""Changes of the web configuration at run time: certificates rotate, users change, bad files change nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from tests.certificates import Authority, Pair
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import PATIENCE, Running, running
from tests.serve.web_client import NOBODY, RIGHT, USERS, asked, basic, client, hashed, written

from specbudget.serve import sidecar as sidecar_module

TLS = "tls_server_config: {cert_file: web.crt, key_file: web.key}\n"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the files ten times a second."""
    monkeypatch.setattr(sidecar_module, "RELOAD_SECONDS", 0.1)


async def becomes(holds: Callable[[], Awaitable[bool]]) -> bool:
    """True as soon as it holds; False when it never does."""
    for _ in range(round(PATIENCE / 0.05)):
        if await holds():
            return True
        await asyncio.sleep(0.05)
    return False


def put(pair: Pair, folder: Path, *, only: str = "both") -> None:
    """Puts certificate and key into the place of those in use, each at once."""
    for source, name in ((pair.cert, "web.crt"), (pair.key, "web.key")):
        if only in ("both", name):
            (folder / "new").write_bytes(source.read_bytes())
            (folder / "new").rename(folder / name)


async def shown(sidecar: Running, trusts: Authority) -> bool:
    """Whether a new connection finds a certificate of this authority."""
    try:
        async with aiohttp.ClientSession() as session, session.get(sidecar.url + "/-/healthy", ssl=client(trusts)):
            return True
    except aiohttp.ClientConnectorCertificateError:
        return False


async def ok(sidecar: Running, trusts: Authority | None = None, auth: str | None = None) -> float:
    """The value of config_last_reload_successful."""
    _, text, _ = await asked(sidecar, "/metrics", auth=auth, tls=None if trusts is None else client(trusts))
    (line,) = [line for line in text.splitlines() if line.startswith("specbudget_config_last_reload_successful{")]
    return float(line.rsplit(" ", 1)[1])


@contextlib.asynccontextmanager
async def serving(folder: Path, text: str) -> AsyncIterator[tuple[Running, Authority]]:
    """A sidecar with this web configuration, and the authority of its certificate web.crt."""
    authority = Authority(folder)
    authority.pair("web")
    async with running(write_budget(folder, NOBODY), web=written(folder, text)) as sidecar:
        yield sidecar, authority


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Log lines of web configurations that were not taken into force."""
    return [r.getMessage() for r in caplog.records if "web configuration not loaded" in r.getMessage()]


async def test_a_rotated_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    """No restart and no refused client; a connection that is open goes on with what it has."""
    async with serving(tmp_path, TLS) as (sidecar, old):
        new = Authority(tmp_path, "new-ca")
        port = int(sidecar.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client(old))
        put(new.pair("next"), tmp_path)
        assert await becomes(lambda: shown(sidecar, new))
        assert not await shown(sidecar, old)
        writer.write(b"GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()


async def test_no_client_is_refused_while_certificates_rotate(tmp_path: Path) -> None:
    """Twenty rotations under new connections: each one is answered."""
    async with serving(tmp_path, TLS) as (sidecar, authority):
        context, done = client(authority), 0
        url, ending = sidecar.url + "/-/healthy", False

        async def connect() -> None:
            nonlocal done
            while not ending:
                async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as response:
                    assert response.status == 200
                done += 1

        tasks = [asyncio.create_task(connect()) for _ in range(4)]
        protection = sidecar.sidecar._protection
        assert protection is not None
        for number in range(20):
            put(authority.pair(f"n{number}"), tmp_path)
            assert protection.reload() == []
            await asyncio.sleep(0.02)
        ending = True
        await asyncio.gather(*tasks)
        assert done > 10


async def test_half_of_a_rotation_keeps_the_old_pair_and_heals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A new certificate beside the old key is told once, is no outage, and counts when the key follows."""
    async with serving(tmp_path, TLS) as (sidecar, old):
        new = Authority(tmp_path, "new-ca")
        pair = new.pair("next")
        put(pair, tmp_path, only="web.crt")

        async def refused() -> bool:
            return await ok(sidecar, old) == 0

        assert await becomes(refused)
        for _ in range(5):
            await asyncio.sleep(0.1)
            assert await shown(sidecar, old)
        assert len(refusals(caplog)) == 1
        assert f"{tmp_path}/web.key is not the key of the certificate {tmp_path}/web.crt" in refusals(caplog)[0]
        put(pair, tmp_path, only="web.key")
        assert await becomes(lambda: shown(sidecar, new))

        async def mended() -> bool:
            return await ok(sidecar, new) == 1

        assert await becomes(mended)


async def test_users_come_and_go_without_a_restart(tmp_path: Path) -> None:
    """A new password counts at once, and the one that is gone does not, though it was right before."""
    async with serving(tmp_path, USERS) as (sidecar, _):
        assert (await asked(sidecar, "/metrics", auth=RIGHT))[0] == 200
        other = basic("other", "made-up-2")
        written(tmp_path, f"basic_auth_users: {{other: {hashed('made-up-2')}}}\n")

        async def in_force() -> bool:
            return (await asked(sidecar, "/metrics", auth=other))[0] == 200

        assert await becomes(in_force)
        assert (await asked(sidecar, "/metrics", auth=RIGHT))[0] == 401


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("basic_auth_users: {watcher: made-up-word}\n", "basic_auth_users.watcher: should be a bcrypt hash"),
        ("basic_auth_users: [", "not valid YAML"),
        ("", "a web configuration is a mapping"),
        ("{}", "basic_auth_users: protected until now, and is not lifted while running: restart"),
        (None, "cannot be read: No such file"),
        (USERS + "tls_server_config: {cert_file: none.crt, key_file: web.key}\n", "none.crt cannot be read"),
    ],
    ids=["a password", "no YAML", "emptied", "nobody any more", "gone", "a missing certificate"],
)
async def test_a_bad_new_file_leaves_the_old_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None, says: str
) -> None:
    """It is told in one line, shows on /metrics, opens nothing, and the old file back again mends it."""
    async with serving(tmp_path, USERS) as (sidecar, _):
        if text is None:
            (tmp_path / "web.yml").unlink()
        else:
            written(tmp_path, text)

        async def refused() -> bool:
            return await ok(sidecar, auth=RIGHT) == 0

        assert await becomes(refused)
        assert (await asked(sidecar, "/metrics"))[0] == 401
        await asyncio.sleep(0.5)
        assert len(refusals(caplog)) == 1
        assert says in refusals(caplog)[0]
        assert "made-up-word" not in caplog.text
        status, told, _ = await asked(sidecar, "/-/reload", method="POST", auth=RIGHT)
        assert status == 400
        assert says in told
        assert "made-up-word" not in told
        written(tmp_path, USERS)

        async def mended() -> bool:
            return await ok(sidecar, auth=RIGHT) == 1

        assert await becomes(mended)


async def test_a_file_that_is_named_before_it_is_there_is_awaited(tmp_path: Path) -> None:
    """The configuration may come first and the certificate later: it counts when both are there."""
    async with serving(tmp_path, TLS) as (sidecar, old):
        new = Authority(tmp_path, "new-ca")
        written(tmp_path, TLS.replace("web.", "later."))

        async def refused() -> bool:
            return await ok(sidecar, old) == 0

        assert await becomes(refused)
        new.pair("later")
        assert await becomes(lambda: shown(sidecar, new))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{}\n", "tls_server_config"),
        (TLS, "tls_server_config.client_auth_type"),
        (
            "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: ca.pem,\n"
            "  client_auth_type: VerifyClientCertIfGiven}\n",
            "tls_server_config.client_auth_type",
        ),
        (
            "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: ca.pem,\n"
            "  client_auth_type: RequireAndVerifyClientCert}\n",
            "tls_server_config.client_allowed_sans",
        ),
    ],
)
async def test_a_reload_lifts_no_protection(tmp_path: Path, text: str, key: str) -> None:
    """A file that is read half-written looks as if TLS or a check were no longer wanted."""
    full = (
        "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: ca.pem,\n"
        "  client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [a.example]}\n"
    )
    async with serving(tmp_path, full) as (sidecar, authority):
        written(tmp_path, text)
        protection = sidecar.sidecar._protection
        assert protection is not None
        problems = protection.reload()
        assert f"{tmp_path}/web.yml: {key}: protected until now, and is not lifted while running: restart" in problems
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
            await asked(sidecar, "/metrics", tls=client(authority))


async def test_another_client_authority_replaces_the_old_one(tmp_path: Path) -> None:
    """Clients of the authority that left are refused: nothing of the old trust stays behind."""
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new-clients")
    (tmp_path / "clients.pem").write_bytes(old.file.read_bytes())
    text = (
        "tls_server_config: {cert_file: web.crt, key_file: web.key, client_ca_file: clients.pem,\n"
        "  client_auth_type: RequireAndVerifyClientCert}\n"
    )
    async with serving(tmp_path, text) as (sidecar, authority):
        before, after = client(authority, old.pair("before")), client(authority, new.pair("after"))

        async def served(context: ssl.SSLContext) -> bool:
            try:
                async with aiohttp.ClientSession() as session, session.get(sidecar.url + "/metrics", ssl=context):
                    return True
            except (aiohttp.ClientError, ssl.SSLError, ConnectionError):
                return False

        assert await served(before)
        assert not await served(after)
        (tmp_path / "clients.pem").write_bytes(new.file.read_bytes())
        assert await becomes(lambda: served(after))
        assert not await served(before)


async def test_tls_can_be_added_at_run_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From the next connection on the port speaks TLS only."""
    with caplog.at_level(logging.INFO):
        async with serving(tmp_path, "{}\n") as (sidecar, authority):
            written(tmp_path, TLS)
            sidecar.url = sidecar.url.replace("http://", "https://")

            async def speaks_tls() -> bool:
                try:
                    return await shown(sidecar, authority)
                except aiohttp.ClientError:
                    return False

            assert await becomes(speaks_tls)
            with pytest.raises(aiohttp.ClientError):
                async with aiohttp.ClientSession() as session:
                    await session.get(sidecar.url.replace("https://", "http://") + "/-/healthy")
    assert any("web configuration loaded" in r.getMessage() and "tls=on" in r.getMessage() for r in caplog.records)
