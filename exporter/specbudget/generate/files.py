"""Generated files: rendered as text, written only where they differ, or held against what is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from specbudget.errors import SpecbudgetError

Files = Mapping[PurePosixPath, str]
"""Texts by path below the output folder."""


class CannotGenerate(SpecbudgetError):
    """The budget asks for what no file can say; the text names key, fault and fix."""


class CannotWrite(SpecbudgetError):
    """A generated file cannot be written or read."""


def write(files: Files, out: Path) -> list[PurePosixPath]:
    """Writes what differs, making folders as needed; returns the paths that were written. Raises CannotWrite."""
    written = []
    for path, text in sorted(files.items()):
        if _present(out / path) == text:
            continue
        try:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotWrite(f"{out / path}: cannot be written: {error.strerror or error}") from error
        written.append(path)
    return written


def stale(files: Files, out: Path) -> list[PurePosixPath]:
    """The paths whose file is missing or says something else."""
    return [path for path, text in sorted(files.items()) if _present(out / path) != text]


def _present(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CannotWrite(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
