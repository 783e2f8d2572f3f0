"""The sidecar's listening sockets: they stay open while the TLS of new connections changes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from specbudget.serve.http_log import server_log

HANDSHAKE_SECONDS = 10.0
"""A client that connects and says nothing is let go after that."""

CLOSE_SECONDS = 5.0
"""So long a client has to say good-bye in TLS."""

BACKLOG = 128


class Listener:
    """Serves one application on one address."""

    def __init__(self, runner: web.AppRunner, server: asyncio.Server) -> None:
        self._runner, self._servers = runner, [server]
        self._changing = asyncio.Lock()

    @property
    def port(self) -> int:
        """The port that was really taken."""
        return int(self._servers[0].sockets[0].getsockname()[1])

    async def use(self, context: ssl.SSLContext | None) -> None:
        """New connections use `context` from now on, None for none; those that are open go on as they are.

        The sockets are never closed meanwhile, so that no client is refused.
        """
        async with self._changing:
            old = self._servers
            sockets = [sock.dup() for server in old for sock in server.sockets]
            self._servers = [await _serve(self._runner, context, sock=sock) for sock in sockets]
            # a server that is closed drops a connection that it took and has not begun to serve: so first it takes
            # no more, then what it took begins, and only then is it closed
            for server in old:
                for sock in server.sockets:
                    asyncio.get_running_loop().remove_reader(sock.fileno())
            await asyncio.sleep(0)
            for server in old:
                server.close()

    async def cleanup(self) -> None:
        """Stops listening and ends open connections."""
        async with self._changing:
            for server in self._servers:
                server.close()
            await self._runner.cleanup()


async def listen(
    app: web.Application, host: str, port: int, context: ssl.SSLContext | None = None
) -> tuple[Listener, int]:
    """Starts serving, with TLS where `context` is given; returns the port that was really taken. Raises OSError."""
    runner = web.AppRunner(app, access_log=None, logger=server_log(), shutdown_timeout=0.5)
    await runner.setup()
    try:
        listener = Listener(runner, await _serve(runner, context, host=host, port=port))
    except OSError:
        await runner.cleanup()
        raise
    return listener, listener.port


async def _serve(runner: web.AppRunner, context: ssl.SSLContext | None, **where: Any) -> asyncio.Server:
    create_server: Callable[..., Awaitable[asyncio.Server]] = asyncio.get_running_loop().create_server
    seconds: dict[str, float] = {}
    if context is not None:
        seconds = {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": CLOSE_SECONDS}
    return await create_server(runner.server, **where, ssl=context, backlog=BACKLOG, **seconds)
