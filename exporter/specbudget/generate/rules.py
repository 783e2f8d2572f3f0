"""Recording rules, alerting rules and SLO specifications of a budget, as files for Prometheus and vmalert."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from specbudget.budget.model import Budget
from specbudget.catalog.alerts import ALERT_LINES, ALERTS, AlertDef
from specbudget.catalog.promql import Condition, duration
from specbudget.catalog.recording import SELDOM_SECONDS, RecordDef, record_groups
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.files import Files, heading
from specbudget.generate.rule_budget import rule_settings
from specbudget.generate.rules_yaml import document
from specbudget.generate.slo_specs import pyrra, sloth, sloth_command

FOLDER = PurePosixPath("alerts")


def files(budget: Budget) -> Files:
    """The files of the target `rules`. Raises CannotGenerate."""
    settings = rule_settings(budget)
    header = header_of(settings)
    found = {
        FOLDER / "recording.rules.yml": document(recording_rules(settings), header),
        FOLDER / "alerts.rules.yml": document(alerting_rules(settings), header),
    }
    if settings.pages:
        found[FOLDER / "slo" / "sloth.yml"] = document(sloth(settings), f"{header} Run: {sloth_command(settings)}")
        found[FOLDER / "slo" / "pyrra.yml"] = document(pyrra(settings), header)
    return found


def header_of(s: RuleSettings) -> str:
    """The comment at the head of each file."""
    return heading("rules", s.service)


def recording_rules(s: RuleSettings) -> dict[str, Any]:
    """The file of recorded series, as plain values."""
    groups = []
    for group in record_groups(s):
        head: dict[str, Any] = {"name": f"specbudget-{s.service}-{group.id}"}
        if group.interval_seconds is not None:
            head["interval"] = duration(group.interval_seconds)
        groups.append(head | {"rules": [recorded(record) for record in group.rules]})
    return {"groups": groups}


def recorded(record: RecordDef) -> dict[str, Any]:
    """One recording rule."""
    return {"record": record.name, "expr": record.text()}


def alerting_rules(s: RuleSettings) -> dict[str, Any]:
    """The file of alerts, as plain values; what the budget does not ask for is left out."""
    groups = []
    for line in ALERT_LINES:
        for seldom in (False, True):
            rules = [
                alerting(s, alert, condition)
                for alert in ALERTS
                if alert.line == line and alert.reads_hours is seldom and (condition := alert.condition(s)) is not None
            ]
            head: dict[str, Any] = {"name": f"specbudget-{s.service}-alerts-{line}"}
            if seldom:
                head = {"name": f"{head['name']}-seldom", "interval": duration(SELDOM_SECONDS)}
            groups.extend([head | {"rules": rules}] if rules else [])
    return {"groups": groups}


def alerting(s: RuleSettings, alert: AlertDef, condition: Condition) -> dict[str, Any]:
    """One alerting rule."""
    rule: dict[str, Any] = {"alert": alert.name, "expr": condition.text()}
    if alert.for_seconds:
        rule["for"] = duration(alert.for_seconds)
    return rule | {"labels": alert.labels(), "annotations": alert.annotations(s)}
