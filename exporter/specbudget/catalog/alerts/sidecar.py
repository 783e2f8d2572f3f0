"""Alerts on the sidecar itself: whether what all others read is true."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts.model import AlertDef, Dashboard, Severity
from specbudget.catalog.looks import (
    ENGINE_ANSWERS,
    ENGINE_NAMES,
    SERVER_LOG,
    SOURCE_FAULTS,
    SOURCES_DOWN,
    STATUS,
    Command,
    Query,
    grew,
    reads,
)
from specbudget.catalog.promql import Clause, Condition, Join, Joined, equals, matching, none_of, number, one_of
from specbudget.catalog.recording import BACKLOG_SECONDS
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import PREFIX, SERVICE_LABEL, SIDECAR, SeriesDef
from specbudget.catalog.sets import CHECKPOINT_SOURCES, HTTP_SOURCES, UNANSWERED, RecordOutcome, Source, Stage
from specbudget.words import percent, span

LOST = (RecordOutcome.MALFORMED, RecordOutcome.OVERSIZED)
LOST_SHARE = 0.01
LOST_RECORDS = 5

EXPECTED: tuple[SeriesDef, ...] = (
    series.SLO_EVENTS,
    series.VERIFY_STEPS,
    series.KV_POOL_CAPACITY_TOKENS,
    series.KV_POOL_USED_TOKENS,
    series.ENGINE_RUNNING,
)
"""Series without which other alerts fall silent. One counts as missing only where it was before."""


def _down(s: RuleSettings) -> Condition:
    """`up` knows nothing of services: the sidecars are those whose target told its service within a day."""
    target = ("job", "instance")
    kept = ", ".join((*s.replica, *(label for label in target if label not in s.replica)))
    seen = f"group by ({kept}) (last_over_time({s.of(series.BUILD_INFO)}[1d]))"
    return Condition(
        first=Clause(query=seen),
        rest=(Joined(join=Join.AND, on=target, part=Clause(query="up", op="==", bound="0")),),
        outer=f"count {s.by()}",
    )


def _unless_starting(s: RuleSettings) -> Joined:
    """An engine that starts does not answer yet, and that is no failure."""
    starting = Condition(
        first=Clause(query=s.of(series.STARTUP_STAGE_OFFSET)),
        rest=(
            Joined(
                join=Join.UNLESS,
                on=s.replica,
                part=Clause(query=s.of(series.STARTUP_STAGE_OFFSET, equals("stage", Stage.READY))),
            ),
        ),
    )
    return Joined(join=Join.UNLESS, on=s.replica, part=starting)


def _engine_down(s: RuleSettings) -> Condition:
    """No endpoint can be read, and not because of what is answered: an engine that answers errors is there."""
    up = s.of(series.SOURCE_UP, one_of("source", HTTP_SOURCES))
    unanswered = s.of(series.SOURCE_ERRORS, one_of("source", HTTP_SOURCES), one_of("reason", UNANSWERED))
    return Condition(
        first=Clause(query=f"max {s.by_replica()} ({up})", op="==", bound="0"),
        rest=(
            Joined(
                join=Join.AND,
                on=s.replica,
                part=Clause(query=f"sum {s.by_replica()} (increase({unanswered}[5m]))", op=">", bound="0"),
            ),
            _unless_starting(s),
        ),
    )


def _failing(s: RuleSettings) -> Condition:
    """Checkpoints have an alert of their own, and so has an engine that does not answer at all."""
    up = s.of(series.SOURCE_UP, none_of("source", CHECKPOINT_SOURCES))
    return Condition(
        first=Clause(query=f"min {s.by_replica('source')} ({up})", op="==", bound="0"),
        rest=(_unless_starting(s), Joined(join=Join.UNLESS, on=s.replica, part=_engine_down(s))),
        outer=f"count {s.by('source')}",
    )


def _lost(s: RuleSettings) -> Condition:
    lost = f"sum {s.by('source')} (increase({s.of(series.RECORDS, one_of('outcome', LOST))}[1h]))"
    every = f"sum {s.by('source')} (increase({s.of(series.RECORDS)}[1h]))"
    return Condition(
        first=Clause(query=f"{lost}\n/\n{every}", op=">", bound=number(LOST_SHARE)),
        rest=(
            Joined(join=Join.AND, on=(*s.labels, "source"), part=Clause(query=lost, op=">=", bound=str(LOST_RECORDS))),
        ),
    )


def _lagging(s: RuleSettings) -> Condition:
    lag = f"max {s.by('source')} ({s.of(series.SOURCE_LAG)})"
    return Condition(first=Clause(query=lag, op=">", bound=number(BACKLOG_SECONDS)))


def _is_zero(s: RuleSettings, gauge: SeriesDef) -> Condition:
    return Condition(
        first=Clause(query=f"min {s.by_replica()} ({s.of(gauge)})", op="==", bound="0"), outer=f"count {s.by()}"
    )


def _missing(s: RuleSettings) -> Condition:
    """Seen within a day and gone, while the target is up, the engine answers and tokens flow."""
    kept = (*s.replica, "series")

    def each(read: str) -> str:
        chosen = (
            f'group {s.by_replica("series")} (label_replace({read % s.of(one)}, "series", "{one.full_name}", "", ""))'
            for one in EXPECTED
        )
        return "(\n  " + "\n  or\n  ".join(chosen) + "\n)"

    tokens = f"sum {s.by_replica()} (increase({s.of(series.GENERATED_TOKENS)}[10m]))"
    answers = f"min {s.by_replica()} ({s.of(series.SOURCE_UP, equals('source', Source.METRICS))})"
    return Condition(
        first=Clause(query=each("last_over_time(%s[1d])")),
        rest=(
            Joined(join=Join.UNLESS, on=kept, part=Clause(query=each("%s"))),
            Joined(join=Join.AND, on=s.replica, part=Clause(query=s.of(series.BUILD_INFO))),
            Joined(join=Join.AND, on=s.replica, part=Clause(query=tokens, op=">", bound="0")),
            Joined(join=Join.AND, on=s.replica, part=Clause(query=answers, op="==", bound="1")),
        ),
        outer=f"count {s.by('series')}",
    )


_OURS = f'__name__=~"{PREFIX}.+"'

DOWN = AlertDef(
    name="SpecbudgetSidecarDown",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_down,
    reads_hours=True,
    for_seconds=300.0,
    summary="[service]: sidecars that cannot be scraped: [count]",
    description="Their targets are still discovered and do not answer. Of these replicas nothing is known.",
    dashboard=Dashboard.OVERVIEW,
    means="No alert sees these replicas.",
    when=lambda s: "A target that told of this service within a day cannot be scraped.",
    confirm=(
        Query(
            shows="Targets that cannot be scraped, of this service's jobs.",
            text=lambda s: f"up == 0 and on (job, instance) last_over_time({s.of(series.BUILD_INFO)}[1d])",
        ),
        Command(shows="Does the sidecar live? It prints healthy.", text="curl -sS [sidecar]/-/healthy"),
    ),
    causes=("the process ended: see its log", "TLS or a password that changed on one side", "the network"),
    actions=("Restart the sidecar; with --state it goes on where it was.",),
)

ENGINE_DOWN = AlertDef(
    name="SpecbudgetEngineDown",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_engine_down,
    for_seconds=600.0,
    keeps=("pod", "instance"),
    summary="[service]: the engine of {{ $labels.pod }} {{ $labels.instance }} does not answer",
    description=(
        "Connections to all of its endpoints are refused or time out, and it is not starting. The sidecar is there. "
        "Other tickets of this replica are silent meanwhile."
    ),
    dashboard=Dashboard.OVERVIEW,
    means="One engine has gone or hangs, and nothing has started it again: its replica serves nobody.",
    when=lambda s: (
        "No endpoint of a replica's engine can be read, connections were refused or timed out within 5 minutes, and "
        "the "
        "engine is not starting."
    ),
    confirm=(SOURCE_FAULTS, ENGINE_ANSWERS, SERVER_LOG),
    causes=(
        "the engine ended: out of memory, a crash, a rank that was lost",
        "the engine hangs so that not even its metrics are served",
        "engine.url of the budget names another address or port than the engine listens on",
    ),
    actions=(
        "Look at the last lines of the engine's log, and keep it.",
        "Restart the engine; take the replica out of traffic if nothing else does.",
        "If it runs and serves, correct engine.url.",
    ),
)

SOURCE_FAILING = AlertDef(
    name="SpecbudgetSourceFailing",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_failing,
    for_seconds=600.0,
    keeps=("source",),
    summary="[service]: source {{ $labels.source }} fails on [replicas]",
    description="The sidecar cannot read it. What only it tells is absent, and alerts on that are silent.",
    dashboard=Dashboard.OVERVIEW,
    means="An endpoint or a file of the engine does not answer while the engine is not starting.",
    when=lambda s: (
        "An endpoint or a file of an engine cannot be read, and not because the engine is starting or down as a whole."
    ),
    confirm=(SOURCES_DOWN, SOURCE_FAULTS, ENGINE_ANSWERS, STATUS),
    causes=("an API key that changed", "[no metrics]", "the engine answers with errors, or a file went away"),
    actions=("Look at the reason of the error.", "See whether the engine serves; restart it if not."),
)

RECORDS_LOST = AlertDef(
    name="SpecbudgetRecordsLost",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_lost,
    keeps=("source",),
    summary="[service]: [percent] of the lines of {{ $labels.source }} are not understood",
    description="Within an hour lines were malformed or too long: what they told is in no counter.",
    dashboard=Dashboard.OVERVIEW,
    means="The acceptance SLO and its counters miss some of the traffic.",
    when=lambda s: (
        f"Within an hour more than {percent(LOST_SHARE)} of the lines of a file were malformed or too long, and "
        f"{LOST_RECORDS} or "
        "more of them."
    ),
    confirm=(grew("Lines by what became of them.", series.RECORDS, "1h", by="source, outcome"),),
    causes=("a new engine version writes another format", "two engines write into one file", "a full disk"),
    actions=("Look at the newest lines without printing prompts: `tail -c 300 FILE`.", "Report the engine's version."),
)

LAGGING = AlertDef(
    name="SpecbudgetSourceLagging",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_lagging,
    for_seconds=600.0,
    keeps=("source",),
    summary="[service]: {{ $labels.source }} is read [count] s late",
    description="A backlog is not caught up with. Pages leave such a replica out until it is.",
    dashboard=Dashboard.OVERVIEW,
    means="What is shown is of the past.",
    when=lambda s: f"A file is read more than {span(BACKLOG_SECONDS)} late.",
    confirm=(
        reads("How late each file is read, in seconds.", series.SOURCE_LAG),
        reads("How much is still to be read.", series.SOURCE_BACKLOG),
    ),
    causes=("a first start on a large folder", "a sidecar with too little processor time", "storage that is slow"),
    actions=("Give the sidecar more processor time.", "Move old log files away."),
)

CONFIG = AlertDef(
    name="SpecbudgetConfigNotLoaded",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=lambda s: _is_zero(s, series.CONFIG_RELOAD_OK),
    for_seconds=300.0,
    summary="[service]: a new configuration is refused on [replicas]",
    description="The old one stays in force. The log names file, key and fix.",
    dashboard=Dashboard.OVERVIEW,
    means="A change of the budget or of the web configuration is not in force, and a restart would fail.",
    when=lambda s: "The latest reading of the budget or of the web configuration failed.",
    confirm=(
        reads("Which replicas refuse it.", series.CONFIG_RELOAD_OK, after=" == 0"),
        Command(shows="What is wrong: file, key and fix.", text="curl -sS -X POST [sidecar]/-/reload"),
    ),
    causes=("an unknown key, a size without a unit, a rule that is broken",),
    actions=("Mend the file; it is read again by itself.",),
)

STATE = AlertDef(
    name="SpecbudgetStateNotSaved",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=lambda s: _is_zero(s, series.STATE_SAVED),
    for_seconds=300.0,
    summary="[service]: positions and counters cannot be saved on [replicas]",
    description="Counters stand still until they can be saved; a restart would go back to what was saved last.",
    dashboard=Dashboard.OVERVIEW,
    means="The state folder cannot be written.",
    when=lambda s: "The latest attempt to save positions and counters failed.",
    confirm=(
        reads("Which replicas cannot save.", series.STATE_SAVED, after=" == 0"),
        Command(shows="Is the disk full? Give the folder of --state.", text="df -h /var/lib/specbudget"),
    ),
    causes=("a full disk", "a mount that became read-only"),
    actions=("Make room, or mount it again.",),
)

MISSING = AlertDef(
    name="SpecbudgetMetricMissing",
    severity=Severity.TICKET,
    line=SIDECAR,
    condition=_missing,
    reads_hours=True,
    for_seconds=600.0,
    keeps=("series",),
    summary="[service]: {{ $labels.series }} vanished on [replicas]",
    description="It was there within a day, the sidecar and the engine answer, tokens flow, and it is gone.",
    dashboard=Dashboard.OVERVIEW,
    means="Alerts and panels that read it are silent.",
    when=lambda s: (
        "A series that was there within a day is gone, while the sidecar is scraped, the engine answers and tokens "
        "flow."
    ),
    confirm=(
        Query(
            shows="How many samples of each series there are.",
            text=lambda s: f"count by (__name__) ({matching('', (_OURS, equals(SERVICE_LABEL, s.service)))})",
        ),
        ENGINE_NAMES,
    ),
    causes=("a new engine version renamed a metric", "a flag of the engine was dropped", "relabelling drops it"),
    actions=("Compare the engine's /metrics with the support table.", "Report the engine's version."),
)

SIDECAR_ALERTS = (DOWN, ENGINE_DOWN, SOURCE_FAILING, RECORDS_LOST, LAGGING, CONFIG, STATE, MISSING)
