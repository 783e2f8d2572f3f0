"""Stands before every route: client certificate, rate, password, and the headers of every answer."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from specbudget.serve.web_auth import Logins, TooBusyError
from specbudget.serve.web_config import LoadedWebConfig
from specbudget.serve.web_model import RateLimit

OPEN_PATHS = frozenset({"/-/healthy", "/-/ready"})
"""Answered without a password and at any rate: a probe has no password, and they say one word each."""

SAN_KINDS = {"DNS", "IP Address", "email", "URI"}


class Guard:
    """The web configuration in force, as it is applied to requests; `use` puts another one into force."""

    def __init__(self, loaded: LoadedWebConfig) -> None:
        self.use(loaded)

    def use(self, loaded: LoadedWebConfig) -> None:
        """From the next request on; passwords that were right before are checked again."""
        config, tls = loaded.config, loaded.config.tls_server_config
        users = {name: hashed.get_secret_value() for name, hashed in config.basic_auth_users.items()}
        self._logins = Logins(users) if users else None
        self._headers = config.http_server_config.headers.to_add()
        self._bucket = Bucket(config.rate_limit) if config.rate_limit and config.rate_limit.interval else None
        self._allowed = frozenset(tls.client_allowed_sans) if tls and tls.client_allowed_sans else None

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers 403, 429 or 401 itself, or hands on."""
        if self._allowed is not None and not self._allowed & _names(request):
            refused = web.Response(status=403, text="the client certificate is of nobody who may read here\n")
            refused.force_close()
            return refused
        resource = request.match_info.route.resource
        if resource is not None and resource.canonical in OPEN_PATHS:
            return await handler(request)
        if self._bucket is not None and not self._bucket.takes_one():
            return _too_many()
        if self._logins is not None:
            try:
                admitted = await self._logins.admits(request.headers.get("Authorization", ""))
            except TooBusyError:
                return _too_many()
            if not admitted:
                return web.Response(
                    status=401, text="user and password, please\n", headers={"WWW-Authenticate": "Basic"}
                )
        return await handler(request)

    async def add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        """The file's headers, in place of our own of the same name."""
        response.headers.update(self._headers)


class Bucket:
    """A token bucket: full at first, one token more each `interval` seconds, never more than `burst`."""

    def __init__(self, limit: RateLimit, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._clock = limit, clock
        self._tokens, self._at = float(limit.burst), clock()

    def takes_one(self) -> bool:
        """Takes a token; False when there is none."""
        now = self._clock()
        self._tokens = min(self._limit.burst, self._tokens + (now - self._at) / self._limit.interval)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _too_many() -> web.Response:
    return web.Response(status=429, text="too many requests\n", headers={"Retry-After": "1"})


def _names(request: web.Request) -> set[str]:
    """The subject alternative names of the client's certificate, which TLS has verified."""
    certificate: dict[str, Any] = request.get_extra_info("peercert") or {}
    names = {(kind, name) for kind, name in certificate.get("subjectAltName", ()) if kind in SAN_KINDS}
    return {str(ipaddress.ip_address(name.strip())) if kind == "IP Address" else name for kind, name in names}
