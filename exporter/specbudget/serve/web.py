"""The sidecar's own HTTP: reads memory, waits for nothing."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from specbudget.serve.page.board import Board
from specbudget.serve.page.routes import page_routes
from specbudget.serve.page.viewers import Viewers
from specbudget.serve.publish import OPENMETRICS, TEXT, Publisher
from specbudget.serve.web_guard import Guard


def make_app(
    *,
    publisher: Publisher,
    board: Board,
    viewers: Viewers,
    reload: Callable[[], list[str]],
    guard: Guard | None = None,
) -> web.Application:
    """The routes.

    `board` tells the present state from memory, `viewers` holds the pages that are open. `reload` reads the files
    again and returns their problems, none when they are in force.

    `guard` stands before every route, those that do not exist included.
    """

    async def metrics(request: web.Request) -> web.Response:
        page = publisher.page
        if "application/openmetrics-text" in request.headers.get("Accept", ""):
            return web.Response(body=page.openmetrics, headers={"Content-Type": OPENMETRICS})
        return web.Response(body=page.text, headers={"Content-Type": TEXT})

    async def api_status(_: web.Request) -> web.Response:
        return web.Response(
            body=board.status(), content_type="application/json", headers={"X-Content-Type-Options": "nosniff"}
        )

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(_: web.Request) -> web.Response:
        if publisher.page.text:
            return web.Response(text="ready\n")
        return web.Response(status=503, text="not ready: nothing is rendered yet\n")

    async def do_reload(_: web.Request) -> web.Response:
        problems = reload()
        if problems:
            return web.Response(status=400, text="\n".join([*problems, "what was in force is kept", ""]))
        return web.Response(text="reloaded\n")

    app = web.Application(client_max_size=1 << 20, middlewares=() if guard is None else (guard.middleware,))
    if guard is not None:
        app.on_response_prepare.append(guard.add_headers)
    app.add_routes(
        [
            *page_routes(board, viewers),
            web.get("/metrics", metrics),
            web.get("/api/v1/status", api_status),
            web.get("/-/healthy", healthy),
            web.get("/-/ready", ready),
            web.post("/-/reload", do_reload),
        ]
    )
    return app
