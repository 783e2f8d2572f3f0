"""The linter of dashboards: every fault that it knows is found by itself, and a good dashboard has none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specbudget.generate.dashboards.lint import faults

FOUR_FAULTS = Path(__file__).parents[1] / "fixtures" / "dashboards" / "four-faults.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(number: int, x: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": f"Panel {number}",
        "description": "How to read it.",
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": 0, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": "s", "noValue": "unknown"}, "overrides": []},
        "options": {"legend": {"showLegend": True}},
        "targets": [{"refId": "A", "expr": "up", "datasource": SOURCE}],
    } | more


def good() -> dict[str, Any]:
    folded = {
        "id": 3,
        "type": "row",
        "title": "Folded",
        "collapsed": True,
        "gridPos": {"x": 0, "y": 8, "w": 24, "h": 1},
        "panels": [panel(4, 0), panel(5, 12)],
    }
    return {
        "uid": "specbudget-overview",
        "title": "T",
        "schemaVersion": 42,
        "panels": [panel(1, 0), panel(2, 12), folded],
    }


def test_a_good_dashboard_has_no_fault() -> None:
    """Panels of a folded row may stand where others do: Grafana makes room when it opens."""
    assert faults(json.dumps(good()), uid="specbudget-overview") == []


def test_the_four_faults_of_a_bad_export_are_all_told() -> None:
    """A fixed id, a fixed data source, a key that stands twice and a missing schema version, each by itself."""
    said = faults(FOUR_FAULTS.read_text())
    for word in ("id 93 is fixed", "uid '3aBcD' is fixed", "'targets' stands twice", "schemaVersion is missing"):
        assert [line for line in said if word in line], word


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d.update(id=7), "id 7 is fixed"),
        (lambda d: d.pop("uid"), "uid is missing"),
        (lambda d: d.update(uid="a-b-c"), "uid 'a-b-c' is not"),
        (lambda d: d.pop("schemaVersion"), "schemaVersion is missing"),
        (lambda d: d.update(schemaVersion="42"), "schemaVersion is missing"),
        (lambda d: d.pop("title"), "title is missing"),
        (lambda d: d["panels"][1].update(id=1), "another panel's"),
        (lambda d: d["panels"][2]["panels"][0].update(id=1), "another panel's"),
        (lambda d: d["panels"][1].pop("id"), "id is missing"),
        (lambda d: d["panels"][1]["gridPos"].update(x=11), "lies over panel 'Panel 1'"),
        (lambda d: d["panels"][2]["panels"][1]["gridPos"].update(x=3), "lies over panel 'Panel 4'"),
        (lambda d: d["panels"][1]["gridPos"].update(w=13), "columns 12 to 25"),
        (lambda d: d["panels"][1]["gridPos"].update(h=0), "columns"),
        (lambda d: d["panels"][1]["gridPos"].pop("y"), "not four whole numbers"),
        (lambda d: d["panels"][1].pop("gridPos"), "gridPos is missing"),
        (lambda d: d["panels"][0].update(title=""), "title is missing"),
        (lambda d: d["panels"][2].update(title=""), "title is missing"),
        (lambda d: d["panels"][0].update(description=""), "description is missing"),
        (lambda d: d["panels"][0].pop("datasource"), "datasource is missing"),
        (lambda d: d["panels"][0]["fieldConfig"]["defaults"].pop("unit"), "unit is missing"),
        (lambda d: d["panels"][0]["fieldConfig"]["defaults"].pop("noValue"), "noValue is missing"),
        (lambda d: d["panels"][0].pop("fieldConfig"), "unit is missing"),
        (lambda d: d["panels"][0]["options"]["legend"].update(showLegend=False), "legend is hidden"),
        (lambda d: d["panels"][0].pop("options"), "legend is hidden"),
        (lambda d: d["panels"][0].update(type="heatmap"), "legend is hidden"),
        (lambda d: d["panels"][0].update(targets=[]), "has no query"),
        (lambda d: d["panels"][0]["targets"][0].pop("refId"), "has no refId"),
        (lambda d: d["panels"][0]["targets"].append(d["panels"][0]["targets"][0]), "one refId"),
        (lambda d: d["panels"][0]["targets"][0].update(expr=""), "query A is empty"),
        (lambda d: d["panels"][0].update(datasource={"uid": "P1"}), "'P1' is fixed"),
        (lambda d: d["panels"][0]["targets"][0].update(datasource="prod"), "'prod' is fixed"),
        (lambda d: d["panels"][2]["panels"][1]["targets"][0].update(datasource={"uid": "P2"}), "'P2' is fixed"),
        (lambda d: d.update(annotations={"list": [{"name": "m", "datasource": {"uid": "P3"}}]}), "'P3' is fixed"),
        (lambda d: d.update(templating={"list": [{"name": "v", "datasource": "P4"}]}), "'P4' is fixed"),
    ],
)  # fmt: skip
def test_each_fault_is_found_by_itself(change: Change, word: str) -> None:
    """One change to a good dashboard, and a line that tells it."""
    changed = copy.deepcopy(good())
    change(changed)
    assert [line for line in faults(json.dumps(changed), uid="specbudget-overview") if word in line]


@pytest.mark.parametrize(("text", "word"), [("{", "is not JSON"), ("[]", "is not an object")])
def test_what_is_no_dashboard_is_told(text: str, word: str) -> None:
    """No traceback for a file that is something else."""
    assert word in faults(text)[0]
