"""Every recorded series, declared once: `level:specbudget_…:operation`.

Numerators and denominators are recorded apart at each level, so that whoever divides them gets a ratio of sums.
Levels: `replica` is one sidecar, `service` what an alert is about, `fleet` the service in all clusters and namespaces.
Names and meanings are kept as those of the exporter are: dashboards and people's own rules read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from specbudget.catalog import series
from specbudget.catalog.promql import Clause, Condition, duration, equals, inside, number
from specbudget.catalog.rule_settings import BREAK_EVEN_SECONDS, LENGTH_SECONDS, RuleSettings
from specbudget.catalog.series import PREFIX, SERVICE_LABEL, SeriesDef
from specbudget.catalog.sets import EventVerdict, Suspect

BACKLOG_SECONDS = 300.0
"""A replica whose events are older than this tells of the past: it is caught up with before anybody is woken."""


SELDOM_SECONDS = 120.0
"""How often rules over hours and days of samples are evaluated: they move slowly, and cost the server most."""


class Level(StrEnum):
    """At which level a series is recorded."""

    REPLICA = "replica"
    SERVICE = "service"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A counter whose increase is recorded: `name` in the recorded series, what is selected, the labels kept."""

    name: str
    counter: SeriesDef
    matchers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    meaning: str

    def at(self, level: Level, seconds: float) -> str:
        """The name of the series recorded at a level over a window."""
        return f"{level}:{PREFIX}{self.name}:increase{duration(seconds)}"

    def paging(self, seconds: float) -> str:
        """The name of the series that pages read."""
        return f"{Level.SERVICE}:{PREFIX}paging_{self.name}:increase{duration(seconds)}"

    def ticket(self, seconds: float) -> str:
        """The name of the series that tickets of the SLO read."""
        return f"{Level.SERVICE}:{PREFIX}ticket_{self.name}:increase{duration(seconds)}"


EVENTS = Quantity(name="slo_events", counter=series.SLO_EVENTS, labels=("sli",), meaning="valid events of the SLO")
BAD_EVENTS = Quantity(
    name="slo_bad_events",
    counter=series.SLO_EVENTS,
    matchers=(equals("verdict", EventVerdict.BAD),),
    labels=("sli",),
    meaning="bad events of the SLO",
)
STEPS = Quantity(name="verify_steps", counter=series.VERIFY_STEPS, meaning="verify steps")
ACCEPTED = Quantity(name="accepted_draft_tokens", counter=series.ACCEPTED_DRAFTS, meaning="accepted drafts")

EVENT_QUANTITIES = (EVENTS, BAD_EVENTS)
LENGTH_QUANTITIES = (STEPS, ACCEPTED)
QUANTITIES = (*EVENT_QUANTITIES, *LENGTH_QUANTITIES)

RUNNING = f"{PREFIX}engine_running_requests:avg{duration(BREAK_EVEN_SECONDS)}"
RUNNING_OF_REPLICA, RUNNING_OF_SERVICE = f"{Level.REPLICA}:{RUNNING}", f"{Level.SERVICE}:{RUNNING}"
BREAK_EVEN_OF_SERVICE = f"{Level.SERVICE}:{PREFIX}break_even_acceptance_length:avg{duration(BREAK_EVEN_SECONDS)}"
LENGTHS_OF_HOUR = f"{Level.SERVICE}:{PREFIX}request_acceptance_length_bucket:increase1h"
FROM_BOOT = f"{Level.REPLICA}:{PREFIX}bad_from_boot:last"


def held_back(seconds: float) -> str:
    """The name of the series that has a sample for each replica whose events do not page."""
    return f"{Level.REPLICA}:{PREFIX}held_back:last{duration(seconds)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDef:
    """One recorded series. `expr` is a query, or a condition where a comparison decides."""

    name: str
    expr: str | Condition
    meaning: str

    def text(self) -> str:
        """The query as PromQL."""
        return self.expr if isinstance(self.expr, str) else self.expr.text()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGroup:
    """Rules that are evaluated one after the other. `interval_seconds` None: as the server is set up."""

    id: str
    rules: tuple[RecordDef, ...]
    interval_seconds: float | None = None


def record_groups(s: RuleSettings) -> tuple[RecordGroup, ...]:
    """Every recorded series of a budget; without an SLO no event is recorded."""
    events = list(s.paging_event_windows)
    held = sorted(set(s.paging_windows.values()))
    lengths = sorted({*LENGTH_SECONDS, *events})
    guards = [row.long_seconds for row in s.tickets if row.long_seconds not in lengths]
    return tuple(
        group
        for group in (
            RecordGroup(id="replicas", rules=(_from_boot(s), *(_held_back(s, w) for w in held))),
            RecordGroup(
                id="acceptance",
                rules=(
                    *_increases(s, LENGTH_QUANTITIES, lengths),
                    *_increases(s, EVENT_QUANTITIES, events),
                    *(_paging(s, q, w) for q in LENGTH_QUANTITIES for w in s.paging_windows),
                    *(_paging(s, q, w) for q in EVENT_QUANTITIES for w in events),
                ),
            ),
            RecordGroup(id="break-even", rules=_break_even(s) if s.has_break_even else ()),
            RecordGroup(
                id="tickets",
                interval_seconds=SELDOM_SECONDS,
                rules=(
                    *((_lengths(s),) if s.pages else ()),
                    *_increases(s, EVENT_QUANTITIES, [w for w in s.ticket_windows if w not in events]),
                    *_increases(s, (STEPS,), guards),
                    *(_ticket(s, q, w) for q in EVENT_QUANTITIES for w in s.ticket_windows),
                    *(_ticket(s, STEPS, row.long_seconds) for row in s.tickets),
                ),
            ),
        )
        if group.rules
    )


def _increases(s: RuleSettings, quantities: tuple[Quantity, ...], windows: list[float]) -> tuple[RecordDef, ...]:
    """Increases of counters that live as long as their process, so that a restart loses and repeats nothing."""
    makers: tuple[tuple[Level, Callable[[Quantity, float], str]], ...] = (
        (
            Level.REPLICA,
            lambda q, w: f"sum {s.by_replica(*q.labels)} (increase({s.of(q.counter, *q.matchers)}[{duration(w)}]))",
        ),
        (Level.SERVICE, lambda q, w: f"sum {s.by(*q.labels)} ({q.at(Level.REPLICA, w)}{s.own})"),
        (
            Level.FLEET,
            lambda q, w: f"sum by ({', '.join((SERVICE_LABEL, *q.labels))}) ({q.at(Level.SERVICE, w)}{s.own})",
        ),
    )
    return tuple(
        RecordDef(name=q.at(level, w), expr=make(q, w), meaning=f"{q.meaning}, over {duration(w)}")
        for q in quantities
        for level, make in makers
        for w in windows
    )


def _without(s: RuleSettings, q: Quantity, window: float, left_out: str, name: str, meaning: str) -> RecordDef:
    """The sum over the replicas for which the series `left_out` has no sample."""
    counted = f"{q.at(Level.REPLICA, window)}{s.own}\nunless on ({', '.join(s.replica)}) {left_out}{s.own}"
    return RecordDef(
        name=name,
        expr=f"sum {s.by(*q.labels)} {inside(counted)}",
        meaning=f"{q.meaning}, over {duration(window)}, {meaning}",
    )


def _paging(s: RuleSettings, q: Quantity, window: float) -> RecordDef:
    held = held_back(s.paging_windows[window])
    return _without(s, q, window, held, q.paging(window), "of the replicas that may page")


def _ticket(s: RuleSettings, q: Quantity, window: float) -> RecordDef:
    return _without(s, q, window, FROM_BOOT, q.ticket(window), "but of replicas that were bad since their start")


def _from_boot(s: RuleSettings) -> RecordDef:
    suspect = s.of(series.ACCEPTANCE_SUSPECT, equals("cause", Suspect.FROM_BOOT))
    return RecordDef(
        name=FROM_BOOT,
        expr=Condition(first=Clause(query=f"max {s.by_replica()} ({suspect})", op="==", bound="1")),
        meaning="1 for a replica that never reached its target since the engine started",
    )


def _held_back(s: RuleSettings, window: float) -> RecordDef:
    """A replica that catches up with a backlog, or was bad since its start, which is a ticket of its own."""
    lag = s.of(series.SOURCE_LAG, equals("source", s.tail))
    suspect = s.of(series.ACCEPTANCE_SUSPECT, equals("cause", Suspect.FROM_BOOT))
    over = duration(window)
    return RecordDef(
        name=held_back(window),
        expr=Condition(
            first=Clause(
                query=f"max {s.by_replica()} (max_over_time({lag}[{over}]))", op=">", bound=number(BACKLOG_SECONDS)
            ),
            otherwise=(
                Condition(
                    first=Clause(query=f"max {s.by_replica()} (max_over_time({suspect}[{over}]))", op="==", bound="1")
                ),
            ),
        ),
        meaning=(
            f"there for a replica whose events do not page: within {over} it caught up with a backlog of more than "
            f"{number(BACKLOG_SECONDS)} s, or was bad since its start"
        ),
    )


def _lengths(s: RuleSettings) -> RecordDef:
    """Summed over days these stand for the increase over days, which would be read from every replica's buckets."""
    buckets = s.of(series.REQUEST_ACCEPTANCE_LENGTH, suffix="_bucket")
    return RecordDef(
        name=LENGTHS_OF_HOUR,
        expr=f"sum {s.by('profile', 'le')} (increase({buckets}[1h]))",
        meaning="requests by acceptance length, over 1h",
    )


def _break_even(s: RuleSettings) -> tuple[RecordDef, ...]:
    over = duration(BREAK_EVEN_SECONDS)
    running = f"{RUNNING_OF_REPLICA}{s.own}"
    on = f"on ({', '.join(s.replica)})"
    length = f"avg {s.by_replica()} (avg_over_time({s.of(series.BREAK_EVEN)}[{over}]))"
    weighted, weight = f"{length}\n* {on} {running}", f"{running}\nand {on} {length}"
    return (
        RecordDef(
            name=RUNNING_OF_REPLICA,
            expr=f"sum {s.by_replica()} (avg_over_time({s.of(series.ENGINE_RUNNING)}[{over}]))",
            meaning=f"running requests, mean over {over}",
        ),
        RecordDef(
            name=RUNNING_OF_SERVICE,
            expr=f"sum {s.by()} ({running})",
            meaning=f"running requests, mean over {over}",
        ),
        RecordDef(
            name=BREAK_EVEN_OF_SERVICE,
            expr=f"sum {s.by()} {inside(weighted)}\n/\nsum {s.by()} {inside(weight)}",
            meaning=f"break-even length over {over}; a replica counts by its running requests",
        ),
    )
