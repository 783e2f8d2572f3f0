"""The specifications for sloth and pyrra against what these programs ask of one.

Neither program is in a registry that the tests can use, so that none is run: the rules below are those of their
sources (sloth 0.16: pkg/prometheus/api/v1/v1.go, pkg/common/validation; pyrra 0.9: kubernetes/api/v1alpha1).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from generate.promtool import run
from generate.rule_cases import SETTINGS, settings_of
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import SliForm
from specbudget.generate.rules_yaml import document
from specbudget.generate.slo_specs import pyrra, sloth, sloth_command

SLOTH_NAME = r"[A-Za-z0-9][-A-Za-z0-9_.]*[A-Za-z0-9]"
SLOTH_KEYS = {
    "": {"version", "service", "labels", "slo_plugins", "slos"},
    "slo": {"name", "description", "objective", "plugins", "labels", "sli", "alerting"},
    "alerting": {"name", "labels", "annotations", "page_alert", "ticket_alert"},
    "alert": {"disable", "labels", "annotations"},
}
PYRRA_KEYS = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "spec": {
        "description", "target", "window", "indicator", "alerting", "partial_response_strategy",
        "performanceOverAccuracy", "ruleOutput",
    },
    "ratio": {"errors", "total", "grouping"},
}  # fmt: skip

SERVICES = ("chat", "a", "x-", "A.b_c", "9" * 100, "a" + "-" * 99)
OTHERS = [replace(SETTINGS, service=service) for service in SERVICES]
EACH = pytest.mark.parametrize(
    "s",
    [SETTINGS, settings_of(objective=0.999), settings_of(0.5, 7 * 86400.0, sli=SliForm.STEP), *OTHERS],
    ids=["usual", "strict", "lenient", *(f"service {service[:8]}" for service in SERVICES)],
)


def read(value: dict[str, Any]) -> Any:
    """What the program reads from the file."""
    return yaml.safe_load(document(value, "of a test"))


@EACH
def test_sloth_finds_what_it_asks_for(s: RuleSettings) -> None:
    """Version, names, an objective above 0 and up to 100, one indicator of two different queries, named alerts."""
    spec = read(sloth(s))
    assert re.search(r"(?m)^version: +['\"]?prometheus/v1['\"]?\r?\n? *$", document(sloth(s), "of a test"))
    assert set(spec) <= SLOTH_KEYS[""]
    (slo,) = spec["slos"]
    assert set(slo) <= SLOTH_KEYS["slo"]
    for name in (spec["service"], slo["name"], f"{spec['service']}-{slo['name']}"):
        assert re.fullmatch(SLOTH_NAME, name), name
    assert isinstance(slo["objective"], float)
    assert 0 < slo["objective"] <= 100
    assert set(slo["sli"]) == {"events"}
    assert set(slo["sli"]["events"]) == {"error_query", "total_query"}
    alerting = slo["alerting"]
    assert set(alerting) <= SLOTH_KEYS["alerting"]
    assert alerting["name"]
    for place in (spec, alerting, alerting["page_alert"], alerting["ticket_alert"]):
        for texts in (place.get("labels", {}), place.get("annotations", {})):
            assert all(isinstance(text, str) and text for text in texts.values())
            assert all(re.fullmatch(r"[a-z_]+", key) for key in texts)
    assert set(alerting["page_alert"]) | set(alerting["ticket_alert"]) <= SLOTH_KEYS["alert"]


@EACH
def test_sloth_gets_queries_that_parse(s: RuleSettings, tmp_path: Path) -> None:
    """Both hold the window's variable and are PromQL once it is filled in, and they differ."""
    events = read(sloth(s))["slos"][0]["sli"]["events"]
    assert events["error_query"] != events["total_query"]
    rules = []
    for place, query in enumerate(events.values()):
        filled, count = re.subn(r"{{ *\.window *}}", "1m", query)
        assert count == 1
        assert "{{" not in filled
        rules.append({"record": f"a{place}", "expr": filled})
    _check(rules, tmp_path)


@EACH
def test_pyrra_finds_what_it_asks_for(s: RuleSettings, tmp_path: Path) -> None:
    """A Kubernetes name, a target in percent as text, a window, and two plain selectors that differ."""
    one = read(pyrra(s))
    assert set(one) <= PYRRA_KEYS[""]
    assert (one["apiVersion"], one["kind"]) == ("pyrra.dev/v1alpha1", "ServiceLevelObjective")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", one["metadata"]["name"])
    spec = one["spec"]
    assert set(spec) <= PYRRA_KEYS["spec"]
    assert isinstance(spec["target"], str)
    # from 0 to 1 pyrra warns that a share was given for a percentage
    assert 1 <= float(spec["target"]) <= 100
    assert re.fullmatch(r"(\d+[ywdhms])+", spec["window"])
    ratio = spec["indicator"]["ratio"]
    assert set(ratio) == PYRRA_KEYS["ratio"]
    metrics = [ratio[side]["metric"] for side in ("errors", "total")]
    assert len(set(metrics)) == 2
    for metric in metrics:
        assert re.fullmatch(r'[a-z_]+\{(\w+="[^"{}]*",?)+\}', metric), metric
    _check([{"record": f"b{place}", "expr": metric} for place, metric in enumerate(metrics)], tmp_path)
    assert ratio["grouping"] == list(s.labels)


def test_the_file_for_sloth_says_its_period() -> None:
    """Sloth knows windows for two periods; for another it needs a folder of them."""
    assert sloth_command(SETTINGS) == "sloth generate --default-slo-period 28d -i FILE"
    assert "--slo-period-windows-path" in sloth_command(settings_of(window=7 * 86400.0))


def _check(rules: list[dict[str, str]], folder: Path) -> None:
    file = folder / "rules.yml"
    file.write_text(document({"groups": [{"name": "tested", "rules": rules}]}, "of a test"))
    checked = run("check", "rules", file)
    assert checked.returncode == 0, checked.stderr
