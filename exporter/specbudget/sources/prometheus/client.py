"""Asks a storage over HTTP: queries only, bounded in time and size. No secret and no body stands in an error."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from specbudget.catalog.sets import ErrorReason
from specbudget.errors import SourceError
from specbudget.sources.engine_tls import EngineTls, EngineTlsError
from specbudget.sources.prometheus.client_config import ClientConfig

MAX_BODY_BYTES = 256 << 20
WITHIN = 120.0
"""Seconds for one answer: as long as Prometheus itself lets a query run."""
MAX_ERROR_TEXT = 200


class TooMuchAsked(SourceError):
    """The storage answers, but not so much at once: ask for less."""


class Series(msgspec.Struct):
    """One series of an answer."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _Matrix(msgspec.Struct):
    result: list[Series]


class MatrixAnswer(msgspec.Struct):
    """The answer to a query over a range."""

    data: _Matrix


class NamesAnswer(msgspec.Struct):
    """The answer to a question for values of a label."""

    data: list[str] | None = None


class _Failed(msgspec.Struct):
    error: str = ""
    errorType: str = ""


Answer = TypeVar("Answer", MatrixAnswer, NamesAnswer)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could carry the password to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class PrometheusClient:
    """One storage. `url` is where `/api/v1` begins, such as http://mimir/prometheus. Raises SourceError."""

    def __init__(self, url: str, config: ClientConfig) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SourceError(ErrorReason.MALFORMED, f"--prometheus {url}: write http://HOST:PORT or https://HOST")
        if parts.username is not None or parts.password is not None:
            raise SourceError(
                ErrorReason.SECRET, "--prometheus: no user and password in the address: use --user and --password-file"
            )
        self.url = url.rstrip("/")
        self._config = config
        self._tls = EngineTls(config.tls)
        self._made: tuple[ssl.SSLContext | bool, urllib.request.OpenerDirector] | None = None
        self._decoders: dict[type, msgspec.json.Decoder[Any]] = {}

    def ask(self, path: str, query: dict[str, str], answer: type[Answer]) -> Answer:
        """The answer of `/api/v1/` + path."""
        body = self._post(f"{self.url}/api/v1/{path}", urlencode(query).encode(), path)
        decoder = self._decoders.setdefault(answer, msgspec.json.Decoder(answer))
        try:
            return decoder.decode(body)  # type: ignore[no-any-return]
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise SourceError(
                ErrorReason.MALFORMED, f"{self.url}: the answer is not Prometheus': is /api/v1 below this address?"
            ) from None

    def _post(self, url: str, form: bytes, path: str) -> bytes:
        # questions for label values are not taken by post everywhere
        asks_by_get = path.startswith("label/")
        request = urllib.request.Request(
            f"{url}?{form.decode()}" if asks_by_get else url,
            data=None if asks_by_get else form,
            headers={"Accept": "application/json", **self._config.request_headers()},
        )
        try:
            with self._opener().open(request, timeout=WITHIN) as response:
                body: bytes = response.read(MAX_BODY_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._refused(error) from None
        except TimeoutError:
            raise TooMuchAsked(ErrorReason.TIMEOUT, f"{self.url}: no answer within {WITHIN:g} s") from None
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        if len(body) > MAX_BODY_BYTES:
            raise TooMuchAsked(ErrorReason.TOO_LARGE, f"{self.url}: an answer of more than {MAX_BODY_BYTES >> 20} MiB")
        return body

    def _opener(self) -> urllib.request.OpenerDirector:
        try:
            context = self._tls.context()
        except EngineTlsError as error:
            raise SourceError(ErrorReason.UNREADABLE, str(error)) from None
        if self._made is None or self._made[0] is not context:
            # the system's own trust is a file of megabytes: it is not read for each question
            own = context if isinstance(context, ssl.SSLContext) else ssl.create_default_context()
            opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=own))
            self._made = (context, opener)
        return self._made[1]

    def _refused(self, error: urllib.error.HTTPError) -> SourceError:
        with error:
            try:
                told = msgspec.json.decode(error.read(1 << 20), type=_Failed)
            except (msgspec.DecodeError, msgspec.ValidationError, OSError):
                told = _Failed()
        text = " ".join(told.error.split())[:MAX_ERROR_TEXT]
        said = f": {text}" if text and text.isprintable() else ""
        if error.code in (401, 403):
            how = "--user with --password-file, --bearer-token-file or --http.config.file"
            return SourceError(ErrorReason.UNAUTHORIZED, f"{self.url}: answered {error.code}: give {how}{said}")
        if error.code in (413, 422, 503, 504) and told.errorType != "bad_data":
            return TooMuchAsked(ErrorReason.HTTP_STATUS, f"{self.url}: answered {error.code}{said}")
        if 300 <= error.code < 400:
            return SourceError(ErrorReason.HTTP_STATUS, f"{self.url}: answered {error.code}: give the final address")
        if error.code == 404:
            return SourceError(ErrorReason.NOT_FOUND, f"{self.url}: answered 404: is /api/v1 below this address?")
        return SourceError(ErrorReason.HTTP_STATUS, f"{self.url}: answered {error.code}{said}")

    def _unreachable(self, reason: object) -> SourceError:
        if isinstance(reason, TimeoutError):
            return TooMuchAsked(ErrorReason.TIMEOUT, f"{self.url}: no answer within {WITHIN:g} s")
        if isinstance(reason, ssl.SSLCertVerificationError):
            text = f"its certificate is not trusted ({reason.verify_message}): give --tls-ca-path"
            return SourceError(ErrorReason.REFUSED, f"{self.url}: {text}")
        text = (reason.strerror or type(reason).__name__) if isinstance(reason, OSError) else type(reason).__name__
        return SourceError(ErrorReason.REFUSED, f"{self.url}: cannot connect: {text}")
