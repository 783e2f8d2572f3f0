"""What the sidecar says, read from its own /metrics as any Prometheus would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

from specbudget.catalog.lines import LINES, BudgetDef, LineDef
from specbudget.catalog.series import (
    BUDGET_LIMIT,
    BUDGET_SPENT,
    BUDGET_USED_RATIO,
    LINE_STATE,
    SERVICE_LABEL,
    SeriesDef,
)
from specbudget.sources.exposition import read_samples

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reading:
    """One body of /metrics as values by name and labels."""

    values: Mapping[str, Mapping[Labels, float]]
    service: str

    def value(self, series: SeriesDef, **labels: str) -> float | None:
        """The sample with exactly these labels (the service aside); None when absent."""
        return self.values.get(series.full_name, {}).get(frozenset(labels.items()))

    def all(self, series: SeriesDef, suffix: str = "") -> dict[Labels, float]:
        """Every sample of a series."""
        return dict(self.values.get(series.full_name + suffix, {}))

    def total(self, series: SeriesDef) -> float:
        """Sum over all children of a counter."""
        return sum(self.all(series).values())

    def largest(self, series: SeriesDef, **labels: str) -> float | None:
        """The largest sample among those that carry these labels."""
        wanted = set(labels.items())
        return max((v for key, v in self.all(series).items() if wanted <= key), default=None)

    def state_of(self, series: SeriesDef, **labels: str) -> str | None:
        """The state that is 1 in a state set."""
        wanted = set(labels.items())
        for key, value in self.all(series).items():
            if value == 1.0 and wanted <= key:
                return dict(key).get("state")
        return None


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """One budget of a line: its declaration, both sides and the used ratio, None where not known."""

    budget: BudgetDef
    spent: float | None
    limit: float
    ratio: float | None


@dataclass(frozen=True, slots=True)
class LineRow:
    """One line: its declaration, state, and the budgets that have a limit."""

    line: LineDef
    state: str
    budgets: tuple[BudgetRow, ...]

    @property
    def tightest(self) -> BudgetRow | None:
        """The budget with the largest used ratio; without one, the first that has a limit."""
        known = [row for row in self.budgets if row.ratio is not None]
        if known:
            return max(known, key=lambda row: row.ratio or 0.0)
        return self.budgets[0] if self.budgets else None


def fetch(url: str) -> Reading | None:
    """Reads `url`/metrics; None while nobody answers."""
    try:
        with urlopen(f"{url}/metrics", timeout=2.0) as response:
            body = response.read()
    except (URLError, OSError):
        return None
    values: dict[str, dict[Labels, float]] = {}
    service = ""
    for sample in read_samples(body):
        labels = dict(sample.labels)
        service = labels.pop(SERVICE_LABEL, service)
        values.setdefault(sample.name, {})[frozenset(labels.items())] = sample.value
    return Reading(values, service)


def line_rows(reading: Reading) -> list[LineRow]:
    """The five lines in order."""
    rows = []
    for line in LINES:
        budgets = []
        for budget in line.budgets:
            labels = {"line": line.id, "budget": budget.id}
            limit = reading.value(BUDGET_LIMIT[budget.unit], **labels)
            if limit is not None:
                spent = reading.value(BUDGET_SPENT[budget.unit], **labels)
                budgets.append(BudgetRow(budget, spent, limit, reading.value(BUDGET_USED_RATIO, **labels)))
        state = reading.state_of(LINE_STATE, line=line.id) or "unknown"
        rows.append(LineRow(line, state, tuple(budgets)))
    return rows
