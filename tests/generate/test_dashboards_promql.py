"""The queries of the dashboards: they parse, and name only what is declared."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from generate.dashboard_files import FILES, SETTINGS, Query, marks, metric, queries, selectors
from generate.promtool import run
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.labels import REPLICA_LABELS
from specbudget.catalog.recording import Level, record_groups
from specbudget.catalog.series import SERIES, Kind, SeriesDef
from specbudget.generate.dashboards.events import ALERTS_SERIES
from specbudget.generate.dashboards.load import ENGINE_PREFIX, ENGINE_TOKEN_LATENCY

OURS: dict[str, SeriesDef] = {
    name: one
    for one in SERIES
    for name in (
        [one.full_name + part for part in ("_bucket", "_count", "_sum")]
        if one.kind is Kind.HISTOGRAM
        else [one.full_name]
    )
}
RECORDED = {record.name for group in record_groups(SETTINGS) for record in group.rules}
OTHERS = {ALERTS_SERIES, "up", f"{ENGINE_PREFIX}{ENGINE_TOKEN_LATENCY}_bucket"}
AROUND = {*SETTINGS.labels, *REPLICA_LABELS, "job"}
"""Labels that stand around the declared ones."""

CAPTURED = Path(__file__).parents[1] / "fixtures" / "sglang"
"""What SGLang's own code printed."""

EVERY = [*queries(), *marks()]


@pytest.mark.parametrize("query", EVERY, ids=str)
def test_every_query_parses_and_names_what_is_declared(query: Query) -> None:
    """Each metric is a series of ours, a recorded one, or one of three others by name; each matcher a label it has."""
    for selector in selectors(query.expr):
        name = metric(selector)
        assert name in {*OURS, *RECORDED, *OTHERS}, name
        matched = {one.name for one in selector.matchers.matchers if one.name != "__name__"}
        if name in OURS:
            bucket = {"le"} if name.endswith("_bucket") else set()
            assert matched <= {*OURS[name].labels, *AROUND, *bucket}, name
        if name in RECORDED:
            assert matched <= {*SETTINGS.labels, *(REPLICA_LABELS if name.startswith(Level.REPLICA) else ()), "sli"}


@pytest.mark.parametrize("query", EVERY, ids=str)
def test_every_query_is_about_what_is_chosen(query: Query) -> None:
    """Each selector of ours is narrowed by the service; only what belongs to no service is not."""
    for selector in selectors(query.expr):
        if metric(selector) not in {"up", f"{ENGINE_PREFIX}{ENGINE_TOKEN_LATENCY}_bucket"}:
            assert "specbudget_service" in {one.name for one in selector.matchers.matchers}


@pytest.mark.parametrize("query", queries(), ids=str)
def test_counters_are_read_by_their_growth(query: Query) -> None:
    """No panel shows how far a counter has come since its process began, only that it is there or was not before."""
    counters = {name for name, one in OURS.items() if one.kind is not Kind.GAUGE}
    above: list[promql_parser.Expr] = []
    shown: list[str] = []

    def enter(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector) and metric(node) in counters and node.offset is None:
            only_there = any(isinstance(one, promql_parser.AggregateExpr) and "group" in str(one.op) for one in above)
            if not only_there and not isinstance(above[-1], promql_parser.MatrixSelector):
                shown.append(metric(node))
        above.append(node)

    def leave(node: promql_parser.Expr) -> None:
        above.pop()

    promql_parser.walk(promql_parser.parse(query.filled), enter, leave)
    assert shown == []


@pytest.mark.parametrize("dashboard", list(Dashboard))
def test_variables_ask_for_labels_that_there_are(dashboard: Dashboard) -> None:
    """`label_values` of a declared series, and of a label that it or its target has."""
    for variable in FILES[dashboard]["templating"]["list"][1:]:
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        assert found is not None
        (selector,) = selectors(found[1])
        assert found[2] in {*OURS[metric(selector)].labels, *AROUND}


@pytest.mark.parametrize(
    "captured", sorted(CAPTURED.glob("*/metrics_*_dspark_*.busy.prom")), ids=lambda path: path.stem
)
def test_the_engines_own_metric_is_one_that_it_prints(captured: Path) -> None:
    """Time per token as SGLang names it, with a colon between prefix and name or an underscore."""
    names = set(re.findall(r"^(\S+?)\{", captured.read_text(), re.M))
    wanted = re.compile(f"{ENGINE_PREFIX}{ENGINE_TOKEN_LATENCY}_bucket")
    assert {name for name in names if wanted.fullmatch(name)}
    assert wanted.fullmatch(f"sglang_{ENGINE_TOKEN_LATENCY}_bucket")


@pytest.mark.slow
def test_the_reference_parser_agrees() -> None:
    """promtool formats every query, which it does only for what it can parse."""
    for query in {each.filled for each in EVERY}:
        done = run("--experimental", "promql", "format", query)
        assert done.returncode == 0, done.stderr
