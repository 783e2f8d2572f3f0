"""Alerts on the error budget of the acceptance SLO: two pages and two tickets, each over two windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.promql import Clause, Condition, Join, Joined, duration, number
from specbudget.catalog.recording import BAD_EVENTS, EVENTS, STEPS, Quantity
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.domain.burn import DAY, FAST, SLOW, THREE_DAYS, BurnRow, BurnWindows

Reader = Callable[[Quantity, float], str]


def _row(s: RuleSettings, row: BurnRow) -> BurnWindows | None:
    return next((windows for windows in (*s.pages, *s.tickets) if windows.id == row.id), None)


def _too_fast(s: RuleSettings, read: Reader, row: BurnWindows, seconds: float) -> Clause:
    return Clause(
        query=f"{read(BAD_EVENTS, seconds)}\n/\n{read(EVENTS, seconds)}",
        op=">",
        bound=f"{number(row.factor)} * (1 - {number(s.objective)})",
    )


def _burns(s: RuleSettings, read: Reader, row: BurnWindows, guarded: float, faster: Condition | None) -> Condition:
    """Both windows burn, and the window of `guarded` seconds has seen enough to say so.

    Where a faster row holds too, that one speaks and this one is silent.
    """
    kept = (*s.labels, "sli")
    quieter = () if faster is None else (Joined(join=Join.UNLESS, on=kept, part=faster),)
    events = Clause(query=read(EVENTS, guarded), op=">=", bound=str(s.guard_events))
    steps = Clause(query=read(STEPS, guarded), op=">=", bound=str(s.guard_steps))
    return Condition(
        first=_too_fast(s, read, row, row.long_seconds),
        rest=(
            Joined(join=Join.AND, on=kept, part=_too_fast(s, read, row, row.short_seconds)),
            Joined(join=Join.AND, on=kept, part=events),
            Joined(join=Join.AND, on=s.labels, part=steps),
            *quieter,
        ),
    )


def page_condition(s: RuleSettings, row: BurnRow, faster: Condition | None = None) -> Condition | None:
    """A page's condition: replicas that catch up or were bad since their start are left out; guarded in short."""
    windows = _row(s, row)
    if windows is None:
        return None
    return _burns(s, lambda q, w: f"{q.paging(w)}{s.own}", windows, windows.short_seconds, faster)


def ticket_condition(s: RuleSettings, row: BurnRow, faster: Condition | None = None) -> Condition | None:
    """A ticket's condition: every event counts but those of a replica that has the ticket of a bad start."""
    windows = _row(s, row)
    if windows is None:
        return None
    return _burns(s, lambda q, w: f"{q.ticket(w)}{s.own}", windows, windows.long_seconds, faster)


def _words(row: BurnRow) -> Callable[[RuleSettings], Mapping[str, str]]:
    def words(s: RuleSettings) -> Mapping[str, str]:
        windows = _row(s, row)
        if windows is None:
            return {}
        return {
            "long": duration(windows.long_seconds),
            "short": duration(windows.short_seconds),
            "factor": number(round(windows.factor, 2)),
            "share": f"{windows.share:.0%}",
            "allowed": f"{number(round(100 * (1 - s.objective), 4))}%",
            "window": duration(s.slo_seconds),
        }

    return words


_CAUSES = (
    "the traffic mix moved to prompts that the drafter knows less well (suspect `mix`)",
    "target or drafter was replaced, quantised or fine-tuned without the other (`target_changed`, `drafter_changed`)",
    "the engine caps verification under load (`capped`)",
    "the drafter's KV is missing for cached prefixes or long prompts (`prefix_hits`, `long_context`)",
    "requests lose their KV and start again (`kv_pressure`)",
)
_CONFIRM = (
    'sum by (verdict, profile) (increase(specbudget_slo_events_total{specbudget_service="$SERVICE"}[1h]))',
    '1 + sum by (profile) (rate(specbudget_accepted_draft_tokens_total{specbudget_service="$SERVICE"}[5m]))'
    ' / sum by (profile) (rate(specbudget_verify_steps_total{specbudget_service="$SERVICE"}[5m]))',
    'max by (cause) (specbudget_acceptance_suspect{specbudget_service="$SERVICE"}) == 1',
    "curl -s http://SIDECAR:9877/api/v1/status",
)
_ACTIONS = (
    "Look at one replica: if only one is low, take it out of traffic and restart it.",
    "If target or drafter changed, go back to the pair in budget.lock.",
    "If the mix moved, give that traffic a profile with a target of its own.",
    "If the length is below break-even, turn speculation off until the pair is mended.",
)


def _burn_text(what: str) -> str:
    return (
        "[percent] of the valid events of [long] missed their target length[target length], and no fewer in the last "
        f"[short]; allowed is [allowed]. At more than [factor] times that speed [share] of the budget of [window] "
        f"{what}. "
        "Likely cause:[cause] Shortest:[worst]"
    )


_OFF = " To turn speculation off: [off]."

FAST_BURN = AlertDef(
    name="SpecbudgetAcceptanceFastBurn",
    severity=Severity.PAGE,
    line="acceptance",
    condition=lambda s: page_condition(s, FAST),
    for_seconds=120.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO burns fast, [percent] of events are bad",
    description=_burn_text("is gone within the hour") + _OFF,
    words=_words(FAST),
    dashboard=Dashboard.ACCEPTANCE,
    means="Most requests are slower than promised, now. At this speed the error budget lasts two days or less.",
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
)

SLOW_BURN = AlertDef(
    name="SpecbudgetAcceptanceSlowBurn",
    severity=Severity.PAGE,
    line="acceptance",
    condition=lambda s: page_condition(s, SLOW, page_condition(s, FAST)),
    for_seconds=300.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO burns, [percent] of events are bad",
    description=_burn_text("is gone within hours") + _OFF,
    words=_words(SLOW),
    dashboard=Dashboard.ACCEPTANCE,
    means="For hours too many requests have been slower than promised. It is silent while the fast burn holds.",
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
)

BURN_DAY = AlertDef(
    name="SpecbudgetAcceptanceBurnDay",
    severity=Severity.TICKET,
    line="acceptance",
    condition=lambda s: ticket_condition(s, DAY),
    for_seconds=900.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO loses a tenth of its budget a day",
    description=_burn_text("is gone in a day"),
    words=_words(DAY),
    dashboard=Dashboard.ACCEPTANCE,
    means="The budget of the SLO is spent some times too fast; nobody has to get up for it. Backlogs count here.",
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
)

BURN_THREE_DAYS = AlertDef(
    name="SpecbudgetAcceptanceBurnThreeDays",
    severity=Severity.TICKET,
    line="acceptance",
    condition=lambda s: ticket_condition(s, THREE_DAYS, ticket_condition(s, DAY)),
    for_seconds=900.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO will not be kept at this rate",
    description=_burn_text("is gone in three days"),
    words=_words(THREE_DAYS),
    dashboard=Dashboard.ACCEPTANCE,
    means="At the rate of the last three days the SLO is missed at the end of its window.",
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=(*_ACTIONS, "If this traffic will stay, set a target that the pair can keep: `specbudget init --sidecar`."),
)

BURNS = (FAST_BURN, SLOW_BURN, BURN_DAY, BURN_THREE_DAYS)
