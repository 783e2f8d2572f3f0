"""Statements about a page of /metrics that can say what the page shows instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from specbudget.catalog import series
from specbudget.catalog.series import SeriesDef
from specbudget.demo.readings import Reading


@dataclass(frozen=True, slots=True)
class Statement:
    """What `says` tells about the samples of a series that carry `labels`."""

    says: str
    of: SeriesDef
    holds: Callable[[Reading], bool]
    labels: Mapping[str, str] = field(default_factory=dict)

    def shown(self, reading: Reading | None) -> str:
        """The samples that the statement is about, as the page has them."""
        if reading is None:
            return "no page"
        samples = samples_of(reading, self.of, self.labels)
        told = [f"{_braces(labels)} {value:g}" for labels, value in samples if value or not _is_set(self.of)]
        return f"{self.of.full_name}: {', '.join(told) or ('none is 1' if samples else 'no sample')}"


def samples_of(reading: Reading, of: SeriesDef, labels: Mapping[str, str]) -> list[tuple[dict[str, str], float]]:
    """The samples that carry these labels, whatever else they carry."""
    wanted = set(labels.items())
    return [(dict(key), value) for key, value in reading.all(of).items() if wanted <= key]


def between(of: SeriesDef, least: float = -math.inf, most: float = math.inf, **labels: str) -> Statement:
    """There are samples with these labels, and their sum lies in this range."""

    def holds(reading: Reading) -> bool:
        found = samples_of(reading, of, labels)
        return bool(found) and least <= sum(value for _, value in found) <= most

    return Statement(f"{of.full_name}{_braces(labels)} from {least:g} to {most:g}", of, holds, labels)


def exactly(of: SeriesDef, value: float, **labels: str) -> Statement:
    """There are samples with these labels, and their sum is this."""
    return between(of, value, value, **labels)


def absent(of: SeriesDef) -> Statement:
    """The series has no sample."""
    return Statement(f"{of.full_name} absent", of, lambda reading: not reading.all(of))


def state(of: SeriesDef, now_in: str, **labels: str) -> Statement:
    """Every set of states with these labels is in this one."""

    def holds(reading: Reading) -> bool:
        return {found["state"] for found, value in samples_of(reading, of, labels) if value == 1.0} == {now_in}

    return Statement(f"{of.full_name}{_braces(labels)} in {now_in}", of, holds, labels)


def suspected(*causes: str) -> Statement:
    """These causes are suspected, and no other."""
    told = ", ".join(causes) or "nothing"
    return Statement(
        f"{told} suspected", series.ACCEPTANCE_SUSPECT, lambda reading: suspects_of(reading) == set(causes)
    )


def suspects_of(reading: Reading) -> set[str]:
    """The causes that a page suspects."""
    return {labels["cause"] for labels, value in samples_of(reading, series.ACCEPTANCE_SUSPECT, {}) if value}


def _is_set(of: SeriesDef) -> bool:
    return "state" in of.labels or "cause" in of.labels


def _braces(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{name}={value}" for name, value in labels.items()) + "}" if labels else ""
