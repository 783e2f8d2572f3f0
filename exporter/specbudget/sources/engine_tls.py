"""TLS towards the engine: files read again for each request, so that a rotation needs no restart."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from specbudget.sources.pem import Part, PemError, identify, read_pem, trust

KEYS: dict[Part, str] = {"ca": "ca_file", "cert": "cert_file", "key": "key_file"}


class EngineTlsError(Exception):
    """A file cannot be used; `key` is the budget's key that names it."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths for TLS towards the engine; all None means the system's own trust."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure_skip_verify: bool = False


class EngineTls:
    """The context for the next connection to the engine."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._digest = b""
        self._context: ssl.SSLContext | bool = True

    def context(self) -> ssl.SSLContext | bool:
        """The same object while the files' content is the same; True for the system's own trust.

        Raises EngineTlsError when a file cannot be used now: an old context is no answer, since nobody would learn
        that the next start will fail.
        """
        if self._files == TlsFiles():
            return True
        try:
            contents = self._read()
            digest = hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents.values()))
            if digest.digest() != self._digest:
                self._context, self._digest = self._made(contents), digest.digest()
        except PemError as error:
            raise EngineTlsError(f"engine.tls.{KEYS[error.part]}", str(error)) from None
        return self._context

    def _read(self) -> dict[Part, bytes]:
        files: dict[Part, Path | None] = {
            "ca": self._files.ca_file,
            "cert": self._files.cert_file,
            "key": self._files.key_file,
        }
        return {part: read_pem(path, part) for part, path in files.items() if path is not None}

    def _made(self, contents: dict[Part, bytes]) -> ssl.SSLContext:
        files = self._files
        if "ca" in contents:
            # trusts these certificates alone, an intermediate among them too
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            trust(context, contents["ca"], called=str(files.ca_file))
        else:
            context = ssl.create_default_context()
        if "cert" in contents and "key" in contents:
            identify(
                context,
                contents["cert"],
                contents["key"],
                cert_called=str(files.cert_file),
                key_called=str(files.key_file),
            )
        if files.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
