"""A real HTTP server that answers what a test says and remembers every request."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from types import TracebackType
from typing import Self

from aiohttp import web

FIXTURES = Path(__file__).parent / "fixtures"
READINGS = FIXTURES / "readings"
CAPTURED = FIXTURES / "sglang"


@dataclass
class Answer:
    """What an endpoint says. `body` may be made anew for each request; `key` is the bearer that it asks for."""

    body: bytes | Callable[[], bytes] = b""
    status: int = 200
    seconds: float = 0.0
    key: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Seen:
    """One request as it came in."""

    method: str
    path: str
    authorization: str | None
    cookie: str | None


class ScriptedEngine:
    """Serves `answers` by path, 404 for all others; `most_open` is the largest number of requests at once by path."""

    def __init__(self, answers: dict[str, Answer] | None = None, *, tls: SSLContext | None = None) -> None:
        self.answers = answers or {}
        self.seen: list[Seen] = []
        self.most_open: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._tls = tls
        self.url = ""

    def count(self, path: str) -> int:
        """Requests of that path so far."""
        return sum(seen.path == path for seen in self.seen)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path
        sent = request.headers
        self.seen.append(Seen(request.method, path, sent.get("Authorization"), sent.get("Cookie")))
        self._open[path] += 1
        self.most_open[path] = max(self.most_open[path], self._open[path])
        try:
            answer = self.answers.get(path, Answer(b'{"detail":"Not Found"}', status=404))
            if answer.seconds:
                await asyncio.sleep(answer.seconds)
            if answer.key is not None and request.headers.get("Authorization") != f"Bearer {answer.key}":
                return web.Response(status=401, body=b'{"error":"Unauthorized"}')
            body = answer.body if isinstance(answer.body, bytes) else answer.body()
            return web.Response(status=answer.status, body=body, headers=answer.headers)
        finally:
            self._open[path] -= 1
