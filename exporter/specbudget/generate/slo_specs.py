"""The acceptance SLO as specifications for sloth and for pyrra, over the same counter that our own rules read."""

from __future__ import annotations

import re
from typing import Any

from specbudget.catalog import series
from specbudget.catalog.alerts.burn import BURN_DAY, FAST_BURN
from specbudget.catalog.alerts.texts import escaped
from specbudget.catalog.promql import duration, equals, number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import EventVerdict

NAME = "acceptance-length"


def sloth(s: RuleSettings) -> dict[str, Any]:
    """For `sloth generate`. Sloth pages without a guard for low traffic."""
    bad, every = (f"sum(rate({selector}[{{{{.window}}}}]))" for selector in _selectors(s))
    page, ticket = FAST_BURN, BURN_DAY
    return {
        "version": "prometheus/v1",
        "service": _sloth_name(s.service),
        "labels": {"line": page.line},
        "slos": [
            {
                "name": NAME,
                "objective": _percent(s),
                "description": _described(s),
                "sli": {"events": {"error_query": bad, "total_query": every}},
                "alerting": {
                    "name": "SpecbudgetAcceptanceSlo",
                    "annotations": {"runbook_url": page.annotations(s)["runbook_url"]},
                    "page_alert": {"labels": {"severity": str(page.severity)}},
                    "ticket_alert": {"labels": {"severity": str(ticket.severity)}},
                },
            }
        ],
    }


def sloth_command(s: RuleSettings) -> str:
    """How sloth is run, since the period of an SLO is no part of its specification."""
    period = duration(s.slo_seconds)
    command = f"sloth generate --default-slo-period {period} -i FILE"
    return command if period in SLOTH_PERIODS else f"{command} --slo-period-windows-path FOLDER (windows for {period})"


SLOTH_PERIODS = ("28d", "30d")
"""Periods whose windows sloth brings itself (sloth, internal/alert/windows)."""


def _sloth_name(service: str) -> str:
    """Sloth wants at least two characters that begin and end with a letter or a digit."""
    plain = service.rstrip("._-")
    return plain if len(plain) > 1 else f"{plain}-{NAME}"


def pyrra(s: RuleSettings) -> dict[str, Any]:
    """A ServiceLevelObjective. Pyrra pages without a guard for low traffic."""
    bad, every = _selectors(s)
    return {
        "apiVersion": "pyrra.dev/v1alpha1",
        "kind": "ServiceLevelObjective",
        "metadata": {
            "name": object_name(s.service),
            "labels": {"pyrra.dev/line": FAST_BURN.line},
        },
        "spec": {
            "description": _described(s),
            "target": number(_percent(s)),
            "window": duration(s.slo_seconds),
            "indicator": {
                "ratio": {"errors": {"metric": bad}, "total": {"metric": every}, "grouping": list(s.labels)},
            },
        },
    }


def object_name(service: str) -> str:
    """A name that Kubernetes takes: letters in lower case, digits and dashes, at most 63."""
    plain = re.sub(r"[^a-z0-9]+", "-", service.lower()).strip("-")
    return f"{plain[: 62 - len(NAME)].strip('-')}-{NAME}"


def _selectors(s: RuleSettings) -> tuple[str, str]:
    return s.of(series.SLO_EVENTS, equals("verdict", EventVerdict.BAD)), s.of(series.SLO_EVENTS)


def _percent(s: RuleSettings) -> float:
    return float(number(100 * s.objective))


def _described(s: RuleSettings) -> str:
    return escaped(
        f"{number(_percent(s))} % of the valid events of {s.service} reach their target acceptance length, "
        f"over {duration(s.slo_seconds)}."
    )
