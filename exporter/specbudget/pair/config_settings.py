"""The settings of a config.json, flat and short, so that a lock can hold them and a later change be named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

MOST_SETTINGS = 500
"""A config of more is none that people read; then only its digest is known."""
LONGEST_KEY = 120
LONGEST_VALUE = 60
DIGEST = "sha256:"
_DEPTH = 4


def settings(config: Mapping[str, Any]) -> dict[str, str] | None:
    """Each setting by its dotted key: its JSON, or where that is long the digest of it. None where there are too many.

    Lists are one value. What lies deeper than four levels is one value too.
    """
    found = dict(_flat(config, (), _DEPTH))
    return dict(sorted(found.items())) if len(found) <= MOST_SETTINGS else None


def _flat(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value and depth:
        for key, inner in value.items():
            yield from _flat(inner, (*path, str(key)), depth - 1)
    elif path:
        key = ".".join(path)
        yield (key if len(key) <= LONGEST_KEY and key.isprintable() else _digest(key)), _short(value)


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE and text.isprintable() else _digest(text)


def _digest(text: str) -> str:
    return DIGEST + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
