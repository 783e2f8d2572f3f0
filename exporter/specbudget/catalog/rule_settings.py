"""What of a budget the rules depend on, as plain values: labels, windows, objective, guards, plans and links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specbudget.catalog.labels import DEFAULT_LABELS as DEFAULT_LABELS
from specbudget.catalog.labels import REPLICA_LABELS as REPLICA_LABELS
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import LINES, BudgetDef, LineDef
from specbudget.catalog.promql import equals, matching, of
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import SliForm, Source
from specbudget.domain.burn import BurnWindows

LENGTH_SECONDS = (300.0, 900.0, 1800.0)
"""Windows of the acceptance length: a collapse, a replica against its service, break-even."""

COLLAPSE_SECONDS, OUTLIER_SECONDS, BREAK_EVEN_SECONDS = LENGTH_SECONDS


EVERY_LIMIT = frozenset((line.id, budget.id) for line in LINES for budget in line.budgets)
"""Line and id of every budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """The facts of one budget; `pages` and `tickets` are empty where no SLO is budgeted.

    `mode`, `order` and `warmup_required` are how the start is planned, None where nothing is. `labels` is what an
    alert is aggregated by and always holds the service. `limits` are line and id of the budgets that have a limit:
    where none of those that an alert is about has one, the alert is left out.
    """

    service: str
    engine: str = "sglang"
    labels: tuple[str, ...] = DEFAULT_LABELS
    sli: SliForm = SliForm.REQUEST
    objective: float = 0.95
    slo_seconds: float = 28 * 86400.0
    pages: tuple[BurnWindows, ...] = ()
    tickets: tuple[BurnWindows, ...] = ()
    guard_events: int = 20
    guard_steps: int = 500
    has_break_even: bool = False
    mode: str | None = None
    order: str | None = None
    warmup_required: bool = False
    limits: frozenset[tuple[str, str]] = EVERY_LIMIT
    runbook: str | None = None
    dashboards: str | None = None

    def has_limit(self, line: LineDef, *budgets: BudgetDef) -> bool:
        """Whether any of these budgets of a line has a limit."""
        return any((line.id, budget.id) in self.limits for budget in budgets)

    @property
    def replica(self) -> tuple[str, ...]:
        """The labels of one replica."""
        return (*self.labels, *(label for label in REPLICA_LABELS if label not in self.labels))

    def by(self, *more: str) -> str:
        """Grouping by the alert's labels and `more`."""
        return f"by ({', '.join((*self.labels, *more))})"

    def by_replica(self, *more: str) -> str:
        """Grouping by replica and `more`."""
        return f"by ({', '.join((*self.replica, *more))})"

    @property
    def own(self) -> str:
        """The matchers of this service, to follow the name of a recorded series: other budgets record the same."""
        return matching("", (equals(SERVICE_LABEL, self.service),))

    def of(self, series: SeriesDef, *matchers: str, suffix: str = "") -> str:
        """A selector of this service's samples of a series."""
        return matching(of(series, suffix), (equals(SERVICE_LABEL, self.service), *matchers))

    @property
    def tail(self) -> Source:
        """The file from which the SLO's events come; its backlog is what a page has to wait for."""
        return Source.SERVER_LOG if self.sli is SliForm.BATCH else Source.REQUEST_LOG

    @property
    def paging_windows(self) -> Mapping[float, float]:
        """Each window that a page reads, and how long a replica that was held back stays so in it, in seconds.

        That is the short window of the row: what was caught up has then left the window that must burn too.
        """
        held = {COLLAPSE_SECONDS: COLLAPSE_SECONDS, BREAK_EVEN_SECONDS: BREAK_EVEN_SECONDS}
        for row in self.pages:
            for seconds in (row.long_seconds, row.short_seconds):
                held[seconds] = min(row.short_seconds, held.get(seconds, row.short_seconds))
        return dict(sorted(held.items()))

    @property
    def paging_event_windows(self) -> tuple[float, ...]:
        """The paging windows over which events are recorded: none without an SLO."""
        return tuple(self.paging_windows) if self.pages else ()

    @property
    def ticket_windows(self) -> tuple[float, ...]:
        """Each window that a ticket of the SLO reads, in seconds."""
        return tuple(sorted({seconds for row in self.tickets for seconds in (row.short_seconds, row.long_seconds)}))
