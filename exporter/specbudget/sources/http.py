"""Reads an engine over HTTP: GET only, bounded in time and size, one request at a time per endpoint.

No method here writes to the engine, and no caller passes a path that generates tokens (/health and
/health_generate of SGLang do). A key is read from its file for each request, sent as a bearer, and never kept,
logged or raised.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp

from specbudget.catalog.sets import ErrorReason
from specbudget.errors import SourceError
from specbudget.sources.engine_tls import EngineTls, EngineTlsError, TlsFiles

MAX_BODY_BYTES = 64 << 20
MAX_KEY_BYTES = 16 << 10


class EngineHttp:
    """One engine's address. Raises SourceError, whose reason is a label and whose text is for people."""

    def __init__(self, url: str, *, api_key_file: Path | None = None, tls: TlsFiles | None = None) -> None:
        self._url = url
        self._api_key_file = api_key_file
        self._tls = EngineTls(tls or TlsFiles())
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, *, within: float, key_required: bool) -> bytes:
        """The body of `path`, whole `within` so many seconds.

        `key_required` False: the endpoint is open, so an unreadable key stops nothing.
        """
        headers = {"Accept": "text/plain, application/json"}
        try:
            key = self._key()
        except SourceError:
            if key_required:
                raise
            key = None
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        tls = self._ssl()
        try:
            async with self._client().get(
                self._url + path,
                headers=headers,
                ssl=tls,
                timeout=aiohttp.ClientTimeout(total=within),
                allow_redirects=False,
            ) as response:
                _check_status(response.status, path)
                return await _bounded(response, path)
        except TimeoutError as error:
            raise SourceError(ErrorReason.TIMEOUT, f"{path}: no answer within {within:g} s") from error
        except aiohttp.ClientConnectorError as error:
            raise SourceError(ErrorReason.REFUSED, f"{path}: cannot connect: {_plain(error.os_error)}") from error
        except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError, ValueError) as error:
            # an answer that broke off or is no HTTP: the engine is there
            raise SourceError(ErrorReason.MALFORMED, f"{path}: {type(error).__name__}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SourceError(ErrorReason.REFUSED, f"{path}: {type(error).__name__}") from error

    async def close(self) -> None:
        """Ends open connections."""
        if self._session is not None:
            await self._session.close()

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=4),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=True,
            )
        return self._session

    def _ssl(self) -> ssl.SSLContext | bool:
        try:
            return self._tls.context()
        except EngineTlsError as error:
            raise SourceError(ErrorReason.SECRET, f"{error.key}: {error}") from None

    def _key(self) -> str | None:
        """The key in its file now, line ends stripped; None without a file."""
        if self._api_key_file is None:
            return None
        try:
            with self._api_key_file.open("rb") as file:
                text = file.read(MAX_KEY_BYTES + 1).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not plain ASCII"
            raise SourceError(ErrorReason.SECRET, f"engine.api_key_file cannot be read: {reason}") from None
        if not text or len(text) > MAX_KEY_BYTES or not text.isprintable():
            raise SourceError(ErrorReason.SECRET, "engine.api_key_file should hold one line with the key")
        return text


def _check_status(status: int, path: str) -> None:
    if status == 200:
        return
    if status in (401, 403):
        raise SourceError(ErrorReason.UNAUTHORIZED, f"{path}: {status}: set engine.api_key_file to the engine's key")
    if status == 404:
        hint = (
            "start the engine with --enable-metrics; on several nodes only the first serves it"
            if path == "/metrics"
            else "this engine does not serve it"
        )
        raise SourceError(ErrorReason.NOT_FOUND, f"{path}: 404: {hint}")
    raise SourceError(ErrorReason.HTTP_STATUS, f"{path}: status {status}")


async def _bounded(response: aiohttp.ClientResponse, path: str) -> bytes:
    body = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise SourceError(ErrorReason.TOO_LARGE, f"{path}: more than {MAX_BODY_BYTES >> 20} MiB")
        if len(body) & 0xFFFFF < len(part):
            await asyncio.sleep(0)
    return bytes(body)


def _plain(error: OSError) -> str:
    return error.strerror or type(error).__name__
