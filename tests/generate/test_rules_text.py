"""What stands in the rules: only declared series, only labels that are kept, texts that survive, stable files."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any, get_args

import pytest
import yaml

from generate.promtool import run
from generate.rule_cases import SETTINGS, settings_of
from specbudget.budget.engine import EngineKind
from specbudget.catalog.alerts import ALERT_LINES, ALERTS, AlertDef, Severity
from specbudget.catalog.alerts.texts import PHRASES
from specbudget.catalog.engine_words import ENGINES
from specbudget.catalog.lines import LINES
from specbudget.catalog.looks import Query
from specbudget.catalog.promql import duration
from specbudget.catalog.recording import record_groups
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import LABELS, SERIES, SETS_OF_SERIES, Kind
from specbudget.catalog.sets import SliForm
from specbudget.domain.burn import FAST
from specbudget.generate.rules import alerting_rules, document, recording_rules
from specbudget.generate.slo_specs import object_name, pyrra, sloth

NAMES = {series.full_name + end for series in SERIES for end in ([""] if series.kind is not Kind.HISTOGRAM else
         ["_bucket", "_count", "_sum"])}  # fmt: skip
MARK = r"\[(service|value|count|percent|worst|cause|off|long|short|factor|share|allowed|window|broken|target|break)"
OTHERS = settings_of(objective=0.9, labels=("region", "specbudget_service"), sli=SliForm.BATCH, service="o.t-h_er")
WITHOUT_SLO = RuleSettings(service="plain")
EACH = pytest.mark.parametrize("s", [SETTINGS, OTHERS, WITHOUT_SLO], ids=["usual", "other labels", "without an SLO"])


def rules_of(s: RuleSettings) -> list[dict[str, Any]]:
    return [
        rule for file in (recording_rules(s), alerting_rules(s)) for group in file["groups"] for rule in group["rules"]
    ]


def texts_of(s: RuleSettings) -> list[str]:
    """Every expression, and every query within a text or for the runbook."""
    looks = [look.text(s) for alert in ALERTS for look in alert.confirm if isinstance(look, Query)]
    asked = [*looks, *(text for alert in ALERTS for text in alert.annotations(s).values())]
    return [rule["expr"] for rule in rules_of(s)] + asked


@EACH
def test_every_series_that_is_read_is_declared(s: RuleSettings) -> None:
    """A name in an expression or a query is of the exporter's catalog, or recorded by these very rules."""
    recorded = {rule["record"] for rule in rules_of(s) if "record" in rule}
    of_slo = {rule["record"] for rule in rules_of(SETTINGS) if "record" in rule}
    for text in texts_of(s):
        for name in re.findall(r"\b(?:\w+:)?specbudget_\w+(?::\w+)?", text):
            known = NAMES | recorded | of_slo | {"specbudget_service"}
            assert name in known or name.rstrip(".+") == "specbudget_" or "{__name__" in text, name


@EACH
def test_every_recorded_series_of_an_alert_is_recorded(s: RuleSettings) -> None:
    """No alert of a budget reads what that budget does not record."""
    recorded = {rule["record"] for rule in rules_of(s) if "record" in rule}
    for rule in rules_of(s):
        assert set(re.findall(r"\b\w+:specbudget_\w+:\w+", rule["expr"])) <= recorded


@EACH
def test_promtool_accepts_the_files(s: RuleSettings, tmp_path: Any) -> None:
    """Expressions and templates parse, and no rule is there twice."""
    for name, value in (("a.yml", recording_rules(s)), ("b.yml", alerting_rules(s))):
        (tmp_path / name).write_text(document(value, "of a test"))
        checked = run("check", "rules", "--lint=all", "--lint-fatal", tmp_path / name)
        assert checked.returncode == 0, checked.stderr + checked.stdout


def test_no_line_state_and_no_rolling_length_is_read() -> None:
    """States and rolling lengths are for people."""
    for rule in rules_of(SETTINGS):
        assert "line_state" not in rule["expr"]
        assert "rolling" not in rule["expr"]


def test_the_engines_own_series_are_not_read() -> None:
    """SGLang writes `sglang:x` or `sglang_x`: a rule on it would hold for half of the fleet; commands match both."""
    for text in texts_of(SETTINGS):
        assert "sglang" not in text
    commands = [command for command in ENGINES["sglang"].marks.values() if "sglang" in command]
    assert len(commands) >= 2
    for command in commands:
        assert "^sglang[:_]" in command


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_text_uses_only_labels_that_are_kept(alert: AlertDef) -> None:
    """What a template names is in the alert's result: the labels of the aggregation and those it declares."""
    for s in (SETTINGS, OTHERS):
        kept = {*s.labels, *alert.keeps}
        used = set(re.findall(r"\$labels\.(\w+)", str(alert.annotations(s)) + str(alert.labels())))
        assert used <= kept
        condition = alert.condition(s)
        for label in kept if condition is not None else ():
            assert label in condition.text(), label


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_says_all_that_a_person_needs(alert: AlertDef) -> None:
    """Name, line, four annotations, and what a runbook is made of; no mark is left in a text."""
    assert re.fullmatch(r"Specbudget[A-Z][A-Za-z0-9]+", alert.name)
    assert alert.line in ALERT_LINES
    assert alert.line == "sidecar" or alert.line in {line.id for line in LINES}
    annotations = alert.annotations(SETTINGS)
    assert list(annotations) == ["summary", "description", "runbook_url", "dashboard_url"]
    for text in annotations.values():
        assert text.count("{{") == text.count("}}")
        assert not re.search(MARK, text)
    for words in (
        alert.means,
        alert.when(SETTINGS),
        *(look.shows for look in alert.confirm),
        *alert.causes,
        *alert.actions,
    ):
        assert words.strip()
    assert alert.confirm and alert.causes and alert.actions  # noqa: PT018


def test_names_are_unique() -> None:
    """Of alerts, and of recorded series."""
    names = [alert.name for alert in ALERTS]
    assert len(set(names)) == len(names)
    for s in (SETTINGS, OTHERS, settings_of(objective=0.6), settings_of(window=86400.0)):
        recorded = [record.name for group in record_groups(s) for record in group.rules]
        assert len(set(recorded)) == len(recorded)


def test_pages_keep_no_replica() -> None:
    """Whoever is woken is woken for a service; the text lists the replicas."""
    for alert in ALERTS:
        if alert.severity == "page":
            assert not {"pod", "instance"} & set(alert.keeps)
            assert "bottomk(3" in alert.annotations(SETTINGS)["description"]
            assert "specbudget_acceptance_suspect" in alert.annotations(SETTINGS)["description"]
            assert "--speculative-algorithm" in alert.annotations(SETTINGS)["description"]


def test_files_are_the_same_every_time_and_hold_no_surprise() -> None:
    """Two renderings agree to the byte, and a reader of YAML 1.1 gets every text back as text."""
    for build in (recording_rules, alerting_rules, sloth, pyrra):
        text = document(build(SETTINGS), "of a test")
        assert text == document(build(settings_of()), "of a test")
        assert yaml.safe_load(text) == yaml.safe_load(document(yaml.safe_load(text), "again"))
        assert not re.search(r"&id|\*id|!!", text)
        assert all(isinstance(leaf, str | int | float) for leaf in leaves(yaml.safe_load(text)))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(itertools.chain.from_iterable(leaves(each) for each in (*value.keys(), *value.values())))
    return list(itertools.chain.from_iterable(leaves(each) for each in value)) if isinstance(value, list) else [value]


def test_links_are_said_as_they_are_written(tmp_path: Any) -> None:
    """Braces, quotes, ampersands and letters of any script in a link survive the template; a fragment makes room."""
    s = replace(SETTINGS, runbook='https://example.invalid/café?a=1&b="2"{{x}}#c', dashboards="https://g.example/模型/")
    written = alerting_rules(s)["groups"][0]["rules"][0]["annotations"]
    assert written["runbook_url"].startswith('https://example.invalid/café?a=1&b="2"{{ "{{" }}x}}#specbudget')
    assert written["dashboard_url"].startswith("https://g.example/模型/specbudget-acceptance?")
    (tmp_path / "a.yml").write_text(document(alerting_rules(s), "of a test"), encoding="utf-8")
    checked = run("check", "rules", tmp_path / "a.yml")
    assert checked.returncode == 0, checked.stderr


def test_windows_and_factors_follow_from_objective_and_window() -> None:
    """95 % over 28 days gives the factors of the books; a lenient objective stretches the windows until it can page."""
    assert [(duration(r.long_seconds), duration(r.short_seconds), round(r.factor, 2))
            for r in (*SETTINGS.pages, *SETTINGS.tickets)] == [
        ("1h", "5m", 13.44), ("6h", "30m", 5.6), ("1d", "2h", 2.8), ("3d", "6h", 1.0)]  # fmt: skip
    lenient = settings_of(objective=0.9)
    fast = next(row for row in lenient.pages if row.id == FAST.id)
    assert (round(fast.factor, 9), round(fast.long_seconds)) == (8.0, 6048)
    for s in (lenient, settings_of(objective=0.5), settings_of(objective=0.6), settings_of(window=90 * 86400.0)):
        for row in (*s.pages, *s.tickets):
            assert row.factor * (1 - s.objective) <= 0.8 + 1e-9
            assert row.short_seconds == pytest.approx(row.long_seconds / 12)


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (8064, "2h14m24s"), (86400, "1d"), (259200, "3d"), (0.2, "1s")]
)
def test_durations_are_prometheus_own(seconds: float, text: str) -> None:
    """Whole seconds, largest unit first."""
    assert duration(seconds) == text


def test_specifications_read_the_counter_of_the_rules() -> None:
    """sloth and pyrra get the same events, objective and window."""
    events = sloth(SETTINGS)["slos"][0]
    assert events["objective"] == 95.0
    assert events["sli"]["events"]["error_query"] == (
        'sum(rate(specbudget_slo_events_total{specbudget_service="chat",verdict="bad"}[{{.window}}]))'
    )
    spec = pyrra(SETTINGS)["spec"]
    assert (spec["target"], spec["window"]) == ("95", "28d")
    assert spec["indicator"]["ratio"]["total"]["metric"] == 'specbudget_slo_events_total{specbudget_service="chat"}'
    assert object_name("A_b.c" + "x" * 90) == "a-b-c" + "x" * 40 + "-acceptance-length"
    assert len(object_name("x" * 100)) <= 63


def test_labels_of_closed_sets_are_spelled_as_declared() -> None:
    """A matcher of a closed set names values of that set: a word that no series has would match nothing, silently."""
    sets = {name: set(values) for name, values in LABELS.items() if isinstance(values, tuple)}
    per_series = {(name, label): set(values) for (name, label), values in SETS_OF_SERIES.items()}
    for rule in rules_of(SETTINGS):
        for name, inside in re.findall(r"specbudget_(\w+)\{([^}]*)\}", rule["expr"]):
            for label, values in re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"', inside):
                known = per_series.get((name, label), sets.get(label))
                if known is not None:
                    assert set(values.split("|")) <= known, (name, label, values)


@pytest.mark.parametrize("kind", ENGINES)
def test_each_engine_is_turned_off_in_its_own_words(kind: str) -> None:
    """A page of one kind of engine never tells the flag of another; every kind that a budget takes has words."""
    assert set(ENGINES) == set(get_args(EngineKind))
    others = {words.off for name, words in ENGINES.items() if name != kind}
    pages = [alert for alert in ALERTS if alert.severity is Severity.PAGE]
    for alert in ALERTS:
        said = alert.annotations(settings_of(engine=kind))["description"]
        assert not [words for words in others if words in said]
        if alert in pages:
            assert said.endswith(f"To turn speculation off: {ENGINES[kind].off}.")


def test_a_page_has_every_phrase_that_begins_a_line_of_a_message() -> None:
    """What the message's template looks for stands in the description, since both are one declaration."""
    for alert in ALERTS:
        said = alert.annotations(SETTINGS)["description"]
        if alert.severity is Severity.PAGE:
            assert all(phrase in said for phrase in PHRASES)
