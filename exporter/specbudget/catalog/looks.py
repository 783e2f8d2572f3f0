"""What to look at when an alert fires: queries for Prometheus and commands for a shell, each with what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specbudget.catalog import series
from specbudget.catalog.promql import equals, none_of
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import CheckResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """PromQL of the budget's own service, ready to paste."""

    shows: str
    text: Callable[[RuleSettings], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line for a shell on the replica.

    Marks stand for what the budget knows: [sidecar] and [engine] for addresses, [curl] for a request with the
    engine's key and [curl open] for one without, [budget] [request log] [server log] [target] [drafter] for paths, and
    those of `EngineWords.marks`.
    """

    shows: str
    text: str


Look = Query | Command


def reads(shows: str, *of: SeriesDef, matchers: tuple[str, ...] = (), by: str = "", after: str = "") -> Query:
    """A query of the latest samples of a series: all of them, or the largest by some labels."""
    (one,) = of

    def text(s: RuleSettings) -> str:
        selector = s.of(one, *matchers)
        return (f"max by ({by}) ({selector})" if by else selector) + after

    return Query(shows=shows, text=text)


def grew(shows: str, one: SeriesDef, window: str, *, by: str, after: str = "") -> Query:
    """A query of how much a counter grew."""
    return Query(shows=shows, text=lambda s: f"sum by ({by}) (increase({s.of(one)}[{window}])){after}")


def length_query(s: RuleSettings, by: str, window: str) -> str:
    """The acceptance length as a ratio of sums."""
    accepted, steps = s.of(series.ACCEPTED_DRAFTS), s.of(series.VERIFY_STEPS)
    return f"1 + sum by ({by}) (rate({accepted}[{window}]))\n/ sum by ({by}) (rate({steps}[{window}]))"


BY_REPLICA = "pod, instance"

LENGTH_BY_REPLICA = Query(
    shows="The length of each replica. One is low: that replica. All are low: the pair, the engine or the traffic.",
    text=lambda s: f"sort({length_query(s, BY_REPLICA, '5m')})",
)
LENGTH_BY_PROFILE = Query(
    shows="The length of each profile. One is low: its traffic.",
    text=lambda s: f"sort({length_query(s, 'profile', '5m')})",
)
VERDICTS = grew("Good and bad events of the last hour, by profile.", series.SLO_EVENTS, "1h", by="verdict, profile")
SUSPECTS = reads(
    "The likely causes that the sidecars name.",
    series.ACCEPTANCE_SUSPECT,
    by="cause",
    after=" == 1",
)
BROKEN_RULES = reads(
    "The co-design rules that the pair breaks.",
    series.CODESIGN_CHECK,
    matchers=(equals("result", CheckResult.FAIL),),
    by="check",
)
SPECULATION = reads("What speculation is doing, by replica and rank.", series.SPECULATION_STATE, after=" == 1")
RUNNING = Query(
    shows="Running requests by replica.", text=lambda s: f"sum by ({BY_REPLICA}) ({s.of(series.ENGINE_RUNNING)})"
)
FINGERPRINTS = reads("The models that each replica has on disk, by fingerprint.", series.ARTIFACT_INFO)
ENGINES = reads("The engine of each replica, with its version and algorithm.", series.ENGINE_INFO)
KV_RATIOS = Query(
    shows="What the KV budgets are used; above 1 is over.",
    text=lambda s: f"sort_desc({s.of(series.BUDGET_USED_RATIO, equals('line', 'kv'))})",
)
POOL_TOKENS = reads("Tokens that the pools hold.", series.KV_POOL_CAPACITY_TOKENS)
POOL_BYTES = reads("Bytes of the pools, per device.", series.KV_POOL_CAPACITY_BYTES)
COST_TOKENS = Query(
    shows="What the drafter costs, in tokens that the target's pool would hold more without it.",
    text=lambda s: f"max({s.of(series.KV_COST_TOKENS)})",
)
SOURCES_DOWN = reads("Sources that fail now.", series.SOURCE_UP, after=" == 0")
SOURCE_FAULTS = Query(
    shows="Why: reasons of the last hour.",
    text=lambda s: f"sum by (source, reason) (increase({s.of(series.SOURCE_ERRORS)}[1h])) > 0",
)
STAGES = Query(
    shows="Seconds of each stage of the latest start, the longest first.",
    text=lambda s: f"sort_desc({s.of(series.STARTUP_STAGE_DURATION)})",
)
STAGED = reads("How each replica was staged.", series.STAGING_INFO)
OUTCOMES = grew("How the starts of a day ended.", series.STARTUPS, "1d", by="outcome")
LINES_NOT_OK = reads(
    "The lines that are not ok, by replica.", series.LINE_STATE, matchers=(none_of("state", ("ok",)),), after=" == 1"
)
USED_RATIOS = Query(
    shows="Every budget that is spent, the fullest first: above 1 is over, above 0.9 at risk.",
    text=lambda s: f"sort_desc(max by (line, budget) ({s.of(series.BUDGET_USED_RATIO)}))",
)

STATUS = Command(
    shows="All lines of this replica with the evidence for each cause, in words.",
    text="curl -sS [sidecar]/api/v1/status",
)
CHECK = Command(
    shows="What does not pass, and what to do about it.", text="specbudget check --budget [budget] --verbose"
)
ENGINE_ANSWERS = Command(shows="Does the engine answer? It prints 200.", text="[answers]")
ENGINE_LENGTH = Command(shows="What the engine itself says of its acceptance.", text="[length]")
ENGINE_NAMES = Command(shows="How many series the engine has under the names that are read.", text="[names]")
ENGINE_ALGORITHM = Command(shows="What the engine says of its drafter.", text="[is off]")
SERVER_LOG = Command(shows="The end of the engine's log.", text="tail -n 50 [server log]")
