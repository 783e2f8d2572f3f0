"""Every alert, declared once: rules, runbook, routes and pages are made from these objects."""

from __future__ import annotations

from specbudget.catalog.alerts.burn import BURNS
from specbudget.catalog.alerts.length import LENGTHS
from specbudget.catalog.alerts.memory import ARTIFACT_ALERTS, KV_ALERTS
from specbudget.catalog.alerts.model import ALERT_LINES, AlertDef, Dashboard, Severity
from specbudget.catalog.alerts.sidecar import SIDECAR_ALERTS
from specbudget.catalog.alerts.speculation import JUDGED
from specbudget.catalog.alerts.staging import CODESIGN_ALERTS, STAGING_ALERTS

ALERTS: tuple[AlertDef, ...] = (
    *BURNS,
    *LENGTHS,
    *JUDGED,
    *KV_ALERTS,
    *ARTIFACT_ALERTS,
    *STAGING_ALERTS,
    *CODESIGN_ALERTS,
    *SIDECAR_ALERTS,
)
"""In the order in which files and runbook list them, line by line."""

__all__ = ["ALERTS", "ALERT_LINES", "AlertDef", "Dashboard", "Severity"]
