"""Kinds of fault that generated rules of other tools were reported for: low traffic, dead thresholds, empty ratios."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from generate.acceptance_cases import traffic
from generate.promtool import failures
from generate.rule_cases import grows, settings_of
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.rules import alerting_rules, document, recording_rules


def pages(folder: Path, s: RuleSettings, samples: Mapping[str, str], at: str, expected: list[str]) -> None:
    """Exactly these pages fire at a moment, with all rules of a budget loaded and a sample a minute."""
    (folder / "recording.rules.yml").write_text(document(recording_rules(s), "of a test"))
    (folder / "alerts.rules.yml").write_text(document(alerting_rules(s), "of a test"))
    check: dict[str, Any] = {
        "expr": 'group by (alertname) (ALERTS{alertstate="firing",severity="page"})',
        "eval_time": at,
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected],
    }
    test = {
        "rule_files": ["recording.rules.yml", "alerts.rules.yml"],
        "evaluation_interval": "1m",
        "group_eval_order": [
            group["name"] for build in (recording_rules, alerting_rules) for group in build(s)["groups"]
        ],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": key, "values": values} for key, values in samples.items()],
                "promql_expr_test": [check],
            }
        ],
    }
    (folder / "tests.yml").write_text(json.dumps(test))
    said = failures([folder / "tests.yml"])
    assert not said, "\n".join(said.values())


@pytest.mark.parametrize(("steps", "expected"), [(40, []), (40_000, ["SpecbudgetAcceptanceFastBurn"])])
def test_a_bad_night_of_few_steps_pages_nobody(tmp_path: Path, steps: int, expected: list[str]) -> None:
    """Three of four bad is 15 times the allowed, above 13.44: forty steps an hour are no page, as many thousand are."""
    s = settings_of(guard_steps=1000)
    assert round(0.75 / (1 - s.objective), 9) == 15.0 > s.pages[0].factor
    events = steps / 10
    pages(tmp_path, s, traffic((75, events / 60, 0.75, steps / 60), length=2.5), "70m", expected)


@pytest.mark.parametrize("objective", [0.5, 0.9, 0.95])
def test_an_objective_of_any_strictness_has_pages_that_can_fire(tmp_path: Path, objective: float) -> None:
    """The classic factor 14.4 is dead at 0.90, where at most 10 can burn, and at 0.50 so is 6: windows grow instead."""
    s = settings_of(objective=objective)
    most = 1 / (1 - objective)
    assert all(row.factor < most for row in (*s.pages, *s.tickets))
    fast = s.pages[0]
    minutes = round(fast.long_seconds / 60) + 10
    samples = traffic((minutes + 10, 5, 1.0, 200), length=2.0)
    pages(tmp_path, s, samples, f"{minutes}m", ["SpecbudgetAcceptanceFastBurn"])


def test_a_ratio_whose_sides_have_other_labels_is_no_empty_rule(tmp_path: Path) -> None:
    """Steps carry rank and profile, events verdict and profile, targets more: each side is summed to the same labels.

    Left as they are the sides would never match, and the alert would be silent for ever.
    """
    samples = {
        key.replace('profile="default"', f'profile="{profile}"').replace('rank="0"', f'rank="{rank}"'): values
        for profile, rank in (("code", "0"), ("chat", "1"))
        for key, values in traffic((75, 5, 0.9, 120), length=1.2).items()
    }
    none_bad = 'verdict="bad",profile="chat"'
    samples = {key: grows((75, 0)) if none_bad in key else values for key, values in samples.items()}
    s = settings_of()
    pages(tmp_path, s, samples, "70m", ["SpecbudgetAcceptanceCollapsed", "SpecbudgetAcceptanceFastBurn"])
