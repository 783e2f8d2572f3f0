"""Reading an engine over HTTP, against a real server: what counts as which failure, and where the key goes."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scripted_engine import Answer, ScriptedEngine

from specbudget.catalog.sets import ErrorReason
from specbudget.errors import SourceError
from specbudget.sources import http
from specbudget.sources.http import EngineHttp

KEY = "made-up-key-0001"


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    """An engine that serves /metrics and asks for a key at /server_info."""
    answers = {"/metrics": Answer(b"sglang:x 1\n"), "/server_info": Answer(b"{}", key=KEY)}
    async with ScriptedEngine(answers) as server:
        yield server


async def read(
    url: str, path: str, *, key_file: Path | None = None, within: float = 5.0, key_required: bool = True
) -> bytes:
    """One reading with a client of its own."""
    client = EngineHttp(url, api_key_file=key_file)
    try:
        return await client.get(path, within=within, key_required=key_required)
    finally:
        await client.close()


async def failure(url: str, path: str, **how: object) -> SourceError:
    """The error of one reading."""
    with pytest.raises(SourceError) as caught:
        await read(url, path, **how)  # type: ignore[arg-type]
    return caught.value


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, ErrorReason.UNAUTHORIZED),
        (403, ErrorReason.UNAUTHORIZED),
        (404, ErrorReason.NOT_FOUND),
        (500, ErrorReason.HTTP_STATUS),
        (503, ErrorReason.HTTP_STATUS),
        (204, ErrorReason.HTTP_STATUS),
        (307, ErrorReason.HTTP_STATUS),
    ],
)
async def test_each_status_has_its_reason(engine: ScriptedEngine, status: int, reason: ErrorReason) -> None:
    """Refused keys, missing endpoints and broken ones are told apart; only 200 is an answer."""
    engine.answers["/metrics"] = Answer(b"secret body", status=status, headers={"Location": "/elsewhere"})
    error = await failure(engine.url, "/metrics")
    assert error.reason == reason
    assert str(status) in str(error)
    assert "secret body" not in str(error)
    assert engine.count("/elsewhere") == 0


async def test_an_endpoint_that_is_not_there_comes_with_the_remedy(engine: ScriptedEngine) -> None:
    """404 on /metrics names the start flag and the node that serves it; on others it does not."""
    del engine.answers["/metrics"]
    text = str(await failure(engine.url, "/metrics"))
    assert "--enable-metrics" in text
    assert "nodes" in text
    assert "--enable-metrics" not in str(await failure(engine.url, "/v1/loads"))


async def test_nobody_listening_is_refused_and_not_missing() -> None:
    """A closed port is another state than an engine without the endpoint."""
    error = await failure(f"http://127.0.0.1:{free_port()}", "/metrics")
    assert error.reason == ErrorReason.REFUSED
    assert "cannot connect" in str(error)


async def test_an_unknown_host_is_one_refused_reading() -> None:
    """A name that does not resolve is told in one line."""
    error = await failure("http://engine.invalid:1", "/metrics")
    assert error.reason == ErrorReason.REFUSED
    assert "\n" not in str(error)


async def test_an_empty_answer_is_an_answer(engine: ScriptedEngine) -> None:
    """200 without a byte is no failure: the engine says nothing."""
    engine.answers["/metrics"] = Answer(b"")
    assert await read(engine.url, "/metrics") == b""


async def test_too_slow_an_answer_is_a_timeout(engine: ScriptedEngine) -> None:
    """The limit holds for the whole answer, and the reading ends."""
    engine.answers["/metrics"] = Answer(b"late", seconds=30)
    assert (await failure(engine.url, "/metrics", within=0.1)).reason == ErrorReason.TIMEOUT


async def test_a_body_beyond_the_limit_is_not_read_to_its_end(
    engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More bytes than any engine prints end the reading, also where they come packed."""
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1 << 20)
    engine.answers["/metrics"] = Answer(bytes((1 << 20) + 1))
    assert (await failure(engine.url, "/metrics")).reason == ErrorReason.TOO_LARGE
    engine.answers["/metrics"] = Answer(gzip.compress(bytes(8 << 20)), headers={"Content-Encoding": "gzip"})
    assert (await failure(engine.url, "/metrics")).reason == ErrorReason.TOO_LARGE
    engine.answers["/metrics"] = Answer(bytes(1 << 20))
    assert len(await read(engine.url, "/metrics")) == 1 << 20


async def test_a_packed_body_that_is_damaged_is_a_failed_reading(engine: ScriptedEngine) -> None:
    """What cannot be unpacked is one failed reading, not a fault of ours."""
    engine.answers["/metrics"] = Answer(b"not gzip at all", headers={"Content-Encoding": "gzip"})
    assert (await failure(engine.url, "/metrics")).reason == ErrorReason.MALFORMED


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", ErrorReason.REFUSED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", ErrorReason.MALFORMED),
        (b"\x16\x03\x01 what\r\n\r\n", ErrorReason.MALFORMED),
        (b"HTTP/1.1 200 OK\r\n", ErrorReason.REFUSED),
    ],
    ids=["nothing", "half of the body", "no HTTP", "half of the head"],
)
async def test_a_connection_that_breaks_is_a_failed_reading(answer: bytes, reason: ErrorReason) -> None:
    """An engine that dies before it answers is refused; the half of a body is never taken for a whole."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert (await failure(url, "/metrics")).reason == reason


@pytest.mark.parametrize("content", [KEY, f"{KEY}\n", f"{KEY}\r\n", f"\n {KEY} \r\n\r\n"])
async def test_the_key_is_stripped_of_line_ends(engine: ScriptedEngine, tmp_path: Path, content: str) -> None:
    """A trailing newline, as editors and secrets add it, is not part of the key."""
    file = tmp_path / "key"
    file.write_bytes(content.encode())
    assert await read(engine.url, "/server_info", key_file=file) == b"{}"
    assert engine.seen[-1].authorization == f"Bearer {KEY}"


async def test_a_rotated_key_is_used_at_the_next_request(engine: ScriptedEngine, tmp_path: Path) -> None:
    """The file is read for each request, so that a new key needs no restart."""
    file = tmp_path / "key"
    client = EngineHttp(engine.url, api_key_file=file)
    for key in ("made-up-1", "made-up-2"):
        file.write_bytes(f"{key}\r\n".encode())
        engine.answers["/server_info"] = Answer(b"{}", key=key)
        assert await client.get("/server_info", within=5.0, key_required=True) == b"{}"
    await client.close()
    assert [seen.authorization for seen in engine.seen] == ["Bearer made-up-1", "Bearer made-up-2"]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\r\n", b"two\nlines", b"k\x00y", "schlüssel".encode(), b"k" * (http.MAX_KEY_BYTES + 1)],
    ids=["no file", "empty", "a line end", "two lines", "a control sign", "not ASCII", "too long"],
)
async def test_an_unusable_key_file_stops_only_what_needs_a_key(
    engine: ScriptedEngine, tmp_path: Path, content: bytes | None
) -> None:
    """/metrics is open and goes on; /server_info says that the file is at fault, and shows nothing of it."""
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    error = await failure(engine.url, "/server_info", key_file=file)
    assert error.reason == ErrorReason.SECRET
    assert "api_key_file" in str(error)
    assert all(word not in str(error) for word in ("two", "lines", "schl", "kkk"))
    assert engine.count("/server_info") == 0
    assert await read(engine.url, "/metrics", key_file=file, key_required=False) == b"sglang:x 1\n"
    assert engine.seen[-1].authorization is None


async def test_a_refused_key_is_never_shown(engine: ScriptedEngine, tmp_path: Path) -> None:
    """The error of a wrong key names the setting, not the key."""
    file = tmp_path / "key"
    file.write_text("made-up-wrong-key")
    error = await failure(engine.url, "/server_info", key_file=file)
    assert error.reason == ErrorReason.UNAUTHORIZED
    assert "engine.api_key_file" in str(error)
    assert "wrong" not in repr(error)
    assert error.__cause__ is None


async def test_only_get_is_ever_sent(engine: ScriptedEngine) -> None:
    """Nothing here can change the engine."""
    await read(engine.url, "/metrics")
    assert {seen.method for seen in engine.seen} == {"GET"}


async def test_no_cookie_is_kept(engine: ScriptedEngine) -> None:
    """What a proxy wants remembered is not: nothing of an answer but its body stays."""
    engine.answers["/metrics"] = Answer(b"", headers={"Set-Cookie": "session=made-up; Path=/"})
    client = EngineHttp(engine.url)
    for _ in range(2):
        await client.get("/metrics", within=5.0, key_required=False)
    await client.close()
    assert [seen.cookie for seen in engine.seen] == [None, None]
