"""Checks user and password of a request against bcrypt hashes, beside the event loop and one at a time.

Only who knows a right password learns anything from how long an answer takes: an unknown user costs the same check as
a known one. Of a password that was right a keyed digest is kept, so that a scrape costs one check per start and not one
per request; passwords themselves are not.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections.abc import Mapping

from specbudget.serve.background import in_background

MAX_KEPT = 100
"""Right passwords that are remembered; more users than that are better served by client certificates."""

MAX_WAITING = 32
"""Checks that may wait for their turn: each takes a tenth of a second, and a guesser sends many."""

BCRYPT_BYTES = 72
"""What bcrypt reads of a password; `htpasswd` cuts the rest off, too."""

_NOBODYS_HASH = "." * 53
"""Salt and hash that no password is known for."""


class TooBusyError(Exception):
    """More passwords wait to be checked than is sensible."""


class Logins:
    """The users of one web configuration: bcrypt hashes by name."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        # here, since most sidecars never check a password
        import bcrypt

        self._check = bcrypt.checkpw
        self._hashes = {name.encode(): hashed.encode() for name, hashed in hashes.items()}
        self._costs = sorted(int(hashed[4:6]) for hashed in hashes.values())
        self._secret = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def admits(self, authorization: str) -> bool:
        """True when the header holds a user's right password; raises TooBusyError."""
        credentials = _credentials(authorization)
        if credentials is None:
            return False
        user, password = credentials
        known = self._hashes.get(user)
        hashed = known if known is not None else self._hash_of_nobody(user)
        digest = self._digest(user, password)
        if digest in self._right:
            return True
        if self._waiting >= MAX_WAITING:
            raise TooBusyError
        self._waiting += 1
        try:
            async with self._turn:
                # two first requests of one scraper came at once
                if digest in self._right:
                    return True
                right = await in_background(lambda: self._matches(password, hashed))
        finally:
            self._waiting -= 1
        if not right or known is None:
            return False
        self._keep(digest)
        return True

    def _matches(self, password: bytes, hashed: bytes) -> bool:
        try:
            return self._check(password[:BCRYPT_BYTES], hashed)
        except ValueError:
            # a password that bcrypt cannot read, as with a zero byte, is nobody's
            return False

    def _hash_of_nobody(self, user: bytes) -> bytes:
        """A hash as costly as one of the users', always the same for one name."""
        cost = self._costs[int.from_bytes(self._digest(user, b"")[:8], "big") % len(self._costs)]
        return f"$2b${cost:02d}${_NOBODYS_HASH}".encode()

    def _digest(self, user: bytes, password: bytes) -> bytes:
        """Keyed with what only this process knows, so that no place in the dictionary can be guessed."""
        mac = hashlib.blake2b(key=self._secret, digest_size=32)
        mac.update(len(user).to_bytes(8, "big") + user + password)
        return mac.digest()

    def _keep(self, digest: bytes) -> None:
        if len(self._right) >= MAX_KEPT:
            del self._right[next(iter(self._right))]
        self._right[digest] = None


def _credentials(authorization: str) -> tuple[bytes, bytes] | None:
    """User and password of `Basic …` (RFC 7617); None for anything else."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    user, colon, password = decoded.partition(b":")
    return (user, password) if colon else None
