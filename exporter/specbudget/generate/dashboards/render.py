"""The dashboards as files: built, checked by our own linter, written as text that never changes by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from specbudget.budget.model import Budget
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.dashboards import acceptance, events, links, memory, overview, startup
from specbudget.generate.dashboards.layout import Section, laid_out
from specbudget.generate.dashboards.lint import faults
from specbudget.generate.dashboards.sdk import JSONEncoder, builders, models
from specbudget.generate.dashboards.view import View
from specbudget.generate.files import CannotGenerate, Files
from specbudget.generate.rule_budget import rule_settings

FOLDER = PurePosixPath("dashboards")

SECTIONS: dict[Dashboard, Callable[[View], Sequence[Section]]] = {
    Dashboard.OVERVIEW: overview.sections,
    Dashboard.ACCEPTANCE: acceptance.sections,
    Dashboard.MEMORY: memory.sections,
    Dashboard.STARTUP: startup.sections,
}
ABOUT: dict[Dashboard, str] = {
    Dashboard.OVERVIEW: "The five budget lines of every service that decodes with two models: what is wrong, where.",
    Dashboard.ACCEPTANCE: "Acceptance length of one service against its SLO and break-even, and why it moves.",
    Dashboard.MEMORY: "What target and drafter take of a device, what the drafter costs, and what happened when.",
    Dashboard.STARTUP: "Where the time of a start went, stage by stage and model by model, against the budget.",
}
RANGE: dict[Dashboard, tuple[str, str]] = {
    Dashboard.OVERVIEW: ("now-6h", "30s"),
    Dashboard.ACCEPTANCE: ("now-3h", "30s"),
    Dashboard.MEMORY: ("now-24h", "1m"),
    Dashboard.STARTUP: ("now-7d", "5m"),
}
"""From when on, and how often anew: as long as the question looks back, as often as its answer can change."""


def files(budget: Budget) -> Files:
    """The files of the target `dashboards`. Raises CannotGenerate."""
    settings = rule_settings(budget)
    found = {FOLDER / f"{dashboard}.json": text(settings, dashboard) for dashboard in Dashboard}
    wrong = [f"{path.name}: {fault}" for path, one in found.items() for fault in faults(one)]
    if wrong:
        raise CannotGenerate("; ".join(wrong))
    return found


def view_of(settings: RuleSettings, dashboard: Dashboard) -> View:
    """The variables of a dashboard: the overview is about many services, the others about one."""
    return View(
        settings=settings,
        dashboard=dashboard,
        fleet=dashboard is Dashboard.OVERVIEW,
        rank=dashboard in (Dashboard.ACCEPTANCE, Dashboard.MEMORY),
        profile=dashboard is Dashboard.ACCEPTANCE,
    )


def text(settings: RuleSettings, dashboard: Dashboard) -> str:
    """One dashboard as JSON, its keys in alphabetical order."""
    built = built_of(view_of(settings, dashboard))
    return json.dumps(built, cls=JSONEncoder, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def built_of(view: View) -> models.Dashboard:
    """One dashboard in Grafana's own schema."""
    earliest, refresh = RANGE[view.dashboard]
    made = builders.Dashboard(links.TITLES[view.dashboard]).uid(view.dashboard.uid).tags([links.TAG])
    made = made.description(ABOUT[view.dashboard]).time(earliest, "now").refresh(refresh).timezone("browser")
    made = made.tooltip(models.DashboardCursorSync.CROSSHAIR)
    built = made.build()
    built.panels = laid_out(SECTIONS[view.dashboard](view))
    built.templating.list_val = view.variables()
    built.annotations.list_val = events.marks(view)
    built.links = links.of_dashboard(view)
    return built
