"""config.json as plain values: strict about types, silent about what is absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specbudget.sources.checkpoint.bounded_file import failure, printable, read_bounded
from specbudget.sources.checkpoint.model import CheckpointProblem, ProblemKind

CONFIG_NAME = "config.json"
LARGEST_CONFIG = 2 * 2**20
"""The largest published ones, with long lists of modules left unquantised, stay far below; as objects this is 60 MB."""
LARGEST_NUMBER = 2**40
MOST_LAYERS = 10_000

_TEXT_KEYS = ("thinker_config", "llm_config", "language_config", "text_config", "transformer_layer_config")


def load_config(path: Path) -> tuple[dict[str, Any], bytes]:
    """The object in a config.json, and its content whatever its spacing and key order. Raises CheckpointError.

    Python's own decoder is used because the files hold `Infinity` and `NaN`, which are not JSON.
    """
    raw = read_bounded(path, LARGEST_CONFIG)
    try:
        config = json.loads(raw.decode("utf-8"))
        content = json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    except UnicodeDecodeError as error:
        raise failure(path, ProblemKind.MALFORMED, f"is not UTF-8 at byte {error.start}; restore the file") from error
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} in line {error.lineno}; restore the file"
        raise failure(path, ProblemKind.MALFORMED, message) from error
    except (RecursionError, ValueError) as error:
        raise failure(path, ProblemKind.MALFORMED, "is nested too deeply or holds an endless number") from error
    if not isinstance(config, dict):
        raise failure(path, ProblemKind.MALFORMED, "must be an object of settings; restore the file")
    return config, content


class ConfigReader:
    """Typed look-ups in one config; wrong types become problems, and each found key is remembered."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.root = config
        self.found: dict[str, str] = {}
        self.problems: list[CheckpointProblem] = []
        self._reported: set[str] = set()
        self.text_path = self._find_text_path()

    def _find_text_path(self) -> tuple[str, ...]:
        """Where the language model's own settings stand, in the order SGLang 0.5.23 looks."""
        for key in _TEXT_KEYS:
            nested = self.root.get(key)
            if isinstance(nested, dict):
                inner = nested.get("text_config")
                return (key, "text_config") if key == "thinker_config" and isinstance(inner, dict) else (key,)
        return ()

    def places(self, key: str) -> tuple[tuple[str, ...], ...]:
        """The language model's settings first, then the top level."""
        return ((*self.text_path, key), (key,)) if self.text_path else ((key,),)

    def lookup(self, *places: tuple[str, ...]) -> tuple[str, Any] | None:
        """The first place that holds something other than null, as (dotted key, value)."""
        for place in places:
            value: Any = self.root
            for step in place:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                return ".".join(place), value
        return None

    def report(self, key: str, message: str, kind: ProblemKind = ProblemKind.MALFORMED) -> None:
        """Note one problem of a key; a second one of the same key says nothing new."""
        if key not in self._reported:
            self._reported.add(key)
            problem = CheckpointProblem(file=self.path, key=printable(key, 120), message=message, kind=kind)
            self.problems.append(problem)

    def whole(self, fact: str, *places: tuple[str, ...], least: int = 1, most: int = LARGEST_NUMBER) -> int | None:
        """A whole number from `least` to `most`."""
        hit = self.lookup(*(places or self.places(fact)))
        if hit is None:
            return None
        key, value = hit
        if isinstance(value, bool) or not isinstance(value, int):
            self.report(key, f"must be a whole number, found {_kind_of(value)}; correct the file")
            return None
        if not least <= value <= most:
            self.report(key, f"must lie between {least} and {most}; correct the file")
            return None
        self.found.setdefault(fact, key)
        return value

    def text(self, fact: str, *places: tuple[str, ...]) -> str | None:
        """A short string; control characters are refused so that it can be shown as it is."""
        hit = self.lookup(*(places or self.places(fact)))
        if hit is None:
            return None
        key, value = hit
        if not isinstance(value, str):
            self.report(key, f"must be text, found {_kind_of(value)}; correct the file")
            return None
        if len(value) > 512 or not value.isprintable():
            self.report(key, "must be one short line of text; correct the file")
            return None
        self.found.setdefault(fact, key)
        return value

    def flag(self, fact: str, *places: tuple[str, ...]) -> bool | None:
        """true or false."""
        hit = self.lookup(*(places or self.places(fact)))
        if hit is None:
            return None
        key, value = hit
        if not isinstance(value, bool):
            self.report(key, f"must be true or false, found {_kind_of(value)}; correct the file")
            return None
        self.found.setdefault(fact, key)
        return value

    def wholes(self, fact: str, *places: tuple[str, ...]) -> tuple[int, ...] | None:
        """A list of whole numbers from 0."""
        hit = self.lookup(*(places or self.places(fact)))
        if hit is None:
            return None
        key, value = hit
        if not isinstance(value, list) or len(value) > MOST_LAYERS or not all(map(_is_small_whole, value)):
            self.report(key, "must be a list of whole numbers from 0; correct the file")
            return None
        self.found.setdefault(fact, key)
        return tuple(value)

    def texts(self, fact: str, *places: tuple[str, ...]) -> tuple[str, ...] | None:
        """A list of short strings."""
        hit = self.lookup(*(places or self.places(fact)))
        if hit is None:
            return None
        key, value = hit
        if (
            not isinstance(value, list)
            or len(value) > MOST_LAYERS
            or not all(isinstance(item, str) and len(item) <= 128 and item.isprintable() for item in value)
        ):
            self.report(key, "must be a list of short texts; correct the file")
            return None
        self.found.setdefault(fact, key)
        return tuple(value)


def _is_small_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_NUMBER


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"
