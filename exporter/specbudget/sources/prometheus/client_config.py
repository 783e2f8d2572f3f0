"""How to reach a storage: from options, or from the client configuration file that Prometheus' own tools take.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config describes the file. Secrets come
from files only, are read when a request is made, and stand in no text.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from specbudget.errors import BudgetError, Problem
from specbudget.sources.engine_tls import TlsFiles

MAX_SECRET_BYTES = 16 << 10
_KEYS: dict[str, tuple[str, ...]] = {
    "": ("basic_auth", "authorization", "bearer_token", "bearer_token_file", "tls_config", "http_headers"),
    "basic_auth": ("username", "username_file", "password", "password_file"),
    "authorization": ("type", "credentials", "credentials_file"),
    "tls_config": ("ca_file", "cert_file", "key_file", "insecure_skip_verify"),
}


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that stands in a file: `path` holds nothing else, or `value` was written into the client file."""

    path: Path | None = None
    value: str | None = None

    def __repr__(self) -> str:
        return f"Secret({self.path or '…'})"

    def read(self) -> str:
        """The secret without the line's end. Raises BudgetError when its file cannot be used."""
        if self.path is None:
            return self.value or ""
        try:
            with self.path.open("rb") as file:
                text = file.read(MAX_SECRET_BYTES + 1).decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            what = error.strerror if isinstance(error, OSError) else "is no text"
            raise BudgetError([Problem(str(self.path), None, "", f"cannot be read: {what}")]) from None
        if not text or len(text) > MAX_SECRET_BYTES or not text.isprintable():
            raise BudgetError([Problem(str(self.path), None, "", "must hold the secret alone, on one line")])
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Who asks, and whom it trusts. `tenant` is sent as X-Scope-OrgID."""

    user: str | None = None
    user_file: Path | None = None
    password: Secret | None = None
    token: Secret | None = None
    token_type: str = "Bearer"
    tenant: str | None = None
    headers: tuple[tuple[str, Secret], ...] = ()
    tls: TlsFiles = field(default_factory=TlsFiles)

    def request_headers(self) -> dict[str, str]:
        """Headers of the next request, with the secrets as their files say them now."""
        headers = {name: secret.read() for name, secret in self.headers}
        if self.tenant is not None:
            headers["X-Scope-OrgID"] = self.tenant
        if self.token is not None:
            headers["Authorization"] = f"{self.token_type} {self.token.read()}"
        elif self.user is not None or self.user_file is not None:
            user = self.user if self.user is not None else Secret(self.user_file).read()
            pair = f"{user}:{self.password.read() if self.password else ''}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return headers


def read_client_file(path: Path) -> ClientConfig:
    """The client configuration of a file; its paths are taken from its folder. Raises BudgetError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BudgetError([Problem(str(path), None, "", f"cannot be read: {error.strerror}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise BudgetError([Problem(str(path), None if line is None else line + 1, "", "is no YAML")]) from None
    problems = [
        Problem(str(path), None, key, message) for key, message in _problems({} if content is None else content)
    ]
    if problems:
        raise BudgetError(problems)
    return _config(content or {}, path.parent)


def _problems(content: Any, section: str = "") -> list[tuple[str, str]]:
    if not isinstance(content, dict):
        return [(section, "must be a mapping")]
    found: list[tuple[str, str]] = []
    for key, value in content.items():
        name = f"{section}.{key}" if section else str(key)
        if key not in _KEYS[section]:
            found.append((name, f"is not supported; supported: {', '.join(_KEYS[section])}"))
        elif not section and key in _KEYS:
            found += _problems(value, key)
        elif key == "http_headers":
            found += _header_problems(value)
        elif key == "insecure_skip_verify":
            found += [] if isinstance(value, bool) else [(name, "must be true or false")]
        elif not isinstance(value, str) or not value:
            found.append((name, "must be a text"))
    if not found and not section and "authorization" in content and "basic_auth" in content:
        found.append(("basic_auth", "only one of basic_auth and authorization can be used"))
    return found


def _header_problems(content: Any) -> list[tuple[str, str]]:
    if not isinstance(content, dict):
        return [("http_headers", "must be a mapping")]
    found = []
    for header, told in content.items():
        if not isinstance(told, dict) or not told or set(told) - {"values", "secrets", "files"}:
            found.append((f"http_headers.{header}", "must have values, secrets or files, each a list of one"))
        elif any(not isinstance(one, list) or len(one) != 1 or not isinstance(one[0], str) for one in told.values()):
            found.append((f"http_headers.{header}", "must have a list of one text"))
    return found


def _config(content: dict[str, Any], folder: Path) -> ClientConfig:
    basic, bearer, tls = (content.get(key, {}) for key in ("basic_auth", "authorization", "tls_config"))

    def secret(section: dict[str, Any], value: str, file: str) -> Secret | None:
        if file in section:
            return Secret(folder / section[file])
        return Secret(None, section[value]) if value in section else None

    def path(key: str) -> Path | None:
        return folder / tls[key] if key in tls else None

    headers = []
    for header, told in content.get("http_headers", {}).items():
        files = told.get("files")
        value = (told.get("values") or told.get("secrets") or [None])[0]
        headers.append((str(header), Secret(folder / files[0]) if files else Secret(None, value)))
    return ClientConfig(
        user=basic.get("username"),
        user_file=folder / basic["username_file"] if "username_file" in basic else None,
        password=secret(basic, "password", "password_file"),
        token=secret(bearer, "credentials", "credentials_file") or secret(content, "bearer_token", "bearer_token_file"),
        token_type=bearer.get("type", "Bearer"),
        headers=tuple(headers),
        tls=TlsFiles(
            ca_file=path("ca_file"),
            cert_file=path("cert_file"),
            key_file=path("key_file"),
            insecure_skip_verify=bool(tls.get("insecure_skip_verify", False)),
        ),
    )
