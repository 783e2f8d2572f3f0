"""Authorities and certificates for tests of TLS, made anew for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Pair:
    """Where a certificate chain and its key were written."""

    cert: Path
    key: Path


class Authority:
    """One certificate authority; everything it makes is written below `folder`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca = trustme.CA()
        self._folder = folder
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def pair(self, name: str, *identities: str, key_type: trustme.KeyType = trustme.KeyType.ECDSA) -> Pair:
        """A certificate for these names, addresses or mail addresses, by default for 127.0.0.1."""
        made = self._ca.issue_cert(*(identities or ("127.0.0.1",)), key_type=key_type)
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.cert.write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
        made.private_key_pem.write_to_path(pair.key)
        return pair
