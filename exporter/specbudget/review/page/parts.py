"""What a chart is made of, in the terms of assets/chart.js."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specbudget.domain.acceptance import Floats
from specbudget.review.page.thinned import told

HEIGHT = 260


@dataclass(frozen=True, slots=True)
class Line:
    """One line or area. `colour` is a number of theme.css or a name; lines differ by more than colour."""

    id: str
    label: str
    values: Floats | None
    colour: int | str = 7
    dash: tuple[int, ...] = ()
    shape: str = "line"
    hatch: bool = False
    shown: bool = True

    def config(self) -> dict[str, Any]:
        """As chart.js takes it."""
        assert self.values is not None
        made: dict[str, Any] = {"id": self.id, "label": self.label, "values": told(self.values), "colour": self.colour}
        made |= {"shape": self.shape}
        if self.dash:
            made["dash"] = list(self.dash)
        if self.hatch:
            made["hatch"] = True
        if not self.shown:
            made["shown"] = False
        return made

    @property
    def summary(self) -> tuple[float, float, float]:
        """Least, most and last known value."""
        assert self.values is not None
        there = self.values[np.isfinite(self.values)]
        return float(there.min()), float(there.max()), float(there[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: lines that are known, how to read it, and rules at one value."""

    id: str
    title: str
    note: str
    format: str
    lines: tuple[Line, ...]
    low: float | None = None
    stack: bool = False
    marked: bool = False
    rules: tuple[tuple[str, float], ...] = ()
    height: int = HEIGHT

    def config(self) -> dict[str, Any]:
        """As chart.js takes it, without what all charts share."""
        return {
            "title": self.title,
            "format": self.format,
            "height": self.height,
            "stack": self.stack,
            "range": {"low": self.low, "high": None},
            "marked": self.marked,
            "rules": [{"value": value, "label": label, "colour": "limit"} for label, value in self.rules],
            "lines": [line.config() for line in self.lines],
        }
