"""The page's routes: the page, its files, and what changes while it is open."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from aiohttp import web

from specbudget.assets import CONTENT_TYPES, asset
from specbudget.serve.page import render
from specbudget.serve.page.board import Board
from specbudget.serve.page.viewers import Viewers

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Nothing from another host, no script and no style in the page itself, and no text that becomes markup or code."""

SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

RETRY_SECONDS = "10"


def page_routes(board: Board, viewers: Viewers) -> list[web.RouteDef]:
    """The routes around what is kept in memory."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(
            body=board.document(),
            headers={"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", **SECURITY},
        )

    async def events(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        hang_up: Callable[[], None] = transport.abort if transport is not None else lambda: None
        viewer = viewers.join(hang_up)
        if viewer is None:
            return web.Response(
                status=503, text="as many pages are open as there may be\n", headers={"Retry-After": RETRY_SECONDS}
            )
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream",
                "Cache-Control": "no-store",
                # a proxy that gathers what it passes on would make the page late
                "X-Accel-Buffering": "no",
                **SECURITY,
            }
        )
        try:
            await response.prepare(request)
            while (message := await viewer.next()) is not None:
                await response.write(message)
        except ConnectionError:
            pass
        finally:
            viewers.leave(viewer)
        return response

    files = {name: _File(name) for name in render.SERVED}

    async def one_file(request: web.Request) -> web.Response:
        file = files.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound
        if request.headers.get("If-None-Match") == file.tag:
            return web.Response(status=304, headers={"ETag": file.tag})
        return web.Response(
            body=file.body,
            headers={
                "Content-Type": file.content_type,
                "ETag": file.tag,
                # the page names the build in the address
                "Cache-Control": "private, max-age=31536000, immutable" if "v" in request.query else "no-cache",
                **SECURITY,
            },
        )

    return [
        web.get("/", page),
        web.get("/assets/{name:[a-zA-Z0-9_./-]+}", one_file),
        # HEAD would be answered by a stream without an end
        web.get("/api/v1/events", events, allow_head=False),
    ]


class _File:
    """One file in memory."""

    def __init__(self, name: str) -> None:
        self.body = asset(name).encode()
        self.content_type = CONTENT_TYPES[name.rpartition(".")[2]]
        self.tag = f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'
