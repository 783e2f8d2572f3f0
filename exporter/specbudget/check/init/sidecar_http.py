"""Reads one page of a sidecar as its scraper does: over TLS and with a password where it asks for them.

No password stands in an argument or an address, none is kept, and none is printed.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from specbudget.errors import SpecbudgetError
from specbudget.sources.engine_tls import EngineTls, EngineTlsError, TlsFiles

ANSWER_SECONDS = 5.0
MOST_BYTES = 16 << 20
_LONGEST_PASSWORD = 4096
PASSWORD_VARIABLE = "SPECBUDGET_SIDECAR_PASSWORD"

_OPTIONS = {
    "engine.tls.ca_file": "--sidecar-ca",
    "engine.tls.cert_file": "--sidecar-cert",
    "engine.tls.key_file": "--sidecar-key",
}

_CLIENT = "where it asks for a client certificate, give --sidecar-cert and --sidecar-key"


class SidecarSilent(SpecbudgetError):
    """The sidecar that was named does not answer with its metrics; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarAccess:
    """Where the sidecar answers, whom to trust, and who asks; the user's name may stand in the address."""

    url: str
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    password_file: Path | None = None


def read_page(access: SidecarAccess, path: str) -> tuple[str, bytes]:
    """The address without a user and the body of `path` there, within ANSWER_SECONDS. Raises SidecarSilent."""
    parts = _address(access.url)
    port = "" if parts.port is None else f":{parts.port}"
    host = parts.hostname or ""
    shown = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path.rstrip('/').removesuffix(path)}"
    headers = {"Accept": "text/plain", **_authorization(access, unquote(parts.username or ""))}
    tls = _context(access) if parts.scheme == "https" else None
    try:
        return shown + path, _body(parts, f"{urlsplit(shown).path}{path}", headers, tls)
    except _Refused as error:
        raise SidecarSilent(f"--sidecar {shown}: {error}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SidecarSilent(f"--sidecar {shown}: {_words(error, parts)}") from None


class _Refused(Exception):
    """The sidecar answered with something else."""


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound or not url.isprintable() or " " in url:
        raise SidecarSilent("--sidecar: write its address as http://HOST:PORT or https://HOST:PORT")
    if parts.password is not None:
        raise SidecarSilent(
            f"--sidecar {parts.scheme}://{parts.username}@{parts.hostname}: no password belongs into an address, which "
            f"every user of this machine can read: put it into a file, --sidecar-password-file, or into the "
            f"environment as {PASSWORD_VARIABLE}"
        )
    if parts.query or parts.fragment:
        raise SidecarSilent("--sidecar: write the address without ? and #")
    return parts


def _authorization(access: SidecarAccess, user: str) -> dict[str, str]:
    """The header of a user with a password; empty where neither is given."""
    password = os.environ.get(PASSWORD_VARIABLE)
    if access.password_file is not None:
        try:
            with access.password_file.open("rb") as file:
                password = file.read(_LONGEST_PASSWORD + 1).decode().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SidecarSilent(f"--sidecar-password-file {access.password_file}: cannot be read: {reason}") from None
        if not password or len(password) > _LONGEST_PASSWORD:
            raise SidecarSilent(f"--sidecar-password-file {access.password_file}: should hold one line, the password")
    if not user:
        if access.password_file is not None:
            raise SidecarSilent(
                "--sidecar-password-file: whose? write the user's name into the address, NAME@HOST:PORT"
            )
        return {}
    if password is None:
        raise SidecarSilent(
            f"--sidecar: no password for {user}: put it into a file, --sidecar-password-file, or into the environment "
            f"as {PASSWORD_VARIABLE}"
        )
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _context(access: SidecarAccess) -> ssl.SSLContext:
    if (access.cert is None) != (access.key is None):
        raise SidecarSilent("--sidecar-cert and --sidecar-key belong together: give both or neither")
    files = TlsFiles(ca_file=access.ca, cert_file=access.cert, key_file=access.key)
    try:
        context = EngineTls(files).context()
    except EngineTlsError as error:
        raise SidecarSilent(f"{_OPTIONS[error.key]}: {error}") from None
    return context if isinstance(context, ssl.SSLContext) else ssl.create_default_context()


def _body(parts: SplitResult, path: str, headers: dict[str, str], tls: ssl.SSLContext | None) -> bytes:
    """The body, whole before the time is up; no redirect is followed, since it could take the password elsewhere."""
    end = time.monotonic() + ANSWER_SECONDS
    host = parts.hostname or ""
    connection = (
        http.client.HTTPConnection(host, parts.port, timeout=ANSWER_SECONDS)
        if tls is None
        else http.client.HTTPSConnection(host, parts.port, timeout=ANSWER_SECONDS, context=tls)
    )
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        _check_status(response.status, asked="Authorization" in headers)
        body = bytearray()
        while part := response.read1(1 << 16):
            body += part
            if len(body) > MOST_BYTES:
                raise _Refused(f"its answer is larger than {MOST_BYTES >> 20} MiB: this is no page of metrics")
            if time.monotonic() > end:
                raise TimeoutError
        return bytes(body)
    finally:
        connection.close()


def _check_status(status: int, *, asked: bool) -> None:
    if status == 200:
        return
    if status == 401 and not asked:
        raise _Refused(
            "asks for a user and a password (401): write NAME@HOST:PORT, and give --sidecar-password-file or "
            f"{PASSWORD_VARIABLE}"
        )
    told = {
        401: "does not take this user and password (401)",
        403: "refuses this client certificate (403): give one that its client_allowed_sans name",
        404: "has no /metrics (404): is this a sidecar of specbudget?",
        429: "is asked too often (429): try again in a while",
    }
    raise _Refused(told.get(status, f"answers with status {status} and not with its metrics"))


def _words(error: Exception, parts: SplitResult) -> str:
    """A failed connection for people, with what to do."""
    match error:
        case ssl.SSLCertVerificationError() if error.verify_code in (62, 64):
            return f"its certificate is of another name than {parts.hostname}: use the name that stands in it"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message}): give its authority with --sidecar-ca"
        case ssl.SSLError() if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            return "does not speak TLS: write http://"
        case ssl.SSLError() if "CERTIFICATE_REQUIRED" in (error.reason or "") or "ALERT" in (error.reason or ""):
            return (
                "refuses the connection: where it asks for a client certificate, give --sidecar-cert and --sidecar-key"
            )
        case ssl.SSLError():
            return f"TLS fails: {(error.reason or 'no reason given').lower().replace('_', ' ')}"
        case TimeoutError():
            return f"no answer within {ANSWER_SECONDS:g} s"
        case socket.gaierror():
            return f"there is no host {parts.hostname}: {error.strerror}"
        case ConnectionRefusedError():
            return "nobody listens there: start `specbudget serve`, or correct host and port"
        case http.client.BadStatusLine() if parts.scheme == "http":
            return "its answer is no HTTP: where it speaks TLS, write https://"
        case ConnectionResetError() | http.client.RemoteDisconnected() | BrokenPipeError():
            return f"closed the connection: {_CLIENT if parts.scheme == 'https' else 'where it speaks TLS, write https://'}"
        case OSError():
            return error.strerror or "cannot be reached"
        case _:
            return "its answer is no HTTP"
