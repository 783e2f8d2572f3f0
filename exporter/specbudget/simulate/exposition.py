"""Text exposition as prometheus_client's multiprocess collector prints it for SGLang 0.5.23."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from prometheus_client import utils

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric family: name, type, HELP, label names (`dp_rank` comes on top with several ranks), buckets."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


@functools.lru_cache(maxsize=1)
def families() -> Mapping[str, Family]:
    """All families by name without the `sglang:` prefix, in the order in which they are printed."""
    raw: list[dict[str, Any]] = json.loads(data_text("metric_families.json"))
    return {
        entry["name"].removeprefix("sglang:"): Family(
            name=entry["name"],
            type=entry["type"],
            help=entry["help"],
            labels=tuple(entry["labels"]),
            buckets=tuple(entry.get("buckets", ())),
        )
        for entry in raw
    }


def data_text(name: str) -> str:
    """The text of one of this package's data files."""
    return resources.files("specbudget.simulate").joinpath("data", name).read_text(encoding="utf-8")


@dataclass(slots=True)
class Histogram:
    """Counts per bucket (not cumulative), the last one for everything above, and the sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, count: int = 1) -> None:
        """Count `value` `count` times."""
        position = next((i for i, bound in enumerate(self.bounds) if value <= bound), len(self.bounds))
        self.counts[position] += count
        self.sum += value * count


@dataclass(frozen=True, slots=True)
class Sample:
    """One child of a family: its labels and its value (a number, or a histogram)."""

    family: str
    labels: Mapping[str, str]
    value: float | Histogram


def render(samples: Iterable[Sample]) -> str:
    """The exposition text: families in their declared order, without those that have no sample."""
    children: dict[str, list[Sample]] = {}
    for sample in samples:
        children.setdefault(sample.family, []).append(sample)
    lines: list[str] = []
    for key, family in families().items():
        if key not in children:
            continue
        lines.append(f"# HELP {family.name} {family.help}")
        lines.append(f"# TYPE {family.name} {family.type}")
        for sample in children[key]:
            if isinstance(sample.value, Histogram):
                lines += _histogram_lines(family.name, sample.labels, sample.value)
            else:
                lines.append(f"{family.name}{_braces(sample.labels)} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def _histogram_lines(name: str, labels: Mapping[str, str], histogram: Histogram) -> list[str]:
    lines = [f"{name}_sum{_braces(labels)} {_number(histogram.sum)}"]
    total = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        bucket = {**labels, "le": _number(bound)}
        lines.append(f"{name}_bucket{_braces(bucket)} {_number(total)}")
    lines.append(f"{name}_count{_braces(labels)} {_number(total)}")
    return lines


def _braces(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{labels[name]}"' for name in sorted(labels)) + "}"


def _number(value: float) -> str:
    return str(utils.floatToGoString(value))  # type: ignore[no-untyped-call]
