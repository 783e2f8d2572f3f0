"""Which deployments are watched for alerts: every scenario, and some whose budget says less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from e2e.pace import Pace
from e2e.scenario_rows import ROWS
from specbudget.budget.model import Budget, Links
from specbudget.budget.reading import load_budget
from specbudget.catalog.alerts import AlertDef, burn
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.sets import Suspect
from specbudget.generate.rule_budget import rule_settings
from specbudget.generate.rules import alerting_rules, recording_rules
from specbudget.simulate.budgetfile import budget_text
from specbudget.simulate.deployment import Deployment
from specbudget.simulate.scenarios import SCENARIOS

LINKS = Links(runbook="https://runbooks.example/specbudget.md", dashboards="https://grafana.example/d")
"""Where the pages of these rules lead to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRun:
    """A deployment in a scenario, and the alerts that people are told of, and no other.

    `without` and `given` are keys left out of and set in the acceptance section of its budget; such a deployment has a
    service name of its own, since its rules may differ. `causes` are suspects that its pages name.
    """

    name: str
    scenario: str
    alerts: tuple[AlertDef, ...]
    without: tuple[str, ...] = ()
    given: Mapping[str, object] = field(default_factory=dict)
    causes: tuple[Suspect, ...] = ()

    def budgeted(self, text: str) -> str:
        """The budget of this deployment, made from that of the stand-in."""
        if self.name == self.scenario:
            return text
        document = yaml.safe_load(text)
        acceptance = document["budget"]["acceptance"]
        for key in self.without:
            del acceptance[key]
        acceptance.update(self.given)
        document["service"] += f"-{self.name}"
        return str(yaml.safe_dump(document, sort_keys=False))


RUNS: tuple[AlertRun, ...] = (
    *(AlertRun(name=name, scenario=name, alerts=row.alerts) for name, row in ROWS.items()),
    AlertRun(
        name="acceptance-drop-without-break-even",
        scenario="acceptance-drop",
        without=("break_even",),
        alerts=(burn.FAST_BURN,),
    ),
    AlertRun(
        name="mix-shift-without-profiles",
        scenario="mix-shift",
        without=("profiles",),
        # the bad share goes from a tenth to nine tenths: with a looser objective the few good events of a service that
        # is half a minute old would hold up the fast burn until the slow burn has paged
        given={"objective": 0.97},
        alerts=(burn.FAST_BURN,),
        causes=(Suspect.MIX,),
    ),
)
"""In this table a burn stands where profiles are not budgeted, and no break-even where none is budgeted."""


def stand_ins_budget(run: AlertRun) -> str:
    """The budget of a run before its stand-in has written it; the engine's address differs."""
    deployment = Deployment(scenario=SCENARIOS[run.scenario], folder=Path(), host="127.0.0.1", port=1)
    return run.budgeted(budget_text(deployment, speed=1.0))


def settings_of(text: str, folder: Path) -> RuleSettings:
    """What the rules of a budget depend on, with links that a page can show."""
    file = folder / "budget-of-rules.yaml"
    file.write_text(text)
    budget: Budget = load_budget(file).budget
    return rule_settings(budget.model_copy(update={"links": LINKS}))


def rules_of(runs: tuple[AlertRun, ...], pace: Pace, folder: Path) -> Mapping[str, dict[str, Any]]:
    """The files of rules that watch these runs, by name: one pair for each service, since all runs of one agree."""
    found: dict[str, RuleSettings] = {}
    for run in runs:
        settings = settings_of(stand_ins_budget(run), folder)
        assert found.setdefault(settings.service, settings) == settings, f"{run.name} has rules of its own"
    return {
        f"{service}.{build.__name__}.yml": pace.rules(build(settings))
        for service, settings in found.items()
        for build in (recording_rules, alerting_rules)
    }
