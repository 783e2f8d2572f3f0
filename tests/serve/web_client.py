"""A client of a sidecar behind a web configuration: passwords, certificates, and what is written into the file."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

import bcrypt
from tests.certificates import Authority, Pair
from tests.serve.running_sidecar import Running

NOBODY = "http://127.0.0.1:9"
"""An engine that does not answer."""


def hashed(password: str, *, cost: int = 4, version: str = "2b") -> str:
    """A bcrypt hash, at the lowest cost unless said otherwise."""
    made = bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(cost)).decode()
    return made.replace("$2b$", f"${version}$", 1)


def basic(user: str, password: str) -> str:
    """The Authorization header of user and password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


RIGHT = basic("watcher", "open sesame")
WRONG = basic("watcher", "open sesam")
UNKNOWN = basic("nobody", "open sesame")
USERS = f"basic_auth_users: {{watcher: {hashed('open sesame')}}}\n"


def written(folder: Path, text: str) -> Path:
    """The text as a web configuration in `folder`."""
    path = folder / "web.yml"
    path.write_text(text)
    return path


def client(trusts: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    """A client's context, with its own certificate if it has one."""
    context = ssl.create_default_context(cafile=trusts.file)
    if pair is not None:
        context.load_cert_chain(pair.cert, pair.key)
    return context


async def asked(
    sidecar: Running, path: str, *, method: str = "GET", auth: str | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers of one request."""
    headers = {} if auth is None else {"Authorization": auth}
    async with sidecar.client.request(method, sidecar.url + path, headers=headers, ssl=tls or True) as response:
        return response.status, await response.text(), dict(response.headers)
