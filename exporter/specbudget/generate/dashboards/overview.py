"""The overview: is anything wrong, in which line, of which service and replica, and is anything not known."""

from __future__ import annotations

from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, STAGING, LineDef
from specbudget.generate.dashboards import overview_lines as lines
from specbudget.generate.dashboards import overview_more as more
from specbudget.generate.dashboards import overview_now as now
from specbudget.generate.dashboards import sidecars
from specbudget.generate.dashboards.layout import Section
from specbudget.generate.dashboards.ledger import ledger
from specbudget.generate.dashboards.replicas import replicas
from specbudget.generate.dashboards.view import View


def sections(view: View) -> list[Section]:
    """The whole dashboard, from the ledger down to one row per line."""
    return [
        Section(panels=(now.lines_now(view), now.alerts_now(view), now.not_known(view), now.lines_then(view))),
        Section(title="Ledger", panels=(ledger(view),)),
        Section(title=_asked(ACCEPTANCE), panels=(lines.lengths(view), lines.burns(view))),
        Section(title=_asked(KV), panels=(lines.pools(view), lines.cost(view), lines.retractions(view))),
        Section(title="Replicas", panels=(replicas(view), lines.speculating(view))),
        Section(title=_asked(STAGING), panels=(more.cold_starts(view), more.outcomes(view)), folded=True),
        Section(title=_asked(ARTIFACTS), panels=(more.on_disk(view), more.models_of(view)), folded=True),
        Section(title=_asked(CODESIGN), panels=(more.rules(view), more.broken(view), more.rechecks(view)), folded=True),
        Section(title="Sidecars: is what all others say true", panels=sidecars.watched(view), folded=True),
    ]


def _asked(line: LineDef) -> str:
    return f"{line.title}: {line.question}"
