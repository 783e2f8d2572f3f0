"""Alerts on the error budget of the acceptance SLO: two pages and two tickets, each over two windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.lines import ACCEPTANCE
from specbudget.catalog.looks import LENGTH_BY_PROFILE, LENGTH_BY_REPLICA, STATUS, SUSPECTS, VERDICTS
from specbudget.catalog.promql import Clause, Condition, Join, Joined, duration, number
from specbudget.catalog.recording import BAD_EVENTS, EVENTS, STEPS, Quantity
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.domain.burn import DAY, FAST, SLOW, THREE_DAYS, BurnRow, BurnWindows
from specbudget.words import percent, span

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
            "share": f"{windows.factor * windows.long_seconds / s.slo_seconds:.0%}",
            "allowed": f"{number(round(100 * (1 - s.objective), 4))}%",
            "window": duration(s.slo_seconds),
        }

    return words


def _when(row: BurnRow, faster: BurnRow | None = None) -> Callable[[RuleSettings], str]:
    """The row in words, with what is asked of its guarded window and the faster row that silences it."""

    def when(s: RuleSettings) -> str:
        windows = _row(s, row)
        if windows is None:
            return ""
        guarded = windows.short_seconds if windows in s.pages else windows.long_seconds
        unless = "" if faster is None else " It is silent while the faster burn holds."
        return (
            f"More than {percent(windows.factor * (1 - s.objective))} of the valid events are bad "
            f"({number(round(windows.factor, 2))} times the allowed {number(round(100 * (1 - s.objective), 4))} %), "
            f"over "
            f"{span(windows.long_seconds)} and over {span(windows.short_seconds)}, with {s.guard_events} events or "
            f"more and "
            f"{s.guard_steps} verify steps or more in {span(guarded)}.{unless}"
        )

    return when


_OFF_WHEN = (
    "only if the drafter no longer pays: below break-even where that is known, else at a length near 1. Above it even "
    "these requests are faster than without a drafter"
)

_CAUSES = (
    "the traffic mix moved to prompts that the drafter knows less well (suspect `mix`)",
    "target or drafter was replaced, quantised or fine-tuned without the other (`target_changed`, `drafter_changed`)",
    "the engine caps verification under load (`capped`)",
    "the drafter's KV is missing for cached prefixes or long prompts (`prefix_hits`, `long_context`)",
    "requests lose their KV and start again (`kv_pressure`)",
)
_CONFIRM = (LENGTH_BY_REPLICA, LENGTH_BY_PROFILE, VERDICTS, SUSPECTS, STATUS)
_ACTIONS = (
    "Look at one replica: if only one is low, take it out of traffic and restart it.",
    "If target or drafter changed, go back to the pair in budget.lock.",
    "If the mix moved, give that traffic a profile with a target of its own.",
)


_BURN_TEXT = (
    "[percent] of the valid events of [long] missed their target length[target length], and too many of the last "
    "[short]; allowed is [allowed]. From [factor] times that on, [share] of the budget of [window] is gone in [long]. "
    "[cause] [worst]"
)


_OFF = " [off]"

FAST_BURN = AlertDef(
    name="SpecbudgetAcceptanceFastBurn",
    severity=Severity.PAGE,
    line=ACCEPTANCE.id,
    condition=lambda s: page_condition(s, FAST),
    for_seconds=120.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO burns fast, [percent] of events are bad",
    description=_BURN_TEXT + _OFF,
    words=_words(FAST),
    dashboard=Dashboard.ACCEPTANCE,
    means="Far more requests than allowed are slower than promised, now.",
    when=_when(FAST),
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
    off=_OFF_WHEN,
)

SLOW_BURN = AlertDef(
    name="SpecbudgetAcceptanceSlowBurn",
    severity=Severity.PAGE,
    line=ACCEPTANCE.id,
    condition=lambda s: page_condition(s, SLOW, page_condition(s, FAST)),
    for_seconds=300.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO burns, [percent] of events are bad",
    description=_BURN_TEXT + _OFF,
    words=_words(SLOW),
    dashboard=Dashboard.ACCEPTANCE,
    means="For hours too many requests have been slower than promised. It is silent while the fast burn holds.",
    when=_when(SLOW, FAST),
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
    off=_OFF_WHEN,
)

BURN_DAY = AlertDef(
    name="SpecbudgetAcceptanceBurnDay",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: ticket_condition(s, DAY),
    for_seconds=900.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO loses a tenth of its budget a day",
    description=_BURN_TEXT,
    words=_words(DAY),
    dashboard=Dashboard.ACCEPTANCE,
    means="The budget of the SLO is spent some times too fast. Nobody has to get up for it. Backlogs count here.",
    when=_when(DAY),
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=_ACTIONS,
    off=_OFF_WHEN,
)

BURN_THREE_DAYS = AlertDef(
    name="SpecbudgetAcceptanceBurnThreeDays",
    severity=Severity.TICKET,
    line=ACCEPTANCE.id,
    condition=lambda s: ticket_condition(s, THREE_DAYS, ticket_condition(s, DAY)),
    for_seconds=900.0,
    keeps=("sli",),
    summary="[service]: the acceptance SLO will not be kept at this rate",
    description=_BURN_TEXT,
    words=_words(THREE_DAYS),
    dashboard=Dashboard.ACCEPTANCE,
    means="At the rate of the last three days the SLO is missed at the end of its window.",
    when=_when(THREE_DAYS, DAY),
    confirm=_CONFIRM,
    causes=_CAUSES,
    actions=(
        *_ACTIONS,
        "If this traffic will stay, set a target that the pair can keep: "
        "`specbudget init --target [target] --drafter [drafter] --sidecar [sidecar]` proposes one.",
    ),
    off=_OFF_WHEN,
)

BURNS = (FAST_BURN, SLOW_BURN, BURN_DAY, BURN_THREE_DAYS)
