"""PromQL as the catalog writes it: selectors of declared series, durations, and conditions made of comparisons.

A condition is kept in parts and not as text, so that a test can change one comparison, bound or guard at a time and
see that a rule test notices. There is no further syntax tree: promtool is the parser.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from specbudget.catalog.series import SeriesDef

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(seconds: float) -> str:
    """A length of time to the second, as Prometheus writes it: 5m, 1h, 2h14m24s."""
    left, text = max(1, round(seconds)), ""
    for letter, size in _UNITS:
        count, left = divmod(left, size)
        text += f"{count}{letter}" if count else ""
    return text


def number(value: float) -> str:
    """A number without digits that only the arithmetic of the machine put there."""
    return f"{value:.10g}"


def quoted(text: str) -> str:
    """A string literal of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def equals(label: str, value: str) -> str:
    """A matcher of one value."""
    return f"{label}={quoted(value)}"


def one_of(label: str, values: Iterable[str]) -> str:
    """A matcher of any of some words."""
    values = tuple(values)
    if len(values) == 1:
        return equals(label, values[0])
    return f"{label}=~{quoted('|'.join(values))}"


def none_of(label: str, values: Iterable[str]) -> str:
    """A matcher of all but some words."""
    return f"{label}!~{quoted('|'.join(values))}"


def matching(name: str, matchers: Iterable[str]) -> str:
    """A selector; a matcher is text like `state="off"`."""
    return f"{name}{{{','.join(matchers)}}}"


def of(series: SeriesDef, suffix: str = "") -> str:
    """The name of a series on the wire, with the suffix of a histogram's part."""
    return series.full_name + suffix


class Join(StrEnum):
    """How a condition goes on."""

    AND = "and"
    UNLESS = "unless"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """`query` compared with `bound`, or without `op` that `query` has a sample at all.

    `matching` follows the operator where both sides are vectors of other labels. A bound is a scalar or a vector.
    """

    query: str
    op: str = ""
    bound: str = ""
    matching: str = ""

    def text(self) -> str:
        """The comparison as PromQL."""
        if not self.op:
            return self.query
        return " ".join(part for part in (self.query, self.op, self.matching, self.bound) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a condition asks besides, on the labels that both sides share."""

    join: Join
    on: tuple[str, ...]
    part: Clause | Condition

    def text(self) -> str:
        """The operator and its right side."""
        return f"{self.join} on ({', '.join(self.on)}) {inside(self.part.text())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The first clause gives value and labels, the others only whether it holds.

    `outer` is an aggregation around the whole, such as `count by (service)`. `otherwise` are further conditions of
    the same labels: any one is enough.
    """

    first: Clause
    rest: tuple[Joined, ...] = ()
    outer: str = ""
    otherwise: tuple[Condition, ...] = ()

    def text(self) -> str:
        """The condition as PromQL, a part to a line."""
        own = "\n".join((self.first.text(), *(joined.text() for joined in self.rest)))
        if self.outer:
            own = f"{self.outer} {inside(own)}"
        return "\nor\n".join((own, *(other.text() for other in self.otherwise)))


def inside(text: str) -> str:
    """The text in parentheses, indented."""
    body = text.replace("\n", "\n  ")
    return f"(\n  {body}\n)"
