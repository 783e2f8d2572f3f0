"""The sidecar's own HTTP: reads memory, waits for nothing."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from aiohttp import web

from specbudget.serve.publish import OPENMETRICS, TEXT, Publisher
from specbudget.serve.web_guard import Guard

LANDING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>specbudget</title>
<h1>specbudget: {service}</h1>
<ul><li><a href="metrics">Metrics</a></li><li><a href="api/v1/status">Status</a></li>
<li><a href="-/healthy">Healthy</a></li><li><a href="-/ready">Ready</a></li></ul></html>
"""


def make_app(
    *,
    publisher: Publisher,
    service: Callable[[], str],
    status: Callable[[], bytes],
    reload: Callable[[], list[str]],
    guard: Guard | None = None,
) -> web.Application:
    """The routes.

    `status` makes the JSON of the present state from memory. `reload` reads the files again and returns their
    problems, none when they are in force.

    `guard` stands before every route, those that do not exist included.
    """

    async def metrics(request: web.Request) -> web.Response:
        page = publisher.page
        if "application/openmetrics-text" in request.headers.get("Accept", ""):
            return web.Response(body=page.openmetrics, headers={"Content-Type": OPENMETRICS})
        return web.Response(body=page.text, headers={"Content-Type": TEXT})

    async def landing(_: web.Request) -> web.Response:
        return web.Response(
            text=LANDING.format(service=escape(service())),
            content_type="text/html",
            headers={"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"},
        )

    async def api_status(_: web.Request) -> web.Response:
        return web.Response(
            body=status(), content_type="application/json", headers={"X-Content-Type-Options": "nosniff"}
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
            web.get("/", landing),
            web.get("/metrics", metrics),
            web.get("/api/v1/status", api_status),
            web.get("/-/healthy", healthy),
            web.get("/-/ready", ready),
            web.post("/-/reload", do_reload),
        ]
    )
    return app
