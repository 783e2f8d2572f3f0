"""Names of any kind go through budget, sidecar, rules, Alertmanager and template, and come out as they were written."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml
from tests.generate.running_alertmanager import running
from tests.prometheus_tools import Suite, tool

from e2e.deployment import reserved_ports, started
from e2e.pace import Pace
from e2e.running_prometheus import running_prometheus
from specbudget.budget.reading import load_budget
from specbudget.catalog import series
from specbudget.catalog.alerts.speculation import RETARGETED
from specbudget.generate.rules import files

pytestmark = pytest.mark.slow

PROFILE = '{{ odd }}: 100% "quoted" name'
RUNBOOK = "https://example.invalid/r?a=1&b=2#c"
DASHBOARDS = "https://example.invalid/{{d}}/café-模型?x=%22y%22"
CLUSTER, POD = 'eu & "west" {{ .Name }}', "café-模型-0"
FASTER = Pace(factor=240.0, scrape=1.0, evaluation=1.0)
"""What compares with an hour ago compares with a quarter of a minute ago."""
PATIENCE = 60.0


def budget(target_length: float) -> str:
    match = {"model": "café-模型*"}
    profiles = {PROFILE: {"match": match, "target_length": target_length}}
    return yaml.safe_dump(
        {
            "service": "O.d-d_1",
            "engine": {"url": "http://127.0.0.1:1", "version": "0.5.23"},
            "target": {"path": "café {{ x }}"},
            "budget": {"acceptance": {"target_length": 2.6, "profiles": profiles}},
            "links": {"runbook": RUNBOOK, "dashboards": DASHBOARDS},
        },
        allow_unicode=True,
    )


def wait_for(what: str, holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.2)


@pytest.mark.parametrize("suite", Suite)
def test_the_rules_of_odd_names_are_valid(tmp_path: Path, suite: Suite) -> None:
    """Every age of promtool reads expressions and templates."""
    (tmp_path / "budget.yaml").write_text(budget(2.0))
    for name, text in files(load_budget(tmp_path / "budget.yaml").budget).items():
        if name.name.endswith("rules.yml"):
            (tmp_path / name.name).write_text(text)
            command = [tool("promtool", suite), "check", "rules", "--lint=all", "--lint-fatal", tmp_path / name.name]
            checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert checked.returncode == 0, checked.stderr


def test_an_odd_name_reaches_the_chat_as_it_is_written(tmp_path: Path) -> None:
    """Braces are no template, quotes and percent signs stay, letters of any script too: in the title and in links."""
    file = tmp_path / "budget.yaml"
    file.write_text(budget(2.0))
    own, port = reserved_ports(2)
    for name, text in files(load_budget(file).budget).items():
        if name.name.endswith("rules.yml"):
            (tmp_path / name.name).write_text(json.dumps(FASTER.rules(yaml.safe_load(text))))
    (tmp_path / "alertmanager").mkdir()
    with (
        started(tmp_path, "sidecar", "serve", "--budget", str(file), "--listen", f"127.0.0.1:{port}"),
        running(tmp_path / "alertmanager", paced=FASTER.routes) as manager,
        running_prometheus(tmp_path, configuration(port, manager.url), own) as prometheus,
    ):
        target = series.ACCEPTANCE_TARGET.full_name
        wait_for("an hour of the old target", lambda: prometheus.query(f"{target} offset 15s"))
        file.write_text(budget(3.0))
        with urlopen(Request(f"http://127.0.0.1:{port}/-/reload", method="POST"), timeout=30):
            pass
        wait_for("the message", lambda: manager.receiver.of("/slack", RETARGETED.anchor))
        (message,) = manager.receiver.of("/slack", RETARGETED.anchor)
    attachment = message["attachments"][0]
    assert attachment["title"] == f"INFO O.d-d_1: the target of profile {PROFILE} is now 3.00"
    lines = attachment["text"].splitlines()
    assert f"Runbook: https://example.invalid/r?a=1&b=2#{RETARGETED.anchor}" in lines
    assert f"Dashboard: {DASHBOARDS}/specbudget-acceptance?var-service=O.d-d_1" in lines
    assert f"Cluster: {CLUSTER}" in lines
    assert all("{{" not in line or line.startswith(("Dashboard: ", "Cluster: ")) for line in lines), lines


def configuration(port: int, manager: str) -> dict[str, object]:
    """Prometheus with one replica of odd labels."""
    labels = {"cluster": CLUSTER, "namespace": "", "pod": POD}
    every = f"{FASTER.scrape:g}s"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": f"{FASTER.evaluation:g}s"},
        "rule_files": ["*.rules.yml"],
        "scrape_configs": [
            {
                "job_name": "specbudget",
                "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": labels}],
            }
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager.removeprefix("http://")]}]}]},
    }
