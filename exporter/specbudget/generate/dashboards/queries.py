"""Queries that several panels ask. Ratios are ratios of sums, and a divisor of 0 gives nothing instead of infinity."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import BudgetDef, LineDef, Unit
from specbudget.catalog.promql import duration, equals, number
from specbudget.catalog.recording import ACCEPTED, BAD_EVENTS, EVENTS, STEPS, Level
from specbudget.catalog.rule_settings import COLLAPSE_SECONDS
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import ROLLING_WINDOWS, SPECULATION_STATES, Artifact, Scope
from specbudget.domain.burn import BurnWindows
from specbudget.domain.line_state import LineState
from specbudget.generate.dashboards import colours
from specbudget.generate.dashboards.house import words
from specbudget.generate.dashboards.sdk import models
from specbudget.generate.dashboards.view import View

RATE = "$__rate_interval"
"""At least four scrapes, and no less than a point of the graph stands for."""

SMOOTH = "1m"
"""Least distance of two points where single requests would make a ratio jump."""

SEVERITY = (LineState.OK, LineState.UNKNOWN, LineState.AT_RISK, LineState.BREACH)
"""States from best to worst, as line_state() decides between budgets; their place is the number that panels show."""


def by(*labels: str) -> str:
    """Grouping; none for a single sum."""
    return f" by ({', '.join(labels)})" if labels else ""


def over(dividend: str, divisor: str) -> str:
    """A quotient that is absent where there is nothing to divide by."""
    return f"{dividend} / ({divisor} > 0)"


def quantile(share: float, buckets: str) -> str:
    """A quantile of buckets by `le`; absent, and not NaN, where nothing was observed."""
    return f"histogram_quantile({number(share)}, {buckets}) > 0"


def rate(view: View, one: SeriesDef, *labels: str, whole: bool = False, window: str = RATE) -> str:
    """A counter per second, summed."""
    return f"sum{by(*labels)} (rate({view.of(one, whole=whole)}[{window}]))"


def length(view: View, *labels: str, window: str = RATE) -> str:
    """Acceptance length of the requests that finished: 1 + accepted drafts ÷ verify steps."""
    accepted, steps = (rate(view, one, *labels, window=window) for one in (series.ACCEPTED_DRAFTS, series.VERIFY_STEPS))
    return f"1 + {over(accepted, steps)}"


def recorded_length(view: View, *labels: str, seconds: float = COLLAPSE_SECONDS) -> str:
    """Acceptance length of the replicas that are chosen, from the series that alerts read."""
    accepted, steps = (
        f"sum{by(*labels)} ({view.recorded(q.at(Level.REPLICA, seconds), view.replica_matcher)})"
        for q in (ACCEPTED, STEPS)
    )
    return f"1 + {over(accepted, steps)}"


def batch_length(view: View) -> str:
    """Length of batch reports: each replica's own ratio of sums, weighted by its verify steps, so a ratio of sums.

    Where no source counts steps, the mean over replicas.
    """
    label = next(name for name, seconds in ROLLING_WINDOWS.items() if seconds == COLLAPSE_SECONDS)
    rolling = view.of(series.ROLLING_ACCEPTANCE_LENGTH, equals("scope", Scope.BATCH), equals("window", label))
    of_replica = f"max{by(*view.replica)} ({rolling})"
    steps = f"(sum{by(*view.replica)} (rate({view.of(series.VERIFY_STEPS, whole=True)}[{label}])) > 0)"
    return f"sum ({of_replica} * {steps}) / sum ({steps} and {of_replica}) or avg ({rolling})"


def worst_state(view: View, *labels: str, line: LineDef | None = None) -> str:
    """The worst state of a line over replicas, by its place in SEVERITY."""
    only = () if line is None else (equals("line", line.id),)
    each = (f"{place} * {view.of(series.LINE_STATE, equals('state', s), *only)}" for place, s in enumerate(SEVERITY))
    return f"max{by(*labels)} ({' or '.join(each)})"


def state_now(view: View, line: LineDef) -> str:
    """The worst state of a line; unknown where a service was seen within a day and is silent, or nothing was seen."""
    unknown = SEVERITY.index(LineState.UNKNOWN)
    told = view.of(series.LINE_STATE, equals("state", LineState.OK), equals("line", line.id))
    silent = f"{unknown} + 0 * max by ({SERVICE_LABEL}) (last_over_time({told}[1d]))"
    return f"max ({worst_state(view, SERVICE_LABEL, line=line)} or {silent}) or vector({unknown})"


def line_states() -> list[models.ValueMapping]:
    """The words and colours of worst_state()."""
    return words((place, s.replace("_", " "), colours.OF_LINE_STATE[s]) for place, s in enumerate(SEVERITY))


def speculation(view: View, *labels: str) -> str:
    """What speculation does, by the state's place in its set: of several ranks the one that comes first."""
    each = (
        f"{place} * {view.of(series.SPECULATION_STATE, equals('state', s))}"
        for place, s in enumerate(SPECULATION_STATES)
    )
    return f"min{by(*labels)} (max{by(*view.replica, 'rank')} ({' or '.join(each)}))"


def speculation_states() -> list[models.ValueMapping]:
    """The words and colours of speculation()."""
    return words((place, s.replace("_", " "), colours.OF_SPECULATION[s]) for place, s in enumerate(SPECULATION_STATES))


def limit(view: View, line: LineDef, budget: BudgetDef, *labels: str) -> str:
    """The limit of a budget, the strictest of the replicas'."""
    strictest = "max" if budget.floor else "min"
    return f"{strictest}{by(*labels)} ({_side(view, series.BUDGET_LIMIT, line, budget)})"


def spent_of_worst(view: View, line: LineDef, budget: BudgetDef) -> str:
    """What the replica that is worst off has spent of a budget.

    By its used ratio: where each replica has a limit of its own, as the profiles' targets are, the least length need
    not be the worst.
    """
    worst = f"topk(1, max{by(*view.replica)} ({_used(view, line, budget)}))"
    return f"max ({_side(view, series.BUDGET_SPENT, line, budget)} and on ({', '.join(view.replica)}) {worst})"


def used(view: View, line: LineDef, budget: BudgetDef, *labels: str) -> str:
    """Used ratio of a budget, the worst of the replicas'."""
    return f"max{by(*labels)} ({_used(view, line, budget)})"


def _used(view: View, line: LineDef, budget: BudgetDef) -> str:
    return view.of(series.BUDGET_USED_RATIO, equals("line", line.id), equals("budget", budget.id))


def starts(view: View, over: str, *labels: str) -> str:
    """How many starts a time saw.

    A counter that is new counts from its first sample: a new replica's start lies before its first scrape, and an
    increase alone would tell of no start in a fleet whose replicas never start twice.
    """
    counter = view.of(series.STARTUPS)
    new = f"max_over_time({counter}[{over}]) unless {counter} offset {over}"
    return f"round(sum{by(*labels)} (({new}) or increase({counter}[{over}])))"


def _side(view: View, side: dict[Unit, SeriesDef], line: LineDef, budget: BudgetDef) -> str:
    return view.of(side[budget.unit], equals("line", line.id), equals("budget", budget.id))


def occupancy(view: View, *labels: str) -> str:
    """Used ÷ capacity of the KV pools in tokens, the fullest."""
    pool, capacity = view.of(series.KV_POOL_USED_TOKENS), view.of(series.KV_POOL_CAPACITY_TOKENS)
    return f"max{by(*labels)} ({over(pool, capacity)})"


def drafter_share(view: View, *labels: str) -> str:
    """Share of the tokens that the target could hold which the drafter takes."""
    cost = f"max{by(*labels)} ({view.of(series.KV_COST_TOKENS)})"
    kept = f"min{by(*labels)} ({view.of(series.KV_POOL_CAPACITY_TOKENS, equals('artifact', Artifact.TARGET))})"
    return f"{cost} / ({cost} + {kept})"


def burn_rate(view: View, row: BurnWindows, seconds: float) -> str:
    """How many times faster than allowed the error budget goes, as the page of this row reads it."""
    labels = view.settings.labels
    bad, events = (f"sum{by(*labels)} ({view.recorded(q.paging(seconds))})" for q in (BAD_EVENTS, EVENTS))
    allowed = f"(1 - max by ({SERVICE_LABEL}) ({view.of(series.SLO_OBJECTIVE, whole=True)}))"
    return f"{over(bad, events)} / on ({SERVICE_LABEL}) group_left () {allowed}"


def may_page(view: View, row: BurnWindows) -> str:
    """1 where the short window of a page has seen enough, 0 where traffic is too low to wake anybody."""
    s = view.settings
    events = f"sum{by(*s.labels)} ({view.recorded(EVENTS.paging(row.short_seconds))}) >= bool {s.guard_events}"
    verified = f"sum{by(*s.labels)} ({view.recorded(STEPS.paging(row.short_seconds))}) >= bool {s.guard_steps}"
    return f"min (({events}) * ({verified}))"


def _whole_window(view: View, name: str, function: str) -> str:
    """Over the SLO's window in steps of the shortest page window, which cover it without gap or overlap."""
    s = view.settings
    step = s.pages[0].short_seconds
    return f"{function}({view.recorded(name)}[{duration(s.slo_seconds)}:{duration(step)}])"


def budget_left(view: View, *labels: str) -> str:
    """Share of the error budget that is left over the SLO's window; below 0 it is overspent."""
    step = view.settings.pages[0].short_seconds
    bad, events = (
        f"sum{by(*labels)} ({_whole_window(view, q.at(Level.SERVICE, step), 'sum_over_time')})"
        for q in (BAD_EVENTS, EVENTS)
    )
    allowed = f"(1 - max{by(*labels)} ({view.of(series.SLO_OBJECTIVE, whole=True)}))"
    return f"1 - {over(bad, events)} / {allowed}"


def window_seen(view: View, *labels: str) -> str:
    """Share of the SLO's window of which there are events; a young service has seen little."""
    step = view.settings.pages[0].short_seconds
    counted = _whole_window(view, EVENTS.at(Level.SERVICE, step), "count_over_time")
    return f"max{by(*labels)} ({counted}) * {step:g} / {view.settings.slo_seconds:g}"
