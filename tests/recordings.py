"""Recordings of scenarios as a real Prometheus saw them, and what tests make of them."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from specbudget.catalog.kept import KEPT_BY_NAME
from specbudget.history.writer import HistoryWriter

FOLDER = Path(__file__).parent / "fixtures" / "recordings"
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
OF_PROMETHEUS = frozenset({"instance", "job"})
"""Labels that Prometheus adds and a sidecar does not know."""

Key = tuple[str, tuple[tuple[str, str], ...]]


def recording(scenario: str) -> Path:
    """The recording of a scenario."""
    return FOLDER / f"{scenario}.om.gz"


def samples(path: Path) -> Iterator[tuple[str, dict[str, str], float, float]]:
    """(name, labels, value, time) of each sample."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                named, value, at = line.rsplit(" ", 2)
                name, _, inside = named.partition("{")
                yield name, dict(_LABEL.findall(inside)), float(value), float(at)


def kept_rows(path: Path) -> list[tuple[float, dict[Key, float]]]:
    """What the sidecar's own history would hold of a recording: a row per scrape, without Prometheus' labels."""
    rows: dict[float, dict[Key, float]] = defaultdict(dict)
    for name, labels, value, at in samples(path):
        kept = KEPT_BY_NAME.get(name)
        if kept is not None and all(labels.get(label) == wanted for label, wanted in kept.only):
            own = tuple(sorted((key, text) for key, text in labels.items() if key not in OF_PROMETHEUS))
            rows[at][(name, own)] = value
    return sorted(rows.items())


def write_history(path: Path, folder: Path) -> tuple[float, float]:
    """Writes a recording into a history; returns its first and last time."""
    rows = kept_rows(path)
    writer = HistoryWriter(folder)
    writer.write(rows)
    writer.close()
    return rows[0][0], rows[-1][0]
