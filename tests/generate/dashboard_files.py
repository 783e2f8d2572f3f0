"""The committed dashboards as the tests read them: their panels, their queries, variables filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser

from specbudget.budget.reading import load_budget
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.rule_budget import rule_settings

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "budget.yaml"
SETTINGS: RuleSettings = rule_settings(load_budget(EXAMPLE).budget)

TEXTS = {each: (ROOT / "dashboards" / f"{each}.json").read_text() for each in Dashboard}
FILES: dict[Dashboard, dict[str, Any]] = {each: json.loads(text) for each, text in TEXTS.items()}

FILLED = {"$__rate_interval": "1m", "$__interval": "15s", "$__range": "20m", "$service": SETTINGS.service}
"""What Grafana puts into a query on a range of a few minutes; every other variable stands at All."""


@dataclass(frozen=True)
class Query:
    """One query of one panel; `variables` are those it names."""

    dashboard: Dashboard
    panel: str
    ref: str
    expr: str
    instant: bool

    @property
    def filled(self) -> str:
        """The query as Prometheus gets it."""
        return filled(self.expr)

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel} {self.ref}"


def filled(expr: str) -> str:
    """A query with its variables filled in."""
    for name, value in FILLED.items():
        expr = expr.replace(name, value)
    return re.sub(r"\$\w+", ".*", expr)


def panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """All panels that show something, those in folded rows too."""
    for panel in FILES[dashboard]["panels"]:
        yield from (each for each in (panel, *panel.get("panels", ())) if each["type"] != "row")


def queries() -> list[Query]:
    """Every query of every panel."""
    return [
        Query(dashboard, panel["title"], target["refId"], target["expr"], bool(target.get("instant")))
        for dashboard in Dashboard
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def marks() -> list[Query]:
    """The queries of the marks on the time axis."""
    return [
        Query(dashboard, mark["name"], "mark", mark["expr"], False)
        for dashboard in Dashboard
        for mark in FILES[dashboard]["annotations"]["list"]
    ]


def selectors(expr: str) -> list[promql_parser.VectorSelector]:
    """Every selector of a query; ValueError where it is no PromQL."""
    found: list[promql_parser.VectorSelector] = []

    def see(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(filled(expr)), see)
    return found


def metric(selector: promql_parser.VectorSelector) -> str:
    """The name of what a selector selects, or the pattern of it."""
    if selector.name:
        return str(selector.name)
    return next(str(one.value) for one in selector.matchers.matchers if one.name == "__name__")
