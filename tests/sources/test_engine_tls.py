"""TLS towards the engine: who is trusted, which file is at fault, and what a rotation does."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from tests.certificates import Authority, Pair
from tests.scripted_engine import Answer, ScriptedEngine

from specbudget.catalog.sets import ErrorReason
from specbudget.errors import SourceError
from specbudget.sources.engine_tls import EngineTls, EngineTlsError, TlsFiles
from specbudget.sources.http import EngineHttp

METRICS = {"/metrics": Answer(b"sglang:x 1\n")}


def shown(pair: Pair, *, clients: Authority | None = None) -> ssl.SSLContext:
    """A server's context; with `clients` it wants a certificate of theirs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients.file if clients else None)
    context.load_cert_chain(pair.cert, pair.key)
    context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return context


async def read(client: EngineHttp) -> bytes:
    """One reading of /metrics."""
    return await client.get("/metrics", within=5.0, key_required=False)


async def failure(client: EngineHttp) -> SourceError:
    """The error of one reading."""
    with pytest.raises(SourceError) as caught:
        await read(client)
    return caught.value


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The authority of the engine's certificate."""
    return Authority(tmp_path)


async def test_tls_trusts_what_it_is_told_to(authority: Authority) -> None:
    """A certificate that nobody vouches for is refused, and taken with its CA file or when told not to look."""
    async with ScriptedEngine(METRICS, tls=shown(authority.pair("engine"))) as server:
        client = EngineHttp(server.url)
        error = await failure(client)
        await client.close()
        assert error.reason == ErrorReason.REFUSED
        assert "certificate" in str(error).lower()
        for tls in (TlsFiles(ca_file=authority.file), TlsFiles(insecure_skip_verify=True)):
            client = EngineHttp(server.url, tls=tls)
            assert await read(client) == b"sglang:x 1\n"
            await client.close()


@pytest.mark.parametrize("who", ["another authority", "another name"])
async def test_a_ca_file_is_no_pass_for_others(tmp_path: Path, authority: Authority, who: str) -> None:
    """With a CA file the certificate must be of that authority and of the address that is called."""
    other = Authority(tmp_path, "other").pair("engine") if who == "another authority" else None
    pair = other or authority.pair("engine", "engine.example")
    async with ScriptedEngine(METRICS, tls=shown(pair)) as server:
        client = EngineHttp(server.url, tls=TlsFiles(ca_file=authority.file))
        assert (await failure(client)).reason == ErrorReason.REFUSED
        assert server.seen == []
        await client.close()


async def test_a_client_certificate_is_shown_to_an_engine_that_wants_one(tmp_path: Path, authority: Authority) -> None:
    """Mutual TLS: with cert_file and key_file the engine answers, without them it does not."""
    clients = Authority(tmp_path, "clients")
    mine = clients.pair("sidecar", "sidecar.example")
    async with ScriptedEngine(METRICS, tls=shown(authority.pair("engine"), clients=clients)) as server:
        client = EngineHttp(server.url, tls=TlsFiles(ca_file=authority.file))
        assert (await failure(client)).reason == ErrorReason.REFUSED
        await client.close()
        tls = TlsFiles(ca_file=authority.file, cert_file=mine.cert, key_file=mine.key)
        client = EngineHttp(server.url, tls=tls)
        assert await read(client) == b"sglang:x 1\n"
        await client.close()


async def test_a_ca_file_that_goes_away_is_a_failed_source_and_heals(tmp_path: Path, authority: Authority) -> None:
    """While it is missing nothing is read, not even without a check; back again, or another one, it is in force."""
    other = Authority(tmp_path, "other")
    async with ScriptedEngine(METRICS, tls=shown(authority.pair("engine"))) as server:
        client = EngineHttp(server.url, tls=TlsFiles(ca_file=tmp_path / "used.pem"))
        (tmp_path / "used.pem").write_bytes(authority.file.read_bytes())
        assert await read(client) == b"sglang:x 1\n"
        (tmp_path / "used.pem").unlink()
        error = await failure(client)
        assert error.reason == ErrorReason.SECRET
        assert str(error) == f"engine.tls.ca_file: {tmp_path}/used.pem cannot be read: No such file or directory"
        assert server.count("/metrics") == 1
        (tmp_path / "used.pem").write_bytes(other.file.read_bytes())
        assert (await failure(client)).reason == ErrorReason.REFUSED
        (tmp_path / "used.pem").write_bytes(authority.file.read_bytes())
        assert await read(client) == b"sglang:x 1\n"
        assert server.count("/metrics") == 2
        await client.close()


def test_the_context_is_made_anew_only_for_another_content(authority: Authority) -> None:
    """A connection can be used again as long as the files say the same."""
    tls = EngineTls(TlsFiles(ca_file=authority.file))
    first = tls.context()
    authority.file.touch()
    assert tls.context() is first
    authority.file.write_bytes(authority.file.read_bytes() * 2)
    assert tls.context() is not first


def encrypted(pair: Pair) -> bytes:
    """The pair's key behind a password."""
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"made-up"),
    )


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("ca missing", "engine.tls.ca_file: {ca} cannot be read: No such file"),
        ("ca is a folder", "engine.tls.ca_file: {ca} cannot be read: Is a directory"),
        ("ca is empty", "engine.tls.ca_file: {ca} is no PEM certificate"),
        ("ca is text", "engine.tls.ca_file: {ca} is no PEM certificate"),
        ("ca is a key", "engine.tls.ca_file: {ca} is no PEM certificate"),
        ("ca is half", "engine.tls.ca_file: {ca} is no PEM certificate, or a damaged one"),
        ("ca is huge", "engine.tls.ca_file: {ca} is larger than 1 MiB"),
        ("cert missing", "engine.tls.cert_file: {cert} cannot be read: No such file"),
        ("cert is a key", "engine.tls.cert_file: {cert} is no PEM certificate"),
        ("key missing", "engine.tls.key_file: {key} cannot be read: No such file"),
        ("key is a certificate", "engine.tls.key_file: {key} is no PEM private key"),
        ("key of another", "engine.tls.key_file: {key} is not the key of the certificate {cert}"),
        ("key of another kind", "engine.tls.key_file: {key} is not the key of the certificate {cert}"),
        ("key with a password", "engine.tls.key_file: {key} is protected by a password"),
    ],
)
def test_each_file_that_cannot_be_used_is_named(tmp_path: Path, authority: Authority, broken: str, says: str) -> None:
    """One line with the key, the file and the reason; no byte of a key is in it."""
    pair = authority.pair("sidecar")
    ca, cert, key = (path.read_bytes() for path in (authority.file, pair.cert, pair.key))
    changed: dict[str, tuple[Path, bytes | None]] = {
        "ca missing": (authority.file, None),
        "ca is a folder": (authority.file, None),
        "ca is empty": (authority.file, b""),
        "ca is text": (authority.file, b"certificate\n"),
        "ca is a key": (authority.file, key),
        "ca is half": (authority.file, ca + ca[: len(ca) // 2]),
        "ca is huge": (authority.file, ca + b"#" * (1 << 20)),
        "cert missing": (pair.cert, None),
        "cert is a key": (pair.cert, key),
        "key missing": (pair.key, None),
        "key is a certificate": (pair.key, cert),
        "key of another": (pair.key, authority.pair("b").key.read_bytes()),
        "key of another kind": (pair.key, authority.pair("b", key_type=trustme.KeyType.RSA).key.read_bytes()),
        "key with a password": (pair.key, encrypted(pair)),
    }
    path, content = changed[broken]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    elif broken == "ca is a folder":
        path.mkdir()
    with pytest.raises(EngineTlsError) as caught:
        EngineTls(TlsFiles(ca_file=authority.file, cert_file=pair.cert, key_file=pair.key)).context()
    told = f"{caught.value.key}: {caught.value}"
    assert told.startswith(says.format(ca=authority.file, cert=pair.cert, key=pair.key)), told
    assert "\n" not in told
    assert all(line not in told for line in key.decode().splitlines())
