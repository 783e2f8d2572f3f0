"""Python's json.dump writes more than JSON knows: NaN, Infinity and lone surrogates. A second try lets them pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

Decoded = TypeVar("Decoded")

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
NO_NUMBER = re.compile(rb"-?\bInfinity\b|\bNaN\b")


def decode_leniently(decode: Callable[[bytes], Decoded], text: bytes) -> Decoded | None:
    """What `decode` reads, if need be with unreadable numbers as null and surrogates as `?`; None when it cannot.

    Only for what is skipped or matched by number: texts may come out changed.
    """
    try:
        return decode(text)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return decode(SURROGATE.sub(rb"\\u003f", NO_NUMBER.sub(b"null", text)))
    except (msgspec.DecodeError, RecursionError):
        return None
