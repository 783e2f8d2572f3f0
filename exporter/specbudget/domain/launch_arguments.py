"""The launch arguments of a server as names and values, whatever the server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from specbudget.domain.sglang_options import ALIASES, meanings

Arguments = TypeVar("Arguments")


def launch_words(args: str | Sequence[str]) -> list[str]:
    """The words of launch arguments; text with an open quote is split at spaces."""
    if not isinstance(args, str):
        return [str(word) for word in args]
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


def spelled_out(args: str | Sequence[str], release: str) -> list[str]:
    """The words of SGLang's launch arguments, each option by the one name under which it is read.

    Abbreviations are in full where they can only mean one, and second names are the first.
    """
    return [_in_full(word, release) for word in launch_words(args)]


def _in_full(word: str, release: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word[2:].partition("=")
    meant = meanings(name, release)
    return f"--{ALIASES.get(meant[0], meant[0])}{equals}{value}" if len(meant) == 1 else word


def launch_arguments(args: str | Sequence[str]) -> dict[str, str]:
    """Each `--name` with the value behind it, the last one counting; underscores in names, "" without a value.

    `--name=value` and `--name value` mean the same. A word that begins with `--` is never a value.
    """
    found: dict[str, str] = {}
    words = launch_words(args)
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            value = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("--") else ""
        found[name.replace("-", "_")] = value
    return found


def read_arguments(kind: type[Arguments], given: Mapping[str, str]) -> Arguments:
    """A dataclass of arguments, filled with those that are given under its fields' names.

    A switch without a value is true. A value that is no number where one belongs leaves its field at its default.
    """
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        text = given.get(field.name)
        if text is None:
            continue
        declared = str(field.type)
        if declared.startswith("bool"):
            values[field.name] = text.lower() not in ("false", "0")
        elif declared.startswith("str"):
            values[field.name] = text
        elif text.isascii() and text.isdigit() and len(text) <= 12:
            values[field.name] = int(text)
    return kind(**values)
