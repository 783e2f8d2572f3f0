"""The reference pages, made from what they describe; `--check` says whether the committed pages are true."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from specbudget.catalog.lines import LINES, BudgetDef
from specbudget.catalog.series import (
    ALL_LINES,
    ENGINE,
    LABELS,
    PREFIX,
    SERIES,
    SERVICE_LABEL,
    SETS_OF_SERIES,
    SIDECAR,
    Kind,
    SeriesDef,
)
from specbudget.catalog.sets import REASONS_BY_SOURCE
from specbudget.generate import budget_page, rule_page, rules_page
from specbudget.serve.status import status_schema

FOLDER = Path("docs/reference")

_HEAD = f"""<!-- Generated from exporter/specbudget/catalog by `make generate`: do not edit. -->
# Series

What `specbudget serve` prints on `/metrics`, in the order in which it prints it. Every series also carries
`{SERVICE_LABEL}`, the budget's `service`.

- A value that is not known is absent; it is never 0. Gauges vanish when their source has not answered for three
  polls and for 60 seconds.
- Counters and histograms begin at 0 and live as long as the process; with `--state` they go on after a restart
  for the same service, engine address and host (or `POD_UID`).
- A state set is one gauge sample per state, exactly one of them 1.
- Units are bytes, seconds, tokens and ratios from 0 to 1. Byte figures of device memory are of one device.
"""


def render() -> str:
    """The whole page of series."""
    parts = [_HEAD]
    titles = [(ALL_LINES, "Every line")] + [(line.id, line.title) for line in LINES]
    for group, title in [*titles, (ENGINE, "Engine"), (SIDECAR, "Sidecar")]:
        rows = [series for series in SERIES if series.group == group]
        if rows:
            parts.append(f"\n## {title}\n\n| series | type | labels | meaning |\n|---|---|---|---|\n")
            parts.extend(_row(series) for series in rows)
    parts.append(_budgets())
    parts.append(_labels())
    return "".join(parts)


def _row(series: SeriesDef) -> str:
    labels = ", ".join(series.labels) or "–"
    meaning = series.help
    if series.kind is Kind.HISTOGRAM:
        meaning += f" Buckets: {' '.join(f'{bound:g}' for bound in series.buckets)}."
    return f"| `{series.full_name}` | {series.kind} | {labels} | {meaning} |\n"


def _budgets() -> str:
    rows = "".join(
        f"| {line.id} | {budget.id} | {budget.unit} | {budget.spent} | {_limit(budget)} |\n"
        for line in LINES
        for budget in line.budgets
    )
    return (
        "\n## Budgets: what is spent, against what\n\n"
        "The used ratio is spent ÷ limit, for a floor limit ÷ spent; above 1 is always bad.\n\n"
        "| line | budget | unit | spent | limit |\n|---|---|---|---|---|\n" + rows
    )


def _limit(budget: BudgetDef) -> str:
    return f"{budget.limit} (a floor)" if budget.floor else budget.limit


def _labels() -> str:
    rows = "".join(
        f"| {name} | {values if isinstance(values, str) else _words(values)} |\n" for name, values in LABELS.items()
    )
    sets = "".join(
        f"| `{PREFIX}{name}` | {label} | {_words(values)} |\n" for (name, label), values in SETS_OF_SERIES.items()
    )
    reasons = "".join(f"| {source} | {_words(tuple(reasons))} |\n" for source, reasons in REASONS_BY_SOURCE.items())
    return (
        f"\n## Labels\n\n| label | values |\n|---|---|\n{rows}"
        f"\n## Sets of single series\n\n| series | label | values |\n|---|---|---|\n{sets}"
        f"\n## Reasons of errors by source\n\n| source | reasons |\n|---|---|\n{reasons}"
    )


def _words(values: tuple[str, ...]) -> str:
    return " ".join(f"`{value}`" for value in values)


def _status_schema() -> str:
    """The schema of /api/v1/status."""
    return json.dumps(status_schema(), indent=2, sort_keys=True) + "\n"


PAGES: dict[Path, Callable[[], str]] = {
    FOLDER / "budget.md": budget_page.render,
    FOLDER / "series.md": render,
    FOLDER / "rules.md": rule_page.render,
    FOLDER / "rules-prometheus.md": rules_page.render,
    FOLDER / "status.schema.json": _status_schema,
}


def main(arguments: list[str]) -> int:
    """Writes the pages below the present folder; with `--check` compares only, exit 1 when one differs."""
    stale = 0
    for page, text in ((page, render_page()) for page, render_page in PAGES.items()):
        if page.is_file() and page.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            print(f"{page}: not what the code says: run `make generate`", file=sys.stderr)
            stale = 1
            continue
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
