"""Certificates and keys in PEM, given to OpenSSL with a word on which of them is at fault.

What was read is what is used: the bytes reach OpenSSL through a file in memory. So a rotation between two reads cannot
mix old and new, and a key that a configuration file holds inline never touches a disk.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NoReturn

from specbudget.budget.document import MAX_BYTES, read_content

Part = Literal["ca", "cert", "key"]


class PemError(Exception):
    """What OpenSSL would not take; `part` says which of the three it was. Holds no byte of a key."""

    def __init__(self, part: Part, text: str) -> None:
        super().__init__(text)
        self.part: Part = part


def read_pem(path: Path, part: Part) -> bytes:
    """The file's bytes; raises PemError, which names the file."""
    try:
        content = read_content(path)
    except OSError as error:
        raise PemError(part, f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    if len(content) > MAX_BYTES:
        raise PemError(part, f"{path} is larger than 1 MiB: this is no PEM file")
    return content


def trust(context: ssl.SSLContext, pem: bytes, *, called: str) -> None:
    """Adds the certificates of `pem` to those that `context` trusts. `called` names the file for the PemError."""
    before = context.cert_store_stats()["x509"]
    try:
        with _in_memory(pem) as name:
            context.load_verify_locations(cafile=name)
    except ssl.SSLError:
        raise PemError(
            "ca", f"{called} is no PEM certificate, or a damaged one: see “BEGIN CERTIFICATE” in it"
        ) from None
    if context.cert_store_stats()["x509"] == before:
        raise PemError("ca", f"{called} holds no certificate: there should be “BEGIN CERTIFICATE” in it")


def identify(context: ssl.SSLContext, cert: bytes, key: bytes, *, cert_called: str, key_called: str) -> None:
    """Makes `context` show the certificate chain `cert` with its `key`; raises PemError."""
    try:
        trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), cert, called=cert_called)
    except PemError as error:
        raise PemError("cert", str(error)) from None
    with _in_memory(cert) as cert_name, _in_memory(key) as key_name:
        try:
            context.load_cert_chain(cert_name, key_name, password=_no_password)
        except _PasswordError:
            raise PemError("key", f"{key_called} is protected by a password: give a key without one") from None
        except ssl.SSLError as error:
            reason = error.reason or ""
            if "MISMATCH" in reason or reason == "NO_CERTIFICATE_ASSIGNED":
                raise PemError("key", f"{key_called} is not the key of the certificate {cert_called}") from None
            if "TOO_SMALL" in reason or "TOO_WEAK" in reason:
                weak = reason.lower().replace("_", " ")
                raise PemError(
                    "cert", f"{cert_called} is too weak for OpenSSL here ({weak}): make a stronger one"
                ) from None
            raise PemError(
                "key", f"{key_called} is no PEM private key, or a damaged one: see “PRIVATE KEY” in it"
            ) from None


class _PasswordError(Exception):
    """A key asked for a password; nobody is there to type one."""


def _no_password() -> NoReturn:
    raise _PasswordError


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A name under which OpenSSL can open `content` while the block lasts."""
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
