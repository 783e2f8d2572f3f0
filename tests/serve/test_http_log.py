"""What a client sends never comes out in the sidecar's log, be it that the server cannot read it."""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path

import pytest
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import running
from tests.serve.web_client import NOBODY, USERS, written

from specbudget.serve.http_log import QUIET_SECONDS, ServerLog

SECRET = base64.b64encode(b"prometheus:a password that is long enough to be seen").decode()


async def answer(url: str, request: bytes) -> bytes:
    """What the server at `url` answers to bytes that need be no HTTP."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    told = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return told


@pytest.mark.parametrize(
    "request_text",
    [
        f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {SECRET}{'x' * 9000}\r\n\r\n",
        f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {SECRET}\0\r\n\r\n",
        f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization {SECRET}\r\n\r\n",
        f"GET /metrics HTTP/1.1\r\nHost: x\r\n{SECRET} : x\r\n\r\n",
        f"GET /{SECRET}{'x' * 9000} HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET http://[{SECRET} HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: {SECRET}\r\n\r\n",
    ],
    ids=["too long", "zero byte", "no colon", "bad name", "long path", "bad address", "bad length"],
)
async def test_a_request_that_cannot_be_read_is_told_without_a_word_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], request_text: str
) -> None:
    """Its header holds the password of whoever sent it; one line says that it was refused."""
    async with running(write_budget(tmp_path, NOBODY), web=written(tmp_path, USERS)) as sidecar:
        for _ in range(3):
            assert b" 400 " in (await answer(sidecar.url, request_text.encode())).split(b"\r\n")[0]
        assert (await sidecar.get("/-/healthy"))[0] == 200
    told = capfd.readouterr()
    everything = caplog.text + told.out + told.err
    for part in (SECRET[:12], "Traceback", "Authorization"):
        assert part not in everything
    assert caplog.text.count("a request was refused") == 1


def entry(error: Exception) -> logging.LogRecord:
    """As aiohttp makes it."""
    return logging.LogRecord("x", logging.ERROR, "", 0, SECRET, (), (type(error), error, error.__traceback__))


def test_a_fault_of_ours_is_told_by_type_and_place(caplog: pytest.LogCaptureFixture) -> None:
    """Without its text; a second one within the minute is counted and told with the next."""
    now = [0.0]
    log = ServerLog(clock=lambda: now[0])
    for seconds in (0.0, 1.0, QUIET_SECONDS + 1):
        now[0] = seconds
        assert not log.filter(entry(ValueError(SECRET)))
    assert SECRET not in caplog.text
    lines = [record.getMessage().splitlines()[0] for record in caplog.records]
    assert lines == [
        "a request could not be answered: ValueError",
        "a request could not be answered, 1 more since the last such line: ValueError",
    ]
