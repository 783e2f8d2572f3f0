"""The acceptance dashboard: does it page, whose requests are slow, since when, and what to ask next."""

from __future__ import annotations

from specbudget.generate.dashboards import acceptance_events as events
from specbudget.generate.dashboards import acceptance_length as length
from specbudget.generate.dashboards import acceptance_slo as slo
from specbudget.generate.dashboards import load
from specbudget.generate.dashboards.layout import Section
from specbudget.generate.dashboards.view import View


def sections(view: View) -> list[Section]:
    """What a person who was woken reads first stands first. Without an SLO its panels are not there."""
    judged = bool(view.settings.pages)
    return [
        Section(panels=(*slo.at_a_glance(view), length.now_and_before(view), *(slo.burning(view) if judged else ()))),
        Section(title="Likely causes, and what speculation does", panels=(events.suspects(view), events.states(view))),
        Section(title="What is asked next: traffic, time per token, load", panels=load.traffic(view)),
        Section(
            title="Shape of the lengths",
            panels=(length.distribution(view), length.by_position(view), length.quantiles(view), length.rates(view)),
        ),
        Section(title="By profile", panels=(length.by_profile(view), length.mix(view))),
        Section(title="By replica and rank", panels=(length.by_replica(view), length.by_rank(view))),
        Section(
            title="What counts for the SLO",
            panels=(*(slo.over_days(view) if judged else ()), *events.counted(view)),
            folded=True,
        ),
    ]
