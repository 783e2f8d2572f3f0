"""Sizes, durations and bandwidths as people write them, read into base units."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, PlainValidator

from specbudget.budget.declared import Kind

_SIZES = {"B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    _SIZES[f"{_letter}iB"] = 1024**_power
    _SIZES[f"{_letter}B"] = 1000**_power

_WHOLE = frozenset({"B", "KiB", "KB", "MiB", "MB"})

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
MOST_BYTES = 1 << 60
MOST_SECONDS = 36500 * 86400.0
"""Beyond these lies a slip of the pen, and numbers that arithmetic cannot hold."""

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def parse_size(value: Any) -> int:
    """Bytes of `12GiB`, `1.5 TB`, `512MiB`; the unit is required, for 12 of what is the usual mistake."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _SIZES:
        raise ValueError(f"{value!r} is not a size: write a number with a unit, like 12GiB or 800MB")
    size = float(match[1]) * _SIZES[match[2]]
    if size > MOST_BYTES:
        raise ValueError("too large: at most 1 EiB, which is 1024PiB")
    return math.floor(size)


class MeasuredSize(int):
    """Bytes as they were read off: `rounding` is by how much they may lie beside it, 0 for a size to the byte."""

    rounding: float

    def __new__(cls, size: int, rounding: float = 0.0) -> Self:
        """A size that was rounded by at most `rounding` bytes."""
        measured = super().__new__(cls, size)
        measured.rounding = rounding
        return measured


def parse_measured(value: Any) -> MeasuredSize:
    """A size with its rounding: half of the last digit of a large unit, as a log prints it, but at most 0.005.

    Bytes, KiB and MiB are taken to the byte.
    """
    size = parse_size(value)
    match = _SIZE.fullmatch(value)
    if match is None or match[2] in _WHOLE:
        return MeasuredSize(size)
    decimals = max(2, len(match[1].partition(".")[2]))
    return MeasuredSize(size, 0.5 * 10**-decimals * _SIZES[match[2]])


def parse_bandwidth(value: Any) -> int:
    """Bytes per second of `2GiB/s`."""
    if not isinstance(value, str) or not value.strip().endswith("/s"):
        raise ValueError(f"{value!r} is not a bandwidth: write a size per second, like 2GiB/s")
    return parse_size(value.strip().removesuffix("/s"))


def parse_duration(value: Any) -> float:
    """Seconds of `5s`, `1h30m`, `28d`; the unit is required."""
    parts = _DURATION_PART.findall(value.replace(" ", "")) if isinstance(value, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != value.replace(" ", ""):
        raise ValueError(f"{value!r} is not a duration: write a number with a unit, like 5s, 30m or 28d")
    span = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if span > MOST_SECONDS:
        raise ValueError("too long: at most 100 years, which are 36500d")
    return span


def format_duration(seconds: float) -> str:
    """A duration as people spell it: in the largest unit up to days that leaves a whole number."""
    for unit, length in reversed(_SECONDS.items()):
        if unit != "w" and seconds >= length and (seconds / length).is_integer():
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"


Size = Annotated[int, BeforeValidator(parse_size), Kind(words="size with a unit", unit="bytes")]
"""Bytes."""
Measured = Annotated[MeasuredSize, PlainValidator(parse_measured), Kind(words="size with a unit", unit="bytes")]
"""Bytes with their rounding."""
Bandwidth = Annotated[
    int, BeforeValidator(parse_bandwidth), Kind(words="size per second, with a unit", unit="bytes per second")
]
"""Bytes per second."""
Duration = Annotated[float, BeforeValidator(parse_duration), Kind(words="duration with a unit", unit="seconds")]
"""Seconds."""
