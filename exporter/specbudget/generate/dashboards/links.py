"""Where a panel leads: the dashboard that answers the next question, and the runbook of its alerts."""

from __future__ import annotations

from collections import Counter

from specbudget.catalog.alerts import ALERTS, AlertDef, Dashboard
from specbudget.generate.dashboards.sdk import builders, models
from specbudget.generate.dashboards.view import SERVICE, View

TAG = "specbudget"
"""All four carry it and find each other by it."""

TITLES: dict[Dashboard, str] = {
    Dashboard.OVERVIEW: "specbudget / Overview",
    Dashboard.ACCEPTANCE: "specbudget / Acceptance",
    Dashboard.MEMORY: "specbudget / Memory review",
    Dashboard.STARTUP: "specbudget / Start-up",
}

KEPT = "${__url_time_range}&${__all_variables}"
"""Time range and variables go along."""


def dashboard_of(line: str) -> Dashboard:
    """The dashboard to which most alerts of a budget line lead."""
    counted = Counter(alert.dashboard for alert in ALERTS if alert.line == line)
    return counted.most_common(1)[0][0]


def to(dashboard: Dashboard, question: str) -> models.DashboardLink:
    """From a panel to the dashboard that answers the next question, with time and variables."""
    return _link(question, f"/d/{dashboard.uid}?{KEPT}")


def to_service(
    dashboard: Dashboard, question: str, service: str = "${__field.labels.specbudget_service}"
) -> models.DashboardLink:
    """From one service of many to a dashboard about it."""
    return _link(question, f"/d/{dashboard.uid}?${{__url_time_range}}&var-{SERVICE}={service}")


def runbook(view: View, *alerts: AlertDef) -> tuple[models.DashboardLink, ...]:
    """The sections of the runbook on these alerts; none where the budget names no runbook that a browser finds."""
    address = runbook_address(view)
    if address is None:
        return ()
    return tuple(_link(f"Runbook: {alert.name}", f"{address}#{alert.anchor}", away=True) for alert in alerts)


def runbook_address(view: View) -> str | None:
    """The runbook without a place in it."""
    return view.settings.runbook.partition("#")[0] if view.settings.runbook else None


def of_dashboard(view: View) -> list[models.DashboardLink]:
    """The links at the top: the other dashboards, by tag, and the runbook."""
    made = builders.DashboardLink("specbudget").type(models.DashboardLinkType.DASHBOARDS).tags([TAG])
    found = [_shown(made.include_vars(True).keep_time(True).build())]
    address = runbook_address(view)
    if address is not None:
        book = builders.DashboardLink("Runbook").type(models.DashboardLinkType.LINK).icon("doc")
        found.append(_shown(book.url(address).target_blank(True).tooltip("What each alert means and asks").build()))
    return found


def _link(title: str, url: str, *, away: bool = False) -> models.DashboardLink:
    made = builders.DashboardLink(title).type(models.DashboardLinkType.LINK).url(url).target_blank(away)
    return _shown(made.build())


def _shown(link: models.DashboardLink) -> models.DashboardLink:
    """Above the panels, and not in the menu where the SDK would put it."""
    link.placement = None  # type: ignore[assignment]
    return link
