"""The overview: is anything wrong, in which line, of which service and replica, and is anything not known."""

from __future__ import annotations

from specbudget.catalog import series
from specbudget.catalog.alerts import Dashboard
from specbudget.catalog.alerts.burn import FAST_BURN
from specbudget.catalog.alerts.length import COLLAPSED
from specbudget.catalog.alerts.memory import ARTIFACTS_OVER, BELOW_FLOOR, PRESSURE
from specbudget.catalog.alerts.sidecar import CONFIG, DOWN, SOURCE_FAILING
from specbudget.catalog.alerts.staging import OVER_BUDGET, RECHECK, UNFIT
from specbudget.catalog.labels import SERVICE_LABEL
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, LINES, STAGING
from specbudget.catalog.promql import equals, none_of
from specbudget.catalog.recording import STEPS, Level
from specbudget.catalog.rule_settings import COLLAPSE_SECONDS
from specbudget.catalog.sets import CheckResult
from specbudget.domain.line_state import LineState
from specbudget.generate.dashboards import colours, house, panels
from specbudget.generate.dashboards.events import firing
from specbudget.generate.dashboards.layout import Section
from specbudget.generate.dashboards.ledger import ledger
from specbudget.generate.dashboards.links import dashboard_of, runbook, to, to_service
from specbudget.generate.dashboards.queries import (
    RATE,
    by,
    drafter_share,
    limit,
    line_states,
    occupancy,
    recorded_length,
    speculation,
    speculation_states,
    starts,
    state_now,
    used,
    worst_state,
)
from specbudget.generate.dashboards.replicas import replicas
from specbudget.generate.dashboards.view import REPLICA_LEGEND, View

OF_SERVICE = f"{{{{{SERVICE_LABEL}}}}}"


def sections(view: View) -> list[Section]:
    """The whole dashboard, from the ledger down to one row per line."""
    return [
        Section(panels=(lines_now(view), alerts_now(view), not_known(view), lines_then(view))),
        Section(title="Ledger", panels=(ledger(view),)),
        Section(title=f"{ACCEPTANCE.title}: {ACCEPTANCE.question}", panels=(lengths(view), burns(view))),
        Section(title=f"{KV.title}: {KV.question}", panels=(pools(view), cost(view), retractions(view))),
        Section(title="Replicas", panels=(replicas(view), speculating(view))),
        Section(title=f"{STAGING.title}: {STAGING.question}", panels=(cold_starts(view), outcomes(view)), folded=True),
        Section(title=f"{ARTIFACTS.title}: {ARTIFACTS.question}", panels=(on_disk(view), models_of(view)), folded=True),
        Section(
            title=f"{CODESIGN.title}: {CODESIGN.question}",
            panels=(rules(view), broken(view), rechecks(view)),
            folded=True,
        ),
    ]


def lines_now(view: View) -> house.Placed:
    """Five tiles: the worst state of each line."""
    queries = [
        house.Query(
            expr=state_now(view, line),
            legend=line.title,
            links=(to(dashboard_of(line.id), f"{line.title}: what, where, since when"),),
        )
        for line in LINES
    ]
    head = house.Head(
        title="The five lines now",
        reads=(
            "The worst state of each line over all services and replicas that are chosen. Breach: a limit is "
            "exceeded, a rule fails or a page condition holds. Unknown: budgeted, and nobody can say."
        ),
        good="five times ok. Unknown is not ok.",
        unit="none",
        width=house.FULL,
        height=5,
    )
    return panels.number(
        head, queries, thresholds=house.plain(colours.UNKNOWN), mappings=line_states(), background=True, named=True
    )


def lines_then(view: View) -> house.Placed:
    """When each line was in which state."""
    head = house.Head(
        title="The five lines over time",
        reads="The worst state of each line and service. A gap is a time of which no sidecar tells.",
        good="one colour from left to right.",
        unit="none",
        width=house.FULL,
        height=house.HIGH,
    )
    queries = [
        house.Query(expr=worst_state(view, SERVICE_LABEL, line=line), legend=f"{line.title} {OF_SERVICE}")
        for line in LINES
    ]
    return panels.states(head, queries, line_states())


def alerts_now(view: View) -> house.Placed:
    """What fires."""
    head = house.Head(
        title="Firing alerts",
        reads="What Prometheus says is firing now, pages before tickets. The service leads to its dashboards.",
        good="empty.",
        unit="none",
        empty="no alert fires",
        links=runbook(view, FAST_BURN, COLLAPSED),
        height=house.MIDDLE,
    )
    labels = ("severity", "alertname", SERVICE_LABEL, "line", *view.places, "pod", "instance", "source")
    lead = to_service(Dashboard.ACCEPTANCE, "Acceptance of this service", "${__data.fields.Service}")
    return panels.rows(
        head,
        [house.Query(expr=f"max{by(*labels)} ({firing(view)})")],
        {
            "severity": "Severity",
            "alertname": "Alert",
            SERVICE_LABEL: "Service",
            "line": "Line",
            **{label: label.capitalize() for label in view.places},
            "pod": "Pod",
            "instance": "Replica",
        },
        by_columns={
            "Severity": {
                **panels.background(),
                **panels.width(90),
                "mappings": house.named(
                    {
                        "page": ("page", colours.BREACH),
                        "ticket": ("ticket", colours.AT_RISK),
                        "info": ("info", colours.QUIET),
                    }
                ),
            },
            "Alert": panels.width(270),
            "Service": {"links": [lead]},
        },
    )


def not_known(view: View) -> house.Placed:
    """What no number above is about, because nobody can read it."""
    replica = view.replica
    seen = f"group{by(*replica, 'job')} (last_over_time({view.of(series.BUILD_INFO)}[1d]))"
    none = f"absent_over_time({view.of(series.BUILD_INFO)}[1d])"
    counted = f"group{by(*view.settings.labels)} ({view.of(series.VERIFY_STEPS)})"
    recorded = f"group{by(*view.settings.labels)} ({view.recorded(STEPS.at(Level.SERVICE, COLLAPSE_SECONDS))})"
    gone = f"{seen} and on (job, instance) (up == 0)"
    source = f"min{by(*replica, 'source')} ({view.of(series.SOURCE_UP)}) == 0"
    unknown = f"max{by(*replica, 'line')} ({view.of(series.LINE_STATE, equals('state', LineState.UNKNOWN))}) == 1"
    config = f"min{by(*replica)} ({view.of(series.CONFIG_RELOAD_OK)}) == 0"
    state = f"min{by(*replica)} ({view.of(series.STATE_SAVED)}) == 0"
    told = " or ".join(
        f'label_replace({expr}, "what", "{word}", "{label}", "(.*)")'
        for expr, word, label in (
            (none, "no sidecar within a day", ""),
            (gone, "sidecar does not answer", ""),
            (f"{counted} unless {recorded}", "no recorded series: rules not loaded?", ""),
            (source, "source $1 cannot be read", "source"),
            (unknown, "line $1 is unknown", "line"),
            (config, "new configuration refused", ""),
            (state, "state not saved", ""),
        )
    )
    head = house.Head(
        title="Unknown or down",
        reads=(
            "Sidecars that do not answer, sources that cannot be read, lines that are budgeted and not computable. "
            "No number elsewhere is about these, and alerts on them are silent. Here a row is 1 while it holds."
        ),
        good="empty.",
        unit="none",
        empty="all is known",
        links=runbook(view, DOWN, SOURCE_FAILING, CONFIG),
        height=house.MIDDLE,
    )
    return panels.rows(
        head,
        [house.Query(expr=told)],
        {
            "what": "What",
            SERVICE_LABEL: "Service",
            **{label: label.capitalize() for label in view.places},
            "pod": "Pod",
            "instance": "Replica",
        },
        by_columns={"What": {**panels.cell("color-text"), "color": house.fixed(colours.UNKNOWN), **panels.width(240)}},
    )


def lengths(view: View) -> house.Placed:
    """Acceptance length of each service against its target and break-even."""
    even = ACCEPTANCE.budget("break_even")
    head = house.Head(
        title="Acceptance length",
        reads=(
            "Tokens that one verify step emits, over 5 minutes. Dashed: the least that a good request reaches, and "
            "break-even, under which two models are slower than one."
        ),
        good="well above both dashed lines, and level.",
        unit="short",
        empty="unknown: no verify steps are counted",
        links=(to(Dashboard.ACCEPTANCE, "Whose requests, since when, and why"), *runbook(view, COLLAPSED)),
    )
    target = f"max by ({SERVICE_LABEL}, profile) ({view.of(series.ACCEPTANCE_TARGET)})"
    return panels.lines(
        head,
        [
            house.Query(expr=recorded_length(view, SERVICE_LABEL), legend=OF_SERVICE),
            house.Query(expr=target, legend=f"target {{{{profile}}}} {OF_SERVICE}", colour=colours.LIMIT, dashed=True),
            house.Query(
                expr=limit(view, ACCEPTANCE, even, SERVICE_LABEL),
                legend=f"break-even {OF_SERVICE}",
                colour=colours.REFERENCE,
                dashed=True,
            ),
        ],
        axis="tokens per verify step",
        least=1.0,
        decimals=2,
    )


def burns(view: View) -> house.Placed:
    """How near each service is to its pages."""
    head = house.Head(
        title="SLO burn against the page factors",
        reads=(
            "Burn ÷ factor of the fast and of the slow page: from 100 % on a page condition holds. The sidecar's own "
            "figure, the worst replica of each service."
        ),
        good="near 0.",
        unit="percentunit",
        empty="unknown: no SLO is budgeted, or no event is seen",
        links=(to(Dashboard.ACCEPTANCE, "How much of the error budget is left"), *runbook(view, FAST_BURN)),
    )
    queries = []
    for budget, name in ((ACCEPTANCE.budget("burn_fast"), "fast"), (ACCEPTANCE.budget("burn_slow"), "slow")):
        queries.append(house.Query(expr=used(view, ACCEPTANCE, budget, SERVICE_LABEL), legend=f"{name} {OF_SERVICE}"))
    queries.append(house.Query(expr="vector(1)", legend="page", colour=colours.LIMIT, dashed=True))
    return panels.lines(head, queries, most=1.0)


def pools(view: View) -> house.Placed:
    """How full the pools are against high water."""
    mark = KV.budget("high_water")
    head = house.Head(
        title="KV pools in use",
        reads=(
            "Used ÷ capacity of the fullest pool of each service; what running requests hold, without evictable "
            "cache. Dashed: high water."
        ),
        good="below the dashed line; above it requests are retracted or wait.",
        unit="percentunit",
        empty="unknown: the engine's metrics are not read",
        links=(to(Dashboard.MEMORY, "Which pool, which rank, what it costs"), *runbook(view, PRESSURE)),
        width=house.HALF,
    )
    return panels.lines(
        head,
        [
            house.Query(expr=occupancy(view, SERVICE_LABEL), legend=OF_SERVICE),
            house.Query(
                expr=limit(view, KV, mark, SERVICE_LABEL),
                legend=f"high water {OF_SERVICE}",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        most=1.0,
    )


def cost(view: View) -> house.Placed:
    """What the drafter's KV costs."""
    head = house.Head(
        title="The drafter takes",
        reads=(
            "Share of the tokens that the target could hold on this device which the drafter's KV takes instead. "
            "What the pair was budgeted with is the right value; a rise is a smaller target pool."
        ),
        good="the share that the plan says.",
        unit="percentunit",
        empty="unknown: no pool is read",
        links=(to(Dashboard.MEMORY, "Need, allocated and cost in tokens"), *runbook(view, BELOW_FLOOR)),
        width=house.QUARTER,
    )
    query = house.Query(expr=drafter_share(view, SERVICE_LABEL), legend=OF_SERVICE)
    return panels.number(head, [query], thresholds=house.plain(colours.DRAFTER), decimals=1)


def retractions(view: View) -> house.Placed:
    """Requests that lost their KV."""
    head = house.Head(
        title="Retractions",
        reads="Requests per second that lost their KV to others and start again.",
        good="none.",
        unit="reqps",
        empty="unknown: the engine's metrics are not read",
        links=runbook(view, PRESSURE),
        width=house.QUARTER,
    )
    expr = f"sum{by(SERVICE_LABEL)} (rate({view.of(series.KV_RETRACTIONS)}[{RATE}]))"
    return panels.lines(head, [house.Query(expr=expr, legend=OF_SERVICE)])


def speculating(view: View) -> house.Placed:
    """What speculation does on each replica."""
    head = house.Head(
        title="Speculation by replica",
        reads=(
            "Off: paid for and not used. Frozen: requests run and no counter moves. Capped: the engine verifies less "
            "than the window. A gap: the sidecar tells nothing."
        ),
        good="active; idle without traffic.",
        unit="none",
        links=(to(Dashboard.ACCEPTANCE, "Rank by rank"),),
        width=house.FULL,
    )
    query = house.Query(expr=speculation(view, *view.replica), legend=REPLICA_LEGEND)
    return panels.states(head, [query], speculation_states())


def cold_starts(view: View) -> house.Placed:
    """The latest start of each service against its budget."""
    budget = STAGING.budget("cold_start")
    head = house.Head(
        title="Cold start",
        reads="Seconds from the start of the process to the first generation of the latest start, the slowest replica.",
        good="below the dashed budget.",
        unit="s",
        empty="no start seen",
        links=(to(Dashboard.STARTUP, "Stage by stage"), *runbook(view, OVER_BUDGET)),
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"max{by(SERVICE_LABEL)} ({view.of(series.COLD_START)})", legend=OF_SERVICE),
            house.Query(
                expr=limit(view, STAGING, budget, SERVICE_LABEL),
                legend=f"budget {OF_SERVICE}",
                colour=colours.LIMIT,
                dashed=True,
            ),
        ],
        steps=True,
    )


def outcomes(view: View) -> house.Placed:
    """How starts ended."""
    head = house.Head(
        title="Starts in this time range",
        reads="Starts of engines by how they ended. Stuck: one that does not end.",
        good="ok only.",
        unit="short",
        empty="no start seen",
        links=(to(Dashboard.STARTUP, "Which start, which stage"),),
    )
    return panels.number(
        head,
        [house.Query(expr=starts(view, "$__range", "outcome"), legend="{{outcome}}")],
        thresholds=house.plain(colours.QUIET),
        named=True,
        decimals=0,
        overrides=house.coloured(colours.OF_OUTCOME),
    )


def on_disk(view: View) -> house.Placed:
    """Weights on disk against their budgets."""
    target, drafter = ARTIFACTS.budget("target"), ARTIFACTS.budget("drafter")
    head = house.Head(
        title="Weights on disk",
        reads="Loadable bytes of both checkpoints, by index and tensor headers. Dashed: their budgets.",
        good="each below its own dashed line.",
        unit="bytes",
        empty="unknown: a checkpoint cannot be read",
        links=runbook(view, ARTIFACTS_OVER),
    )
    return panels.lines(
        head,
        [
            house.Query(expr=f"max by (artifact) ({view.of(series.ARTIFACT_BYTES)})", legend="{{artifact}}"),
            house.Query(expr=limit(view, ARTIFACTS, target), legend="budget target", colour=colours.TARGET,
                        dashed=True),
            house.Query(expr=limit(view, ARTIFACTS, drafter), legend="budget drafter", colour=colours.DRAFTER,
                        dashed=True),
        ],
        steps=True,
        overrides=house.coloured(colours.OF_ARTIFACT),
    )  # fmt: skip


def models_of(view: View) -> house.Placed:
    """Which checkpoints the replicas serve."""
    labels = (SERVICE_LABEL, "artifact", "architecture", "dtype", "fingerprint")
    head = house.Head(
        title="Models in service",
        reads="Architecture, type and fingerprint of each checkpoint, and how many replicas have it.",
        good="one fingerprint per service and model.",
        unit="none",
        empty="unknown: a checkpoint cannot be read",
    )
    return panels.rows(
        head,
        [house.Query(expr=f"count{by(*labels)} ({view.of(series.ARTIFACT_INFO)})")],
        {
            SERVICE_LABEL: "Service",
            "artifact": "Model",
            "architecture": "Architecture",
            "dtype": "Type",
            "fingerprint": "Fingerprint",
            "Value": "Replicas",
        },
    )


def rules(view: View) -> house.Placed:
    """Co-design rules by result."""
    results: dict[str, str] = {CheckResult.PASS: colours.OK, CheckResult.WARN: colours.AT_RISK,
               CheckResult.FAIL: colours.BREACH, CheckResult.UNKNOWN: colours.UNKNOWN}  # fmt: skip
    head = house.Head(
        title="Co-design rules",
        reads="How many rules of target, drafter and engine pass, warn, fail, or cannot be judged.",
        good="no fail, and little that is unknown.",
        unit="short",
        links=runbook(view, UNFIT),
        width=house.THIRD,
    )
    return panels.number(
        head,
        [house.Query(expr=f"max by (result) ({view.of(series.CODESIGN_CHECKS)})", legend="{{result}}")],
        thresholds=house.plain(colours.QUIET),
        named=True,
        decimals=0,
        overrides=house.coloured(results),
    )


def broken(view: View) -> house.Placed:
    """The rules that fail or warn, by name."""
    chosen = view.of(series.CODESIGN_CHECK, none_of("result", (CheckResult.UNKNOWN,)))
    head = house.Head(
        title="Rules that do not pass",
        reads="`specbudget check --explain codesign.RULE` says what does not fit and why it matters.",
        good="empty.",
        unit="none",
        empty="no failing rule is told",
        links=runbook(view, UNFIT),
        width=house.THIRD,
    )
    return panels.rows(
        head,
        [house.Query(expr=f"max{by(SERVICE_LABEL, 'check', 'result')} ({chosen})")],
        {"result": "Result", "check": "Rule", SERVICE_LABEL: "Service"},
    )


def rechecks(view: View) -> house.Placed:
    """Plans that a change of the pair made old."""
    head = house.Head(
        title="Plans to make again",
        reads="1 where a model of the approved pair changed, so that what was planned with it is open again.",
        good="0 everywhere.",
        unit="none",
        empty="unknown: no budget.lock to compare with",
        links=runbook(view, RECHECK),
        width=house.THIRD,
    )
    due = [(0.0, "in force", colours.OK), (1.0, "due", colours.AT_RISK)]
    return panels.number(
        head,
        [house.Query(expr=f"max by (plan) ({view.of(series.RECHECK_DUE)})", legend="{{plan}}")],
        thresholds=house.plain(colours.UNKNOWN),
        mappings=house.words(due),
        named=True,
    )
