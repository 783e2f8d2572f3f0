"""Reads a web configuration file and all that it names, whole or not at all."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from specbudget.budget.document import Document, content_digest, read_document, validated
from specbudget.budget.model import resolve
from specbudget.errors import BudgetError, Problem
from specbudget.serve.web_model import CURVES, TLS_VERSIONS, TlsServer, WebConfig
from specbudget.sources.pem import Part, PemError, identify, read_pem, trust

VERIFY_MODES = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

_KEYS: dict[Part, str] = {"ca": "client_ca", "cert": "cert", "key": "key"}


@dataclass(frozen=True, slots=True)
class LoadedWebConfig:
    """A web configuration that can be put into force."""

    config: WebConfig = field(repr=False)
    path: Path
    context: ssl.SSLContext | None
    """None without TLS."""
    tls_digest: str
    """Of what `context` was made from: while it is the same, connections need no other context."""
    files: tuple[Path, ...]
    """The file and those that it names."""
    digest: str
    """As files_digest() gives it for `files`."""


@dataclass(frozen=True, slots=True)
class WebConfigFile:
    """A web configuration as it was written; the files that it names are not read yet."""

    config: WebConfig = field(repr=False)
    path: Path
    document: Document = field(repr=False)

    def files(self) -> tuple[Path, ...]:
        """The file and those that it names."""
        tls = self.config.tls_server_config
        named = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls is not None else ()
        return (self.path, *(resolve(name, self.path) for name in named if name is not None))

    def digest(self) -> str:
        """As files_digest() of `files`, but with the content from which this was read."""
        return " ".join([self.document.digest, *map(_digest_of, self.files()[1:])])

    def load(self) -> LoadedWebConfig:
        """Reads the files that it names; raises BudgetError."""
        # before they are read: what changes meanwhile is then a change to be seen
        digest = self.digest()
        tls = self.config.tls_server_config
        if tls is None:
            return LoadedWebConfig(self.config, self.path, None, "", self.files(), digest)
        try:
            context, tls_digest = _server_context(tls, self.path)
        except PemError as error:
            key, lines = _KEYS[error.part], self.document.lines
            candidates = (("tls_server_config", f"{key}_file"), ("tls_server_config", key))
            loc = next((loc for loc in candidates if loc in lines), candidates[0])
            raise BudgetError([Problem(str(self.path), lines.get(loc), ".".join(loc), str(error))]) from None
        return LoadedWebConfig(self.config, self.path, context, tls_digest, self.files(), digest)


def read_web_config(path: Path) -> WebConfigFile:
    """Reads and checks the file alone; raises BudgetError with one Problem per fault, without any value in it."""
    try:
        document = read_document(path, what="web configuration", begin="write {} for one that asks for nothing")
    except FileNotFoundError as error:
        raise BudgetError([Problem(str(path), None, "", f"cannot be read: {error.strerror}")]) from error
    return WebConfigFile(validated(WebConfig, document), path, document)


def files_digest(files: tuple[Path, ...]) -> str:
    """Changes when a file's content changes, or its being there."""
    return " ".join(map(_digest_of, files))


def _digest_of(path: Path) -> str:
    try:
        return content_digest(path)
    except OSError as error:
        return type(error).__name__


def _server_context(tls: TlsServer, beside: Path) -> tuple[ssl.SSLContext, str]:
    """The context for new connections, and the digest of what it was made from; raises PemError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = TLS_VERSIONS[tls.min_version], TLS_VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if tls.prefer_server_cipher_suites:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if tls.tls12_suites():
        context.set_ciphers(":".join(tls.tls12_suites()))
    for curve in tls.curve_preferences:
        context.set_ecdh_curve(CURVES[curve])
    inline_key = None if tls.key is None else tls.key.get_secret_value()
    cert, cert_called = _content("cert", tls.cert, tls.cert_file, beside)
    key, key_called = _content("key", inline_key, tls.key_file, beside)
    identify(context, cert, key, cert_called=cert_called, key_called=key_called)
    ca = b""
    if tls.client_auth_type != "NoClientCert":
        ca, ca_called = _content("ca", tls.client_ca, tls.client_ca_file, beside)
        trust(context, ca, called=ca_called)
        # as in Go: whoever stands in the file is trusted, an intermediate authority too
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = VERIFY_MODES[tls.client_auth_type]
    made_from = (repr(tls).encode(), cert, key, ca)
    return context, hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in made_from)).hexdigest()


def _content(part: Part, inline: str | None, file: str | None, beside: Path) -> tuple[bytes, str]:
    """What was given inline or stands in the file, and how to call it in a message."""
    if file is None:
        return (inline or "").encode(), "what stands here"
    path = resolve(file, beside)
    return read_pem(path, part), str(path)
