"""The files as they are loaded: all rules at once over whole fleets, and the texts that a person gets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from generate.acceptance_cases import suspect, traffic
from generate.promtool import failures
from generate.rule_cases import SERVICE, SETTINGS, Samples, grows, holds, name, target, up
from generate.state_cases import FLOWING, LEFT, THERE, readable
from specbudget.catalog import series
from specbudget.catalog.series import SERIES, Kind
from specbudget.catalog.sets import HTTP_SOURCES
from specbudget.generate.rules import alerting_rules, document, recording_rules

STEADY = Path(__file__).parents[1] / "fixtures" / "rules" / "steady.prom"
"""What a sidecar beside the healthy stand-in printed after 45 seconds."""

SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)$", re.M)


def checked(folder: Path, samples: Samples, tests: list[dict[str, Any]], at: str = "1h") -> None:
    """Both files over what the sidecars said; `tests` are promtool's own."""
    (folder / "recording.rules.yml").write_text(document(recording_rules(SETTINGS), "of a test"))
    (folder / "alerts.rules.yml").write_text(document(alerting_rules(SETTINGS), "of a test"))
    inputs = [{"series": key, "values": values} for key, values in samples.items()]
    group: dict[str, Any] = {"interval": "1m", "input_series": inputs}
    for test in tests:
        for key, value in test.items():
            group.setdefault(key, []).append(value)
    whole = {
        "rule_files": ["recording.rules.yml", "alerts.rules.yml"],
        "evaluation_interval": "1m",
        # without an order promtool takes the groups in any
        "group_eval_order": [g["name"] for f in (recording_rules, alerting_rules) for g in f(SETTINGS)["groups"]],
        "tests": [group],
    }
    (folder / "tests.yml").write_text(json.dumps(whole))
    said = failures([folder / "tests.yml"])
    assert not said, "\n".join(said.values())


def firing(names: Iterable[str], at: str) -> dict[str, Any]:
    """Exactly these alerts fire at a moment."""
    return {
        "promql_expr_test": {
            "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": at,
            "exp_samples": [{"labels": f'{{alertname="{each}"}}', "value": 1} for each in names],
        }
    }


def healthy(minutes: int = 130) -> Samples:
    """The page of the healthy stand-in, its counters going on as they began."""
    counters = {s.full_name for s in SERIES if s.kind is Kind.COUNTER}
    found: dict[str, str] = {up(): f"1x{minutes}"}
    for metric, labels, value in SAMPLE.findall(STEADY.read_text()):
        every = target("a") | dict(re.findall(r'(\w+)="([^"]*)"', labels)) | {"specbudget_service": SERVICE}
        key = f"{metric}{{{','.join(f'{k}={json.dumps(v)}' for k, v in every.items())}}}"
        is_counter = metric in counters or metric.endswith(("_bucket", "_count", "_sum"))
        grown = is_counter and metric != "specbudget_startups_total" and "source_errors" not in metric
        found[key] = grows((minutes, float(value))) if grown else f"{float(value):.10g}x{minutes}"
    return found


def test_a_healthy_fleet_raises_nothing(tmp_path: Path) -> None:
    """Two hours of what the stand-in says in its steady scenario: not one alert, of any severity."""
    assert len(healthy()) > 200
    checked(tmp_path, healthy(), [firing([], at) for at in ("5m", "30m", "2h")])


@pytest.mark.parametrize(
    ("says", "samples", "expected"),
    [
        ("idle", THERE | {up(): "1x60"} | readable("metrics", "1x60"), []),
        ("engine", THERE | {up(): "1x60"} | readable("request_log", "1x60")
         | {name(series.SOURCE_UP, source=source): holds((10, 1), (50, 0)) for source in HTTP_SOURCES}
         | {name(series.SOURCE_ERRORS, source="loads", reason="refused"): grows((10, 0), (50, 4))},
         ["SpecbudgetEngineDown"]),
        ("blind", THERE | {up(): "1x60"} | readable("request_log", "1x60")
         | {name(series.SOURCE_UP, source=source): holds((10, 1), (50, 0)) for source in HTTP_SOURCES}
         | {name(series.SOURCE_ERRORS, source="loads", reason="http_status"): grows((10, 0), (50, 4))},
         ["SpecbudgetSourceFailing"]),
        ("deploy", LEFT | {up(): holds((10, 1), (50, 0))} | FLOWING, ["SpecbudgetSidecarDown"]),
        (
            "renamed",
            THERE | {up(): "1x60"} | FLOWING | readable("metrics", "1x60")
            | {name(series.VERIFY_STEPS, rank="0", profile="default"): holds((20, 1), (40, None))},
            ["SpecbudgetMetricMissing"],
        ),
        ("new", THERE | {up(): "1x60"} | FLOWING | readable("metrics", "1x60"), []),
    ],
    ids=["idle", "a dead engine", "an engine that answers errors", "a deploy", "a metric was renamed", "a new service"],
)  # fmt: skip
def test_what_is_not_there_is_told_only_where_it_is_missed(
    says: str, samples: Samples, expected: list[str], tmp_path: Path
) -> None:
    """A metric that was never there, or while nothing flows, is not missing; a target that is down is one alert."""
    checked(tmp_path, samples, [firing(expected, "50m")])


def test_ratios_are_not_empty_where_ranks_and_profiles_differ(tmp_path: Path) -> None:
    """Numerator and denominator are summed to the same labels: neither rank nor profile nor position is left over."""
    samples = traffic((75, 5, 0.75, 120)) | {
        name(series.SLO_EVENTS, sli="request", verdict="good", profile="code"): grows((75, 0)),
        name(series.VERIFY_STEPS, rank="1", profile="code"): grows((75, 10)),
    }
    query = (
        "service:specbudget_slo_bad_events:increase1h / service:specbudget_slo_events:increase1h"
        " and on (specbudget_service) service:specbudget_verify_steps:increase5m"
    )
    labels = f'{{cluster="c1",namespace="llm",sli="request",specbudget_service="{SERVICE}"}}'
    check = {"expr": query, "eval_time": "70m", "exp_samples": [{"labels": labels, "value": 0.75}]}
    checked(tmp_path, samples, [{"promql_expr_test": check}])


def test_a_page_says_what_a_person_needs_at_night(tmp_path: Path) -> None:
    """Numbers, the likely cause, the rule that the pair breaks, the three worst replicas of four, and how to end it."""
    samples: Samples = {suspect("mix"): "1x80"}
    for replica, length in (("a", 2.1), ("b", 2.2), ("c", 2.3), ("d", 4.0)):
        samples = dict(samples) | traffic((75, 5, 0.75, 120), replica=replica, length=length)
    samples = dict(samples) | {
        name(series.CODESIGN_CHECK, check="taps_range", result="fail"): "1x80",
        name(series.ACCEPTANCE_TARGET, profile="default"): "2.6x80",
        name(series.ACCEPTANCE_TARGET, profile="code"): "3.4x80",
    }
    expected = {
        "exp_labels": {
            "severity": "page", "line": "acceptance", "service": SERVICE, "sli": "request",
            "cluster": "c1", "namespace": "llm", "specbudget_service": SERVICE,
        },
        "exp_annotations": {
            "summary": f"{SERVICE}: the acceptance SLO burns fast, 75% of events are bad",
            "description": (
                "75% of the valid events of 1h missed their target length (2.60 to 3.40), and too many of the last 5m; "
                "allowed is 5%. "
                "From 13.44 times that on, 2% of the budget of 28d is gone in 1h. "
                "Likely cause: mix; pair unfit: taps_range; "
                "Shortest: a a:9877 2.10; b b:9877 2.20; c c:9877 2.30; "
                "To turn speculation off: restart the engine without --speculative-algorithm."
            ),
            "runbook_url": "https://runbooks.example/r.md#specbudgetacceptancefastburn",
            "dashboard_url": f"https://grafana.example/d/specbudget-acceptance?var-service={SERVICE}",
        },
    }  # fmt: skip
    check = {"eval_time": "70m", "alertname": "SpecbudgetAcceptanceFastBurn", "exp_alerts": [expected]}
    checked(tmp_path, samples, [{"alert_rule_test": check}])


def test_a_page_below_break_even_says_what_it_was_compared_with(tmp_path: Path) -> None:
    """The length in the title, the break-even of the present batch in the text."""
    samples = traffic((75, 50, 0.0, 5000), length=2.1) | {
        name(series.ENGINE_RUNNING, rank="0"): "12x80",
        name(series.BREAK_EVEN): "2.52x80",
    }
    expected = {
        "exp_labels": {
            "severity": "page", "line": "acceptance", "service": SERVICE,
            "cluster": "c1", "namespace": "llm", "specbudget_service": SERVICE,
        },
        "exp_annotations": {
            "summary": f"{SERVICE}: two models are slower than one, acceptance length 2.10",
            "description": (
                "Over 30m a verify step emitted 2.10 tokens, fewer than it takes to pay for the drafter at the "
                "present batch (break-even is 2.52), and the fleet is busy. Likely cause: none is told "
                "Shortest: a a:9877 2.10; "
                "To turn speculation off: restart the engine without --speculative-algorithm."
            ),
            "runbook_url": "https://runbooks.example/r.md#specbudgetacceptancebelowbreakeven",
            "dashboard_url": f"https://grafana.example/d/specbudget-acceptance?var-service={SERVICE}",
        },
    }  # fmt: skip
    check = {"eval_time": "70m", "alertname": "SpecbudgetAcceptanceBelowBreakEven", "exp_alerts": [expected]}
    checked(tmp_path, samples, [{"alert_rule_test": check}])


def test_a_page_and_its_tickets_tell_one_story(tmp_path: Path) -> None:
    """A collapse under full load is the two pages that it is; the slow burn and the ticket of three days are silent."""
    samples = traffic((200, 50, 1.0, 5000), length=1.1) | {up(): "1x200"}
    expected = ["SpecbudgetAcceptanceBurnDay", "SpecbudgetAcceptanceCollapsed", "SpecbudgetAcceptanceFastBurn"]
    checked(tmp_path, samples, [firing(expected, "150m")])


def test_a_replica_that_was_never_good_is_a_ticket_and_no_page(tmp_path: Path) -> None:
    """Its events are in no burn rate and in no length that pages."""
    samples = traffic((200, 50, 1.0, 5000), length=1.1) | {suspect("from_boot"): "1x200", up(): "1x200"}
    checked(tmp_path, samples, [firing(["SpecbudgetAcceptanceBadFromBoot"], "150m")])


def test_other_services_are_not_mixed_in(tmp_path: Path) -> None:
    """Rules of one budget see that budget's service only: others have windows and objectives of their own."""
    other = {key.replace(f'"{SERVICE}"', '"other"'): values for key, values in traffic((75, 50, 1.0, 900)).items()}
    checked(tmp_path, other, [firing([], "70m")])
