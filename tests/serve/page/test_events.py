"""The page over HTTP: its headers, its files, and the stream that keeps it up to date, with many and slow viewers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.certificates import Authority
from tests.serve.page.statuses import NOBODY, NOW, a_desk
from tests.serve.polled_desk import write_budget
from tests.serve.running_sidecar import PATIENCE, Running, running
from tests.serve.web_client import RIGHT, USERS, asked, client, hashed, written

from specbudget.serve.page import board as board_module
from specbudget.serve.page import render
from specbudget.serve.page.board import Board
from specbudget.serve.page.routes import POLICY, SECURITY
from specbudget.serve.page.viewers import MAX_VIEWERS, QUEUED, Viewers

EVENTS = "/api/v1/events"


async def message(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The next message of a stream."""
    async with asyncio.timeout(PATIENCE):
        while True:
            line = await response.content.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                assert await response.content.readline() == b"\n"
                return dict(json.loads(line[6:]))


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition; fails when it does not come."""
    for _ in range(round(PATIENCE / 0.05)):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come")


@contextlib.asynccontextmanager
async def watching(sidecar: Running, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """An open page's stream."""
    async with sidecar.client.get(sidecar.url + EVENTS, **options) as response:
        yield response


async def test_the_headers_of_page_files_and_stream(tmp_path: Path) -> None:
    """Each answer forbids what the page does not need, and nobody can frame it or guess at its kind."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        for path in ("/", EVENTS, "/assets/page.js"):
            async with sidecar.client.get(sidecar.url + path) as response:
                assert response.status == 200
                assert {name: response.headers.get(name) for name in SECURITY} == SECURITY, path
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "frame-ancestors 'none'" in POLICY
    assert "http" not in POLICY


@pytest.mark.parametrize("name", render.SERVED)
async def test_every_file_is_served_with_its_kind(tmp_path: Path, name: str) -> None:
    """A browser that is told not to sniff takes each file for what it is, and asks again only when it changed."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        address = f"{sidecar.url}/assets/{name}"
        async with sidecar.client.get(address, params={"v": "1"}) as response:
            assert response.status == 200
            kind = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[name.rpartition(".")[2]]
            assert response.content_type == kind
            assert "immutable" in response.headers["Cache-Control"]
            tag = response.headers["ETag"]
        async with sidecar.client.get(address, headers={"If-None-Match": tag}) as response:
            assert response.status == 304


@pytest.mark.parametrize(
    "path",
    ["/assets/README.md", "/assets/../serve/web.py", "/assets/__init__.py", "/assets/%2e%2e/logs.py", "/assets/"],
)
async def test_no_other_file_is_served(tmp_path: Path, path: str) -> None:
    """Only what the page needs has a route, whatever the address."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        assert (await asked(sidecar, path))[0] == 404


async def test_a_stream_begins_with_the_whole_page_and_goes_on_with_what_changes(tmp_path: Path) -> None:
    """First every region and the trace, then only what differs; and something each few seconds, changed or not."""
    budget = {"acceptance": {"target_length": 2.6}}
    async with running(write_budget(tmp_path, NOBODY, budget=budget)) as sidecar, watching(sidecar) as stream:
        assert (stream.content_type, stream.headers["Cache-Control"]) == ("text/event-stream", "no-store")
        first = await message(stream)
        assert set(first["regions"]) == set(render.REGIONS)
        assert first["build"] == render.build()
        assert first["trace"]["from"] == first["trace"]["first"]
        assert first["lines"] == {"Acceptance": "unknown"}
        desk, now = sidecar.sidecar.desk, time.time()
        desk.book.count_batch("0", 2.0, 500.0, window=None, at=now - 8, now=now)
        while True:
            later = await message(stream)
            assert set(later["regions"]) < set(render.REGIONS)
            if "trace" in later:
                break
        assert later["at"] > first["at"]


async def test_a_look_does_not_change_what_is_shown(tmp_path: Path) -> None:
    """Many who ask in the same second get the same bytes, made once."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        board, made = sidecar.sidecar.board, 0
        real = board_module.status

        def counted(*given: Any) -> Any:
            nonlocal made
            made += 1
            return real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(board_module, "status", counted)
            board.forget()
            begun = time.monotonic()
            pages = await asyncio.gather(*(sidecar.get(path) for path in ["/", "/api/v1/status"] * 10))
            seconds = time.monotonic() - begun
        assert {status for status, _, _ in pages} == {200}
        assert made <= 1 + int(seconds)


async def test_there_are_only_so_many_viewers(tmp_path: Path) -> None:
    """One more than the limit is told to come back later; a place that is given up is free again."""
    async with (
        running(write_budget(tmp_path, NOBODY)) as sidecar,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as many,
    ):
        streams = [await many.get(sidecar.url + EVENTS) for _ in range(MAX_VIEWERS)]
        assert {stream.status for stream in streams} == {200}
        async with many.get(sidecar.url + EVENTS) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        streams.pop().close()
        await until(lambda: len(sidecar.sidecar.viewers) < MAX_VIEWERS)
        async with many.get(sidecar.url + EVENTS) as again:
            assert again.status == 200
            await message(again)
        for stream in streams:
            stream.close()


def test_a_slow_viewer_is_let_go(tmp_path: Path) -> None:
    """Who does not read what is sent is cut off, and the others go on."""
    now = NOW
    board = Board(a_desk(tmp_path), clock=lambda: now, steady=lambda: now)
    viewers, cut = Viewers(board), []
    viewers.join(lambda: cut.append("slow"))
    fast = viewers.join(lambda: cut.append("fast"))
    assert fast is not None
    for _ in range(QUEUED + 1):
        now += 5
        while not fast._queue.empty():
            fast._queue.get_nowait()
        viewers.publish()
    assert cut == ["slow"]
    assert len(viewers) == 1


async def test_a_viewer_that_never_reads_holds_nothing_up(tmp_path: Path) -> None:
    """A connection whose other end has gone to sleep is closed by us, while /metrics goes on answering."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        host, port = "127.0.0.1", int(sidecar.url.rpartition(":")[2])
        with socket.socket() as asleep:
            asleep.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            asleep.connect((host, port))
            asleep.sendall(f"GET {EVENTS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await until(lambda: len(sidecar.sidecar.viewers) == 1)
            async with asyncio.timeout(PATIENCE):
                while len(sidecar.sidecar.viewers):
                    (viewer,) = sidecar.sidecar.viewers._viewers
                    # as fast as a viewer that reads would take it
                    if not viewer.put(b"data: " + b"x" * 65536 + b"\n\n"):
                        sidecar.sidecar.viewers.leave(viewer)
                    await asyncio.sleep(0.01)
                    assert (await sidecar.get("/metrics"))[0] == 200


@pytest.mark.slow
async def test_the_sidecar_ends_within_two_seconds_with_pages_open(tmp_path: Path) -> None:
    """Neither an open page nor one that reads nothing keeps a terminated sidecar alive."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as many:
        async with running(write_budget(tmp_path, NOBODY)) as sidecar:
            streams = [await many.get(sidecar.url + EVENTS) for _ in range(20)]
            for stream in streams:
                await message(stream)
            begun = time.monotonic()
        assert time.monotonic() - begun < 2.0
        for stream in streams:
            async with asyncio.timeout(PATIENCE):
                with contextlib.suppress(aiohttp.ClientError):
                    await stream.content.read()
            stream.close()


async def test_the_stream_is_behind_the_password(tmp_path: Path) -> None:
    """Without it there is no page, no file and no stream; with it there are, and a change of users ends the stream."""
    web = written(tmp_path, USERS)
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        for path in ("/", EVENTS, "/assets/page.js"):
            assert (await asked(sidecar, path))[0] == 401
        async with watching(sidecar, headers={"Authorization": RIGHT}) as stream:
            await message(stream)
            written(tmp_path, f"basic_auth_users: {{watcher: {hashed('another')}}}\n")
            assert (await asked(sidecar, "/-/reload", method="POST", auth=RIGHT))[0] == 200
            async with asyncio.timeout(PATIENCE):
                await stream.content.read()
        assert (await asked(sidecar, EVENTS, auth=RIGHT))[0] == 401


async def test_the_stream_counts_against_the_rate(tmp_path: Path) -> None:
    """Who opens streams without end is refused like who asks for pages without end."""
    web = written(tmp_path, "rate_limit: {interval: 1h, burst: 2}\n")
    async with running(write_budget(tmp_path, NOBODY), web=web) as sidecar:
        seen = []
        for _ in range(3):
            async with watching(sidecar) as stream:
                seen.append(stream.status)
        assert seen == [200, 200, 429]


async def test_the_stream_goes_through_tls(tmp_path: Path) -> None:
    """As every other route."""
    authority = Authority(tmp_path)
    pair = authority.pair("server")
    web = written(tmp_path, f"tls_server_config: {{cert_file: {pair.cert}, key_file: {pair.key}}}\n")
    async with (
        running(write_budget(tmp_path, NOBODY), web=web) as sidecar,
        watching(sidecar, ssl=client(authority)) as stream,
    ):
        assert set((await message(stream))["regions"]) == set(render.REGIONS)


async def test_head_asks_for_no_stream(tmp_path: Path) -> None:
    """A HEAD that were answered with a stream would never end."""
    async with running(write_budget(tmp_path, NOBODY)) as sidecar:
        assert (await asked(sidecar, EVENTS, method="HEAD"))[0] == 405
        assert (await asked(sidecar, "/", method="HEAD"))[0] == 200


async def test_a_fault_of_the_page_holds_up_no_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A template that fails is a page that fails: counters, rules and alerts go on."""

    def broken(*_: Any) -> dict[str, str]:
        raise RuntimeError("a secret")

    async with running(write_budget(tmp_path, NOBODY)) as sidecar, watching(sidecar) as stream:
        await message(stream)
        monkeypatch.setattr(render, "regions", broken)
        sidecar.sidecar.publisher.ask()
        before = sidecar.sidecar.publisher.page
        await until(lambda: sidecar.sidecar.publisher.page is not before)
        await until(lambda: "the status page is not up to date: RuntimeError" in caplog.text)
        assert "publishing failed" not in caplog.text
        sidecar.sidecar.board.forget()
        assert (await sidecar.get("/metrics"))[0] == 200
        status, _, text = await sidecar.get("/")
        assert status == 500
        assert "a secret" not in text
