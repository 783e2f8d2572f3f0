"""The reference page of recorded series and alerts, made from their declarations."""

from __future__ import annotations

from specbudget.budget.acceptance import AcceptanceLine
from specbudget.catalog.alerts import ALERTS, AlertDef
from specbudget.catalog.promql import duration, number
from specbudget.catalog.recording import RecordDef, record_groups
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.domain.burn import PAGE_ROWS, TICKET_ROWS, BurnWindows

_LINE = AcceptanceLine()
_ROWS = tuple(row.windows(objective=_LINE.objective, slo_seconds=_LINE.window) for row in (*PAGE_ROWS, *TICKET_ROWS))
USUAL = RuleSettings(
    service="SERVICE",
    pages=_ROWS[: len(PAGE_ROWS)],
    tickets=_ROWS[len(PAGE_ROWS) :],
    has_break_even=True,
    mode="prefetch",
    order="target,drafter",
    warmup_required=True,
)
"""A budget with every line, with the objective and the window that hold where none are given."""

_HEAD = f"""<!-- Generated from exporter/specbudget/catalog by `make generate`: do not edit. -->
# Recorded series and alerts

What `specbudget generate rules` writes into `alerts/recording.rules.yml` and `alerts/alerts.rules.yml`. They load into
Prometheus from 2.42 on and into vmalert from 1.79 on, the oldest that were tried; a simulated week was judged by
vmalert 1.112 and 1.145. They read the samples of the budget's own service only, so that the files of several budgets
can be loaded side by side. The specifications in `alerts/slo` are held against the sources of sloth 0.16 and
pyrra 0.9: documented, not run.

Names of recorded series are kept like names of the exporter's series; a change is listed old → new. Windows, and with
them the ends of names, follow from objective and window of the SLO: here {number(_LINE.objective)} over
{duration(_LINE.window)}.
"""

_LEVELS = f"""
## Recorded series

| level | one per | labels |
|---|---|---|
| `replica` | sidecar | {", ".join(USUAL.replica)} |
| `service` | what an alert is about | {", ".join(USUAL.labels)} (`rules.labels` of the budget) |
| `fleet` | service, over all clusters and namespaces | specbudget_service |

Series of events also carry `sli`. Numerators and denominators are apart: divide them after summing, and the result is a
ratio of sums. `paging_` leaves out replicas that catch up with a backlog or were bad since their start, `ticket_` only
the latter.

| series | meaning |
|---|---|
"""


def render() -> str:
    """The whole page."""
    records = "".join(_record(record) for group in record_groups(USUAL) for record in group.rules)
    windows = "".join(_window(row, "page" if row in USUAL.pages else "ticket") for row in _ROWS)
    alerts = "".join(_alert(alert) for alert in ALERTS)
    return (
        f"{_HEAD}{_LEVELS}{records}\n## Burn-rate windows\n\n"
        "| row | severity | share of the budget | long window | short window | factor |\n|---|---|---|---|---|---|\n"
        f"{windows}\n## Alerts\n\n"
        "| alert | severity | line | for | labels besides | what it means |\n|---|---|---|---|---|---|\n" + alerts
    )


def _record(record: RecordDef) -> str:
    return f"| `{record.name}` | {record.meaning} |\n"


def _window(row: BurnWindows, severity: str) -> str:
    long, short = duration(row.long_seconds), duration(row.short_seconds)
    return f"| {row.id} | {severity} | {row.share:.0%} | {long} | {short} | {number(row.factor)} |\n"


def _alert(alert: AlertDef) -> str:
    waits = duration(alert.for_seconds) if alert.for_seconds else "–"
    keeps = ", ".join(alert.keeps) or "–"
    return f"| `{alert.name}` | {alert.severity} | {alert.line} | {waits} | {keeps} | {alert.means} |\n"
