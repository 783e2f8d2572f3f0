"""Weeks as fixtures: drawn, back-filled and replayed once for all tests of a module."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from specbudget.budget.reading import load_budget
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.generate.rule_budget import rule_settings
from week.calendar import HEALTHY, REPLICAS, Week
from week.expected import Firing, Span, burn_spans, burns
from week.incidents import Incident, incidents, with_incidents
from week.pages import Fleet, fleet
from week.replay import store
from week.replica import TIMES

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "budget.yaml"
RULES = (ROOT / "alerts" / "recording.rules.yml", ROOT / "alerts" / "alerts.rules.yml")
"""The committed files, which `make check` holds against the budget."""

SEED = 20260105


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A week, what its pages say, and what may and must fire."""

    settings: RuleSettings
    week: Week
    planted: tuple[Incident, ...]
    fleet: Fleet
    spans: tuple[Span, ...]


def settings() -> RuleSettings:
    """Those of the budget from which the committed files are made."""
    return rule_settings(load_budget(EXAMPLE).budget)


def drawn(week: Week, planted: tuple[Incident, ...] = (), seed: int = SEED) -> Drawn:
    """Draws a week of the example's service."""
    loaded, found = load_budget(EXAMPLE).budget, settings()
    line = loaded.budget.acceptance
    assert line is not None
    curve = line.break_even_curve()
    assert curve is not None
    pages = fleet(week, service=loaded.service, break_even=curve, seed=seed)
    lags = [
        sum((h.lag(TIMES) for h in week.hangs if h.replica == replica), np.zeros(len(TIMES))) for replica in REPLICAS
    ]
    spans = (*(span for one in planted for span in one.spans()), *burn_spans(burns(pages, lags, found)))
    return Drawn(settings=found, week=week, planted=planted, fleet=pages, spans=spans)


def replayed(one: Drawn, folder: Path) -> Firing:
    """What vmalert raises over a week."""
    with store(folder) as filled:
        filled.fill(one.fleet.samples)
        filled.replay(RULES)
        return filled.firing()


@pytest.fixture(scope="session")
def healthy() -> Drawn:
    """The week in which nothing is wrong."""
    return drawn(HEALTHY)


@pytest.fixture(scope="session")
def troubled() -> Drawn:
    """The same week with the incidents."""
    planted = incidents(settings())
    return drawn(with_incidents(planted), planted)


@pytest.fixture(scope="session")
def raised(troubled: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Firing:
    """What vmalert raises in the week of the incidents."""
    return replayed(troubled, tmp_path_factory.mktemp("troubled"))
