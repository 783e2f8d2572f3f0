"""A scenario by its name and the speed it runs at, as the command line gives them."""

from __future__ import annotations

import difflib

from specbudget.errors import SpecbudgetError
from specbudget.simulate.scenarios import SCENARIOS, Scenario


class ChoiceError(SpecbudgetError):
    """No scenario has the name, or nothing can run at the speed; the text is one line."""


def chosen(name: str, speed: float) -> Scenario:
    """The scenario of that name. Raises ChoiceError, naming the nearest one and all that there are."""
    scenario = SCENARIOS.get(name)
    if scenario is None:
        near = difflib.get_close_matches(name, SCENARIOS, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ChoiceError(f"--scenario: {name!r} is unknown: {meant}choose one of {', '.join(SCENARIOS)}")
    if not speed > 0:
        raise ChoiceError(f"--speed: {speed}: give a number above 0")
    return scenario
