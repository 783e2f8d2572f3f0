"""What an alert is: when it fires, whom it is for, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from specbudget.catalog.alerts.texts import DASHBOARDS, RUNBOOK, escaped, filled
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, STAGING
from specbudget.catalog.looks import Look
from specbudget.catalog.promql import Condition
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import SERVICE_LABEL, SIDECAR


class Severity(StrEnum):
    """Whom an alert is for: someone now, someone this week, whoever plans."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


class Dashboard(StrEnum):
    """The dashboards, by file name."""

    OVERVIEW = "overview"
    ACCEPTANCE = "acceptance"
    MEMORY = "memory"
    STARTUP = "startup"

    @property
    def uid(self) -> str:
        """The dashboard's identity in Grafana, the last part of its address."""
        return f"specbudget-{self}"


ALERT_LINES = (ACCEPTANCE.id, KV.id, ARTIFACTS.id, STAGING.id, CODESIGN.id, SIDECAR)
"""The label `line` of alerts, in the order in which the files list them: the five budget lines, then the sidecar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDef:
    """One alert. `condition` gives None where the budget asks for nothing that could be broken.

    `summary` and `description` are templates of Prometheus with marks, see `filled`; `words` gives the marks that
    only this alert has. The rest is for the runbook: `means`; `when`, the condition in words without the time that
    it must hold; `confirm`, what to look at; `causes`, likeliest first; `actions`, in order; and `off`, when
    speculation should be turned off, empty where that is no remedy. Causes and actions hold marks of `EngineWords`.
    `keeps` are labels that the expression keeps beside those that every alert is aggregated by. `reads_hours`: its
    own expression goes over hours or days of samples, so that it is evaluated less often.
    """

    name: str
    severity: Severity
    line: str
    condition: Callable[[RuleSettings], Condition | None]
    summary: str
    description: str
    dashboard: Dashboard
    means: str
    when: Callable[[RuleSettings], str]
    confirm: tuple[Look, ...]
    causes: tuple[str, ...]
    actions: tuple[str, ...]
    off: str = ""
    for_seconds: float = 0.0
    keeps: tuple[str, ...] = ()
    reads_hours: bool = False
    words: Callable[[RuleSettings], Mapping[str, str]] = field(default=lambda s: {})

    @property
    def anchor(self) -> str:
        """The fragment of its heading in the runbook."""
        return self.name.lower()

    def labels(self) -> dict[str, str]:
        """The labels that the rule adds."""
        return {"severity": self.severity, "line": self.line, "service": f"{{{{ $labels.{SERVICE_LABEL} }}}}"}

    def annotations(self, s: RuleSettings) -> dict[str, str]:
        """Texts and addresses of the rule."""
        words = self.words(s)
        return {
            "summary": filled(self.summary, s, words),
            "description": filled(self.description, s, words),
            "runbook_url": f"{escaped((s.runbook or RUNBOOK).partition('#')[0])}#{self.anchor}",
            "dashboard_url": (
                f"{escaped((s.dashboards or DASHBOARDS).rstrip('/'))}/{self.dashboard.uid}"
                f"?var-service={{{{ $labels.{SERVICE_LABEL} }}}}"
            ),
        }
