"""The four dashboards: what they lead to, what they are called, and that they follow the declarations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from generate.dashboard_files import EXAMPLE, FILES, ROOT, SETTINGS, TEXTS, panels
from specbudget.budget.reading import load_budget
from specbudget.catalog import series
from specbudget.catalog.alerts import ALERTS, Dashboard
from specbudget.catalog.lines import LINES
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import LINE_STATES, SPECULATION_STATES
from specbudget.cli import main
from specbudget.domain.device_memory import MemoryPart
from specbudget.generate.dashboards import colours, render
from specbudget.generate.dashboards.lint import faults
from specbudget.generate.dashboards.queries import SEVERITY

EACH = pytest.mark.parametrize("dashboard", list(Dashboard))


@EACH
def test_no_fault_is_found(dashboard: Dashboard) -> None:
    """Our linter is content, and the address is the one to which alerts link."""
    assert faults(TEXTS[dashboard], uid=dashboard.uid) == []


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_the_text_does_not_change_by_itself(seed: str, tmp_path: Path) -> None:
    """Another process with another order of sets writes the same bytes as are committed."""
    command = [sys.executable, "-m", "specbudget", "generate", "dashboards", "--budget", EXAMPLE, "--out", tmp_path]
    subprocess.run(
        command, check=True, timeout=60, env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL
    )
    for dashboard in Dashboard:
        assert (tmp_path / "dashboards" / f"{dashboard}.json").read_bytes() == TEXTS[dashboard].encode()


@pytest.mark.parametrize(
    "acceptance", ["", "acceptance: {}", "acceptance: {target_length: 2.6, objective: 0.5, window: 7d, sli: batch}"]
)
def test_every_budget_has_dashboards(acceptance: str, tmp_path: Path) -> None:
    """Also one without an SLO, without links, or whose windows are stretched; what it does not have is left out."""
    file = tmp_path / "budget.yaml"
    file.write_text(f"service: chat\nbudget:\n  {acceptance or 'staging: {cold_start: 90s}'}\n")
    assert main(["generate", "dashboards", "--budget", str(file), "--out", str(tmp_path)]) == 0
    for dashboard in Dashboard:
        text = (tmp_path / "dashboards" / f"{dashboard}.json").read_text()
        assert faults(text, uid=dashboard.uid) == []
        assert "Runbook" not in text
    text = (tmp_path / "dashboards" / "acceptance.json").read_text()
    assert ("Error budget of" in text) == ("target_length" in acceptance)


def test_a_dashboard_with_a_fault_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The linter stands between the builders and the disk."""
    monkeypatch.setattr(render, "text", lambda settings, dashboard: json.dumps({"id": 1}))
    assert main(["generate", "dashboards", "--budget", str(EXAMPLE), "--out", str(tmp_path)]) == 2
    assert "overview.json: id 1 is fixed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@EACH
def test_variables_are_those_that_alerts_fill(dashboard: Dashboard) -> None:
    """`var-service` of an alert's link is a variable; the data source comes first and is never a fixed one."""
    found = {each["name"]: each for each in FILES[dashboard]["templating"]["list"]}
    names = list(found)
    assert names[:5] == ["datasource", "cluster", "namespace", "service", "replica"]
    assert "current" not in found["datasource"] or not found["datasource"]["current"].get("value")
    for name in names[1:]:
        query = found[name]["query"]["query"]
        above = list(re.findall(r"\$(\w+)", query))
        assert above == names[1 : 1 + len(above)], f"{name} is narrowed by those above it"
        assert found[name].get("allValue") == (None if name == "service" and dashboard != "overview" else ".*")
    links = [alert.annotations(SETTINGS)["dashboard_url"] for alert in ALERTS if alert.dashboard is dashboard]
    assert {re.findall(r"[?&]var-(\w+)=", link)[0] for link in links} <= set(names)
    assert all(f"/{FILES[dashboard]['uid']}?" in link for link in links)


def test_labels_that_a_budget_chooses_are_variables() -> None:
    """A fleet that is told apart by region gets a variable for it, and no query names a cluster."""
    settings = replace(SETTINGS, labels=("region", "specbudget_service"))
    for dashboard in Dashboard:
        text = render.text(settings, dashboard)
        names = [each["name"] for each in json.loads(text)["templating"]["list"]]
        assert names[:3] == ["datasource", "region", "service"]
        assert not re.search(r"\b(cluster|namespace)\b", text)


@EACH
def test_marks_ask_the_same_in_both_places(dashboard: Dashboard) -> None:
    """Older versions of Grafana read a mark's query in the mark, newer ones in its target."""
    for mark in FILES[dashboard]["annotations"]["list"]:
        assert mark["expr"] == mark["target"]["expr"]


@EACH
def test_every_panel_says_how_it_is_read(dashboard: Dashboard) -> None:
    """Its description has sentences on reading and on what is good, and no two titles are the same."""
    for panel in panels(dashboard):
        reads, _, good = panel["description"].partition("\n\n**Good:** ")
        assert len(reads) > 30, panel["title"]
        assert good.endswith("."), panel["title"]
    titles = Counter(panel["title"] for panel in panels(dashboard))
    assert titles.most_common(1)[0][1] == 1


@EACH
def test_every_alert_is_answered_where_it_leads(dashboard: Dashboard) -> None:
    """The dashboard to which an alert links has a panel that links to the alert's section of the runbook."""
    linked = {link["url"] for panel in panels(dashboard) for link in panel.get("links", ())}
    for alert in ALERTS:
        if alert.dashboard is dashboard:
            assert alert.annotations(SETTINGS)["runbook_url"] in linked, alert.name


@EACH
def test_links_lead_somewhere(dashboard: Dashboard) -> None:
    """Links to dashboards name one of the four and keep time; links to the runbook name an alert that there is."""
    uids = {each.uid for each in Dashboard}
    anchors = {alert.anchor for alert in ALERTS}
    urls = re.findall(r'"url": "([^"]+)"', TEXTS[dashboard])
    assert urls
    for url in urls:
        if url.startswith("/d/"):
            path, _, query = url.partition("?")
            assert path.removeprefix("/d/") in uids
            assert "${__url_time_range}" in query
        else:
            assert url.partition("#")[2] in {*anchors, ""}
    tags = [link for link in FILES[dashboard]["links"] if link["type"] == "dashboards"]
    assert [(link["tags"], link["keepTime"], link["includeVars"]) for link in tags] == [(["specbudget"], True, True)]
    assert "inControlsMenu" not in TEXTS[dashboard]


def test_no_series_is_named_in_the_code_of_a_dashboard() -> None:
    """The name of a series stands in its declaration only, so that a renamed one is followed."""
    code = "".join(path.read_text() for path in (ROOT / "exporter/specbudget/generate/dashboards").glob("*.py"))
    for one in series.SERIES:
        assert not re.search(rf"\b{one.full_name}\b", code), one.name
    assert not re.search(r"\b(replica|service|fleet):specbudget_", code)


def test_every_budget_and_state_is_shown() -> None:
    """The ledger asks for every unit of every line; tiles are those of all lines; every state has word and colour."""
    overview = TEXTS[Dashboard.OVERVIEW]
    for line in LINES:
        for budget in line.budgets:
            assert series.BUDGET_LIMIT[budget.unit].full_name in overview
            assert budget.id in overview
    tiles = next(panel for panel in panels(Dashboard.OVERVIEW) if panel["title"] == "The five lines now")
    assert [target["legendFormat"] for target in tiles["targets"]] == [line.title for line in LINES]
    assert set(SEVERITY) == set(LINE_STATES) == set(colours.OF_LINE_STATE)
    assert set(SPECULATION_STATES) == set(colours.OF_SPECULATION)
    assert set(colours.OF_MEMORY) == set(MemoryPart)


LAPTOP, GAP, BY_ITSELF = 1342, 8, 150
"""Pixels of 24 columns on a screen of 1366, between panels, and of a table's column that says nothing of its width."""

NOT_EVERYWHERE = {"cluster", "namespace", "pod"}
"""Columns that are there only where the labels are."""


@EACH
def test_tables_fit_on_a_laptop(dashboard: Dashboard) -> None:
    """No column is beyond the edge where neither cluster, namespace nor pod is told; most alerts are of no replica."""
    for panel in panels(dashboard):
        if panel["type"] != "table":
            continue
        columns = panel["transformations"][-1]["options"]["renameByName"]
        own = {
            each["matcher"]["options"]: {one["id"]: one["value"] for one in each["properties"]}
            for each in panel["fieldConfig"]["overrides"]
        }
        needed = 0
        for name, title in columns.items():
            if name in NOT_EVERYWHERE or (panel["title"], name) == ("Firing alerts", "instance"):
                continue
            said = own.get(title, {})
            needed += said.get("custom.width", said.get("custom.minWidth", BY_ITSELF))
        assert needed <= panel["gridPos"]["w"] * LAPTOP / 24 - GAP, panel["title"]


def test_services_do_not_share_a_default(tmp_path: Path) -> None:
    """The service of the budget is what a dashboard about one service opens with."""
    settings: RuleSettings = replace(SETTINGS, service='a "b" \\ c')
    found = json.loads(render.text(settings, Dashboard.MEMORY))
    service = next(each for each in found["templating"]["list"] if each["name"] == "service")
    assert service["current"]["value"] == settings.service
    assert load_budget(EXAMPLE).budget.service == SETTINGS.service


def _linear(colour: str) -> list[float]:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _seen_by(colour: str, kind: str) -> list[float]:
    """The colour as dichromats see it, in linear light (Viénot, Brettel and Mollon 1999); tritanopia after Machado."""
    matrices = {
        "usual": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        "protan": [[0.1124, 0.8876, 0], [0.1124, 0.8876, 0], [0.0040, -0.0040, 1]],
        "deutan": [[0.2928, 0.7072, 0], [0.2928, 0.7072, 0], [-0.0223, 0.0223, 1]],
        "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
    }
    rgb = _linear(colour)
    return [sum(weight * part for weight, part in zip(row, rgb, strict=True)) for row in matrices[kind]]


def _lab(linear: list[float]) -> list[float]:
    rows = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = (0.9505, 1.0, 1.089)
    ratios = [
        sum(w * min(1.0, max(0.0, p)) for w, p in zip(row, linear, strict=True)) / part
        for row, part in zip(rows, white, strict=True)
    ]
    x, y, z = (ratio ** (1 / 3) if ratio > 0.008856 else 7.787 * ratio + 16 / 116 for ratio in ratios)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize("kind", ["usual", "protan", "deutan", "tritan"])
@pytest.mark.parametrize(
    "group",
    [
        [colours.TARGET, colours.DRAFTER, colours.QUIET],
        [colours.OK, colours.UNKNOWN, colours.AT_RISK, colours.BREACH],
        [colours.TARGET, colours.SECOND, colours.LIMIT],
        [colours.OK, colours.BREACH],
    ],
    ids=["models", "line states", "lines and limit", "good and bad"],
)
def test_colours_are_told_apart_by_every_kind_of_colour_vision(kind: str, group: list[str]) -> None:
    """Any two colours that stand side by side differ by 15 and more in CIELAB, as each kind of vision sees them."""
    seen = [_lab(_seen_by(colour, kind)) for colour in group]
    for place, one in enumerate(seen):
        for other in seen[place + 1 :]:
            assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 >= 15
