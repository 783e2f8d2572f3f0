"""Each alert fires where it should and is silent where it should be, in Prometheus's own unit tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.prometheus_tools import Suite

from generate import acceptance_cases, state_cases
from generate.promtool import failures
from generate.rule_cases import SETTINGS, Case, needed
from specbudget.catalog.alerts import ALERTS, AlertDef
from specbudget.catalog.promql import Condition
from specbudget.catalog.recording import RecordDef
from specbudget.generate.rules import alerting

CASES: tuple[Case, ...] = (*acceptance_cases.CASES, *state_cases.CASES)


def cases_of(alert: AlertDef) -> list[Case]:
    return [case for case in CASES if case.alert is alert]


def written(
    folder: Path,
    alert: AlertDef,
    cases: Sequence[Case],
    *,
    condition: Condition | None = None,
    waits: float | None = None,
    replaced: Mapping[str, RecordDef] | None = None,
) -> list[Path]:
    """Files of rule tests with an alert and the recording rules that it needs, one per interval of evaluation.

    `condition`, `waits` and `replaced` stand for what is declared.
    """
    chosen = condition or alert.condition(SETTINGS)
    assert chosen is not None
    rule = alerting(SETTINGS, alert, chosen)
    if waits is not None:
        rule["for"] = f"{waits:.0f}s"
    folder.mkdir(parents=True)
    rules = [*needed(SETTINGS, [rule["expr"]], replaced or {}), rule]
    _dump(folder / "rules.yml", {"groups": [{"name": "tested", "rules": rules}]})
    files = []
    for interval in sorted({case.evaluated for case in cases}):
        tests = [case.test() for case in cases if case.evaluated == interval]
        file = folder / f"{interval}.yml"
        _dump(file, {"rule_files": ["rules.yml"], "evaluation_interval": interval, "tests": tests})
        files.append(file)
    return files


def _dump(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value))  # which is YAML too, and much faster to write


@pytest.fixture(scope="module", params=Suite)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool of each age says against each alert's cases, all run at once."""
    folder = tmp_path_factory.mktemp("rules")
    files = {file: alert.name for alert in ALERTS for file in written(folder / alert.name, alert, cases_of(alert))}
    said: dict[str, str] = {}
    for file, text in failures(list(files), request.param).items():
        said[files[file]] = text
    return said


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_and_is_silent_where_it_should(alert: AlertDef, told: dict[str, str]) -> None:
    """Every case of the alert holds."""
    assert alert.name not in told, told[alert.name]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_has_cases_of_both_kinds(alert: AlertDef) -> None:
    """One in which it fires, one in which it does not, and one that shows how long it waits."""
    cases = cases_of(alert)
    assert any(any(case.expect.values()) for case in cases)
    assert any(not all(case.expect.values()) for case in cases)
    assert not alert.for_seconds or any(case.once for case in cases) or len({c.evaluated for c in cases}) == 2


def test_cases_have_names_of_their_own() -> None:
    """A failure names one case."""
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))
