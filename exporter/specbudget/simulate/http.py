"""The HTTP side of the stand-in: the endpoints of SGLang 0.5.23 that a monitor may meet."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from specbudget.simulate import exposition, loads, loglines, serverinfo
from specbudget.simulate.process import Process

OPEN_PREFIXES = ("/health", "/ready", "/metrics")
"""Paths that never ask for a key (utils/auth.py `decide_request_auth`)."""


class Served(Protocol):
    """What the endpoints need of the engine behind them."""

    api_key: str | None

    @property
    def process(self) -> Process:
        """The present life of the engine."""

    def now(self) -> float:
        """Epoch seconds."""

    def count_health_call(self, path: str) -> None:
        """Somebody made the engine generate a token to prove its health."""

    def log(self, when: float, text: str, prefix: str = "") -> None:
        """Write to the server log."""


def application(served: Served) -> web.Application:
    """The application, for one life of the engine or several."""

    async def metrics(_request: web.Request) -> web.Response:
        text = exposition.render(served.process.samples(served.now()))
        return web.Response(body=text.encode(), headers={"Content-Type": exposition.CONTENT_TYPE})

    async def v1_loads(request: web.Request) -> web.Response:
        include = request.query.get("include")
        sections = {section.strip() for section in include.split(",")} if include else None
        rank = request.query.get("dp_rank")
        try:
            entries = loads.loads(served.process, include=sections, rank=None if rank is None else int(rank))
        except ValueError as error:
            return _error(400, str(error))
        if request.query.get("format") == "prometheus":
            text = loads.as_text(entries)
            kind = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
            return web.Response(body=text.encode(), headers=kind)
        return web.json_response(loads.as_json(served.process, entries))

    async def server_info(_request: web.Request) -> web.Response:
        return web.json_response(serverinfo.server_info(served.process))

    async def model_info(_request: web.Request) -> web.Response:
        return web.json_response(serverinfo.model_info(served.process))

    async def models(_request: web.Request) -> web.Response:
        return web.json_response(serverinfo.models(served.process))

    async def health(request: web.Request) -> web.Response:
        served.count_health_call(request.path)
        return web.Response(status=200 if served.process.ready_at is not None else 503)

    async def ready(_request: web.Request) -> web.Response:
        return web.Response(status=200 if served.process.ready_at is not None else 503)

    app = web.Application(middlewares=[_access_log(served), _keys(served), _faults(served)])
    app.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/metrics/", metrics),
            web.get("/v1/loads", v1_loads),
            web.get("/server_info", server_info),
            web.get("/get_server_info", server_info),
            web.get("/model_info", model_info),
            web.get("/get_model_info", model_info),
            web.get("/v1/models", models),
            web.get("/health", health),
            web.get("/health_generate", health),
            web.get("/ready", ready),
        ]
    )
    return app


def _error(status: int, message: str) -> web.Response:
    body = {"object": "error", "message": message, "type": str(status), "param": None, "code": status}
    return web.json_response(body, status=status)


def _access_log(served: Served) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except web.HTTPNotFound:
            response = web.json_response({"detail": "Not Found"}, status=404)
        peer = request.transport.get_extra_info("peername") if request.transport else None
        client = f"{peer[0]}:{peer[1]}" if peer else "unknown:0"
        status = f"{response.status} {HTTPStatus(response.status).phrase}"
        line = f"{request.method} {request.path_qs} HTTP/1.1"
        served.log(served.now(), loglines.access(client, line, status))
        return response

    return middleware


def _keys(served: Served) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if served.api_key is not None and not request.path.startswith(OPEN_PREFIXES):
            scheme, _, key = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not secrets.compare_digest(key.encode(), served.api_key.encode()):
                return web.json_response({"error": "Unauthorized"}, status=401)
        return await handler(request)

    return middleware


def _faults(served: Served) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        for prefix, status in served.process.conditions(served.now()).faults.items():
            if request.path.startswith(prefix):
                return web.Response(status=status, text=HTTPStatus(status).phrase)
        return await handler(request)

    return middleware
