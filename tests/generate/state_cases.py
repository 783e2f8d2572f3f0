"""Rule tests of what is judged at all, of the pools, artifacts, starts, the pair and the sidecar."""

from __future__ import annotations

from generate.acceptance_cases import suspect, traffic
from generate.rule_cases import GONE, Case, Samples, grows, holds, name, up
from specbudget.catalog import series
from specbudget.catalog.alerts import memory, sidecar, speculation, staging
from specbudget.catalog.alerts.model import AlertDef
from specbudget.catalog.series import SeriesDef
from specbudget.catalog.sets import HTTP_SOURCES


def case(
    alert: AlertDef, says: str, samples: Samples, fires: int, *, at: str = "20m", once: bool = False, step: str = "1m"
) -> Case:
    evaluated = "10m" if step == "5m" else "1m"
    return Case(alert=alert, says=says, series=samples, expect={at: fires}, once=once, step=step, evaluated=evaluated)


def state(now: str, values: str, replica: str = "a") -> Samples:
    return {name(series.SPECULATION_STATE, replica, rank="0", state=now): values}


def records(per_minute: float, outcome: str = "ok", *, source: str = "request_log", count: int = 100) -> Samples:
    return {name(series.RECORDS, source=source, outcome=outcome): grows((count, per_minute))}


def counts(source: str) -> Samples:
    return {name(series.ACCEPTANCE_SOURCE_INFO, source=source): "1x100"}


STATES = (
    case(speculation.OFF, "off", state("off", "1x30"), 1, once=True),
    case(speculation.OFF, "active", state("off", "0x30") | state("active", "1x30"), 0),
    case(speculation.FROZEN, "frozen", state("frozen", "1x30"), 1, once=True),
    case(speculation.FROZEN, "idle", state("frozen", "0x30") | state("idle", "1x30"), 0),
    case(speculation.SUSPICIOUS, "text repeats itself", {suspect("repetition"): "1x30"}, 1, once=True),
    case(speculation.SUSPICIOUS, "a simulated length", {suspect("simulated"): "1x30"}, 1),
    case(speculation.SUSPICIOUS, "a length that cannot be", state("invalid", "1x30"), 1),
    case(speculation.SUSPICIOUS, "neither", {suspect("repetition"): "0x30"} | state("invalid", "0x30"), 0),
)


def covered(events: float, short: float, *, role: str = "unified", aborted: float = 0.0) -> Samples:
    return {
        name(series.SLO_EVENTS, sli="request", verdict="good", profile="default"): grows((400, events)),
        name(series.SLO_EXCLUDED, reason="few_tokens", profile="default"): grows((400, short)),
        name(series.SLO_EXCLUDED, reason="aborted", profile="default"): grows((400, aborted)),
        name(series.SLO_EXCLUDED, reason="no_speculation", profile="default"): grows((400, aborted)),
        name(series.ENGINE_INFO, engine="sglang", version="1", algorithm="x", role=role, moe_backend="x"): "1x400",
    }


COVERED = (
    case(speculation.COVERAGE, "two of five requests are judged", covered(0.3, 0.45), 1, at="395m", once=True),
    case(speculation.COVERAGE, "three of five", covered(0.6, 0.4), 0, at="395m"),
    case(speculation.COVERAGE, "160 requests in all", covered(0.18, 0.27), 0, at="395m"),
    case(speculation.COVERAGE, "a prefill engine", covered(0, 1, role="prefill"), 0, at="395m"),
    case(speculation.COVERAGE, "aborted ones say nothing", covered(0.6, 0.1, aborted=9), 0, at="395m"),
    case(speculation.COVERAGE, "the counters restart at 0", {
        key: grows((190, 0.6), (1, -1), (209, 0.6)) if "total" in key and "aborted" not in key else values
        for key, values in covered(0.6, 0.6).items()}, 0, at="395m"),
    case(speculation.COVERAGE, "scrapes are missing", {
        key: grows((200, 0.3 if "slo_events" in key else 0.9), (200, GONE)) if "total" in key else values
        for key, values in covered(0.3, 0.9).items()}, 0, at="570m"),
    case(speculation.COVERAGE, "speculation is off", covered(0.1, 0.9) | state("off", "1x400"), 0, at="395m"),
    case(speculation.COVERAGE, "speculation is on", covered(0.1, 0.9) | state("off", "0x400"), 1, at="395m"),
    case(speculation.COVERAGE, "idle", covered(0, 0), 0, at="395m"),
)  # fmt: skip

WORKS = state("active", "1x100")
SILENT = records(0) | counts("request_log")

RECORDED = (
    case(speculation.NO_RECORDS, "active and no record", WORKS | SILENT, 1, at="60m", once=True),
    case(speculation.NO_RECORDS, "records come", WORKS | records(0.02) | counts("request_log"), 0, at="60m"),
    case(speculation.NO_RECORDS, "another source counts", WORKS | records(0) | counts("metrics"), 0, at="60m"),
    case(speculation.NO_RECORDS, "idle", state("active", "0x100") | SILENT, 0, at="60m"),
    case(
        speculation.NO_RECORDS, "active three minutes of four", state("active", "1 1 1 0 " * 25) | SILENT, 0, at="60m"
    ),
)


def lengths(low: float, high: float, profile: str = "default") -> Samples:
    """Requests per sample with lengths of 4 to 4.5 and of 6 to 7."""
    below = {"4": 0.0, "4.5": low, "5": low, "6": low, "7": low + high, "+Inf": low + high}
    counter = series.REQUEST_ACCEPTANCE_LENGTH
    return {
        name(counter, suffix="_bucket", le=bound, profile=profile): grows((300, each)) for bound, each in below.items()
    } | {
        name(counter, suffix="_count", profile=profile): grows((300, low + high)),
        name(series.ACCEPTANCE_TARGET, profile=profile): "2.6x300",
    }


SURPLUS = (
    case(speculation.SURPLUS, "lengths from 6 where 2.6 is asked", lengths(0, 2), 1, at="24h", step="5m", once=True),
    case(speculation.SURPLUS, "lengths from 4", lengths(2, 0), 0, at="24h", step="5m"),
    case(speculation.SURPLUS, "one in five from 4", lengths(0.4, 1.6), 0, at="24h", step="5m"),
    case(speculation.SURPLUS, "400 requests", lengths(0, 400 / 288), 0, at="24h", step="5m"),
    case(speculation.SURPLUS, "idle", lengths(0, 0), 0, at="24h", step="5m"),
)

RETARGETED = tuple(
    Case(alert=speculation.RETARGETED, says=says, series={name(series.ACCEPTANCE_TARGET, profile="default"): values},
         expect=expect)
    for says, values, expect in (
        ("told for an hour", holds((90, 2.6), (120, 3.0)), {"80m": 0, "100m": 1, "160m": 0}),
        ("the same all along", holds((200, 2.6)), {"100m": 0}),
        ("a service is new", holds((90, None), (60, 2.6)), {"95m": 0, "140m": 0}),
    )
)  # fmt: skip


def used(line: str, budget: str, values: str, replica: str = "a") -> Samples:
    return {name(series.BUDGET_USED_RATIO, replica, line=line, budget=budget): values}


def pool(ratio: float, retracted: float = 0.0, queue: float = 0.0) -> Samples:
    """`queue` is by how much it grows per minute."""
    return used("kv", "high_water", holds((41, ratio))) | {
        name(series.KV_RETRACTIONS, rank="0"): grows((40, retracted)),
        name(series.ENGINE_QUEUED, rank="0"): grows((40, queue)),
    }


def sizes(values: str, replica: str = "a") -> Samples:
    return {name(series.KV_POOL_CAPACITY_TOKENS, replica, artifact="target", rank="0"): values}


def drafter(allocated: float, need: float) -> Samples:
    return {
        name(series.KV_POOL_CAPACITY_BYTES, artifact="drafter", rank="0"): f"{allocated}x60",
        name(series.KV_NEED_BYTES, artifact="drafter", basis="planned"): f"{need}x60",
        name(series.KV_NEED_BYTES, artifact="drafter", basis="block_floor"): "1x60",
    }


POOLS = (
    case(memory.PRESSURE, "full and retracting", pool(1.2, 0.03), 1, at="30m", once=True),
    case(memory.PRESSURE, "full and the queue grows", pool(1.2, 0, 6.5 / 15), 1, at="30m"),
    case(memory.PRESSURE, "full and nobody suffers", pool(1.2), 0, at="30m"),
    case(memory.PRESSURE, "full and the queue grows by four", pool(1.2, 0, 4 / 15), 0, at="30m"),
    case(memory.PRESSURE, "retracting below the mark", pool(0.8, 1, 1), 0, at="30m"),
    case(memory.PRESSURE, "idle", pool(0.0), 0, at="30m"),
    case(memory.PRESSURE, "the counter of retractions restarts", pool(1.2)
         | {name(series.KV_RETRACTIONS, rank="0"): "40x25 0x15"}, 0, at="30m"),
    case(memory.SHRANK, "a fifth less after a restart", sizes(holds((10, 100), (2, GONE), (30, 80))), 1),
    case(memory.SHRANK, "as large as before", sizes(holds((10, 100), (2, GONE), (30, 100))), 0),
    case(memory.SHRANK, "new pods with a fifth less", sizes(holds((290, 100), (100, GONE)))
         | sizes(holds((295, GONE), (100, 80)), "b"), 1, at="30h", step="5m"),
    case(memory.SHRANK, "new pods as large", sizes(holds((290, 100), (100, GONE)))
         | sizes(holds((295, GONE), (100, 100)), "b"), 0, at="30h", step="5m"),
    case(memory.SHRANK, "the smaller of two was not scraped a day ago", sizes(holds((68, 80), (6, GONE), (300, 80)))
         | sizes(holds((374, 100)), "b"), 0, at="30h", step="5m"),
    case(memory.FAR_ABOVE, "two and a half times the need", drafter(250, 100), 1, at="50m", once=True),
    case(memory.FAR_ABOVE, "one and a half times", drafter(160, 100), 0, at="50m"),
)  # fmt: skip


def spent(alert: AlertDef, line: str, budget: str, other: str) -> tuple[Case, ...]:
    return (
        case(alert, "over", used(line, budget, "1.2x30"), 1, once=True),
        case(alert, "within", used(line, budget, "0.8x30"), 0),
        case(alert, "another line", used(other, budget, "1.2x30"), 0),
    )


BUDGETS = (
    *spent(memory.POOL_OVER, "kv", "drafter", "artifacts"),
    *spent(memory.BELOW_FLOOR, "kv", "min_target_tokens", "acceptance"),
    *spent(memory.ARTIFACTS_OVER, "artifacts", "total", "kv"),
    case(memory.ARTIFACTS_OVER, "two budgets", used("artifacts", "total", "1.2x30")
         | used("artifacts", "image", "3x30"), 2),
)  # fmt: skip


def fingerprint(value: str, values: str) -> Samples:
    return {name(series.ARTIFACT_INFO, artifact="drafter", architecture="x", dtype="bf16", fingerprint=value): values}


def due(values: str, plan: str = "kv") -> Samples:
    return {name(series.RECHECK_DUE, plan=plan): values}


SWAPPED = fingerprint("one", holds((10, 1), (30, GONE))) | fingerprint("two", holds((10, GONE), (30, 1)))


def readable(source: str, values: str) -> Samples:
    return {name(series.SOURCE_UP, source=source): values}


ARTIFACTS = (
    case(memory.CHANGED, "swapped without a lock", SWAPPED, 1),
    case(memory.CHANGED, "swapped against the lock", SWAPPED | due("1x40"), 1),
    case(memory.CHANGED, "approved", SWAPPED | due("0x40"), 0),
    case(memory.CHANGED, "the same all along", fingerprint("one", "1x40"), 0),
    case(memory.INCOMPLETE, "a shard is missing", readable("drafter_checkpoint", "0x30"), 1, once=True),
    case(memory.INCOMPLETE, "whole", readable("drafter_checkpoint", "1x30"), 0),
    case(memory.INCOMPLETE, "the engine does not answer", readable("metrics", "0x30"), 0),
)


def starts(outcome: str, *phases: tuple[int, float]) -> Samples:
    return {name(series.STARTUPS, outcome=outcome): grows(*phases)}


def staged(mode: str = "prefetch", order: str = "target,drafter", warmup: str = "done") -> Samples:
    return {name(series.STAGING_INFO, mode=mode, order=order, warmup=warmup): "1x40"}


def stage(which: str, values: str = "1x40") -> Samples:
    return {name(series.STARTUP_STAGE_OFFSET, artifact="both", stage=which): values}


START = (
    case(staging.OVER_BUDGET, "one start", starts("over_budget", (30, 0), (1, 1), (60, 0)), 1, at="70m"),
    Case(alert=staging.OVER_BUDGET, says="a new replica counted its start before it was seen",
         series={name(series.STARTUPS, outcome="over_budget"): "1x120"}, expect={"20m": 1, "90m": 0}),
    Case(alert=staging.OVER_BUDGET, says="scrapes were missed an hour ago",
         series={name(series.STARTUPS, outcome="over_budget"): holds((20, 0), (80, 1), (12, GONE), (100, 1))},
         expect={"165m": 0, "170m": 0}),
    case(staging.OVER_BUDGET, "none", starts("over_budget", (90, 0)), 0, at="70m"),
    case(staging.OVER_BUDGET, "two hours ago", starts("over_budget", (10, 0), (1, 1), (150, 0)), 0, at="130m"),
    case(staging.OVER_BUDGET, "the sidecar restarted", starts("over_budget", (5, 0), (1, 1), (20, 0), (1, -1), (60, 0)),
         0, at="80m"),
    case(staging.STUCK, "in a load", starts("stuck", (10, 0), (1, 0.5), (30, 0)) | stage("load"), 1),
    case(staging.STUCK, "became ready after all", starts("stuck", (10, 0), (1, 0.5), (30, 0)) | stage("ready"), 0),
    case(staging.STUCK, "never", starts("stuck", (40, 0)) | stage("load"), 0),
    case(staging.FAILING, "two in an hour", starts("failed", (30, 0), (2, 1), (60, 0)), 1, at="70m"),
    case(staging.FAILING, "one", starts("failed", (30, 0), (1, 1.5), (60, 0)), 0, at="70m"),
    case(staging.UNPLANNED, "serial", staged(mode="serial"), 1, once=True),
    case(staging.UNPLANNED, "the drafter first", staged(order="drafter,target"), 1),
    case(staging.UNPLANNED, "as planned", staged(), 0),
    case(staging.UNPLANNED, "not known", staged(mode="unknown", order="unknown"), 0),
    case(staging.WARMUP_MISSING, "skipped", staged(warmup="skipped"), 1, once=True),
    case(staging.WARMUP_MISSING, "done", staged(), 0),
    case(staging.UNFIT, "a rule fails", {name(series.CODESIGN_CHECKS, result="fail"): "1x30"}, 1, once=True),
    case(staging.UNFIT, "a rule warns", {name(series.CODESIGN_CHECKS, result="fail"): "0x30",
         name(series.CODESIGN_CHECKS, result="warn"): "3x30"}, 0),
    case(staging.RECHECK, "due", due("1x30"), 1, once=True),
    case(staging.RECHECK, "not due", due("0x30"), 0),
)  # fmt: skip

THERE = {name(series.BUILD_INFO, version="0", pythonversion="3"): "1x60"}
LEFT = {name(series.BUILD_INFO, version="0", pythonversion="3"): holds((10, 1), (50, GONE))}


def lines(lost: float, every: float) -> Samples:
    """Lost and read lines per hour."""
    return records(lost / 60, "malformed") | records((every - lost) / 60)


def gauge(of: SeriesDef, values: str) -> Samples:
    return {name(of): values}


VANISHED = {name(series.KV_POOL_USED_TOKENS, artifact="target", rank="0"): holds((20, 1), (40, GONE))}
FLOWING = {name(series.GENERATED_TOKENS, rank="0", profile="default"): grows((60, 0.05))}
STOPPED = {name(series.GENERATED_TOKENS, rank="0", profile="default"): "5x60"}
ANSWERS, REFUSES = readable("metrics", "1x60"), readable("metrics", "0x60")
STEADY = traffic((60, 1, 0, 10))


def silent(replica: str = "a", **errors: float) -> Samples:
    """An engine none of whose endpoints can be read, and how many errors of each reason there are per minute."""
    return {name(series.SOURCE_UP, replica, source=source): "0x30" for source in HTTP_SOURCES} | {
        name(series.SOURCE_ERRORS, replica, source="metrics", reason=reason): grows((30, count))
        for reason, count in errors.items()
    }


ITSELF = (
    case(sidecar.DOWN, "does not answer", LEFT | {up(): holds((10, 1), (50, 0))}, 1, once=True, at="30m"),
    case(sidecar.DOWN, "answers", THERE | {up(): "1x60"}, 0),
    case(sidecar.DOWN, "scaled down", LEFT | {up(): holds((10, 1), (50, GONE))}, 0),
    case(sidecar.DOWN, "another job is down", {up("x"): "0x60"}, 0),
    case(sidecar.ENGINE_DOWN, "refuses everything, polled seldom", silent(refused=0.15), 1, once=True),
    case(sidecar.ENGINE_DOWN, "takes connections and says nothing", silent(timeout=2), 1),
    case(sidecar.ENGINE_DOWN, "answers errors", silent(http_status=2), 0),
    case(sidecar.ENGINE_DOWN, "wants another key", silent(unauthorized=2), 0),
    case(sidecar.ENGINE_DOWN, "one endpoint times out", silent(timeout=2) | readable("metrics", "1x30"), 0),
    case(sidecar.ENGINE_DOWN, "only a file is missing", {name(series.SOURCE_ERRORS, source="request_log",
         reason="timeout"): grows((30, 2))} | readable("request_log", "0x30"), 0),
    case(sidecar.ENGINE_DOWN, "while it starts", silent(refused=2) | stage("load"), 0),
    case(sidecar.ENGINE_DOWN, "after it was ready", silent(refused=2) | stage("load") | stage("ready"), 1),
    case(sidecar.ENGINE_DOWN, "on another replica", silent("b", refused=2) | stage("load"), 1),
    case(sidecar.SOURCE_FAILING, "refused", readable("metrics", "0x30"), 1, once=True),
    case(sidecar.SOURCE_FAILING, "refused after the start", readable("metrics", "0x30") | stage("load")
         | stage("ready"), 1),
    case(sidecar.SOURCE_FAILING, "the engine answers errors", silent(http_status=2), 3),
    case(sidecar.SOURCE_FAILING, "the engine is down", silent(refused=2), 0),
    case(sidecar.SOURCE_FAILING, "another engine is down", silent("b", refused=2) | readable("metrics", "0x30"), 1),
    case(sidecar.SOURCE_FAILING, "while the engine starts", readable("metrics", "0x30") | stage("load"), 0),
    case(sidecar.SOURCE_FAILING, "answers", readable("metrics", "1x30"), 0),
    case(sidecar.SOURCE_FAILING, "a checkpoint has an alert of its own", readable("target_checkpoint", "0x30"), 0),
    case(sidecar.RECORDS_LOST, "6 of 480 lines", lines(6, 480), 1, at="80m"),
    case(sidecar.RECORDS_LOST, "8 of 1000", lines(8, 1000), 0, at="80m"),
    case(sidecar.RECORDS_LOST, "4 of 300", lines(4, 300), 0, at="80m"),
    case(sidecar.RECORDS_LOST, "the counters restart at 0", {
        key: grows((40, 0.0 if "malformed" in key else 8), (1, -1), (40, 0.0 if "malformed" in key else 8))
        for key in lines(1, 2)}, 0, at="80m"),
    case(sidecar.RECORDS_LOST, "none", lines(0, 300), 0, at="80m"),
    case(sidecar.LAGGING, "400 s", {name(series.SOURCE_LAG, source="request_log"): "400x30"}, 1, once=True),
    case(sidecar.LAGGING, "250 s", {name(series.SOURCE_LAG, source="request_log"): "250x30"}, 0),
    case(sidecar.CONFIG, "refused", gauge(series.CONFIG_RELOAD_OK, "0x30"), 1, once=True),
    case(sidecar.CONFIG, "loaded", gauge(series.CONFIG_RELOAD_OK, "1x30"), 0),
    case(sidecar.STATE, "not saved", gauge(series.STATE_SAVED, "0x30"), 1, once=True),
    case(sidecar.STATE, "saved", gauge(series.STATE_SAVED, "1x30"), 0),
    case(sidecar.STATE, "no state folder", THERE, 0),
    case(sidecar.MISSING, "gone while tokens flow", VANISHED | FLOWING | ANSWERS | THERE, 1, at="50m", once=True),
    case(sidecar.MISSING, "there", STEADY | FLOWING | ANSWERS | THERE, 0, at="50m"),
    case(sidecar.MISSING, "gone while idle", VANISHED | STOPPED | ANSWERS | THERE, 0, at="50m"),
    case(sidecar.MISSING, "the target is down", VANISHED | FLOWING | ANSWERS | LEFT, 0, at="50m"),
    case(sidecar.MISSING, "the engine does not answer", VANISHED | FLOWING | REFUSES | THERE, 0, at="50m"),
    case(sidecar.MISSING, "never seen", FLOWING | ANSWERS | THERE, 0, at="50m"),
)  # fmt: skip

CASES = (
    *STATES, *COVERED, *RECORDED, *SURPLUS, *RETARGETED, *POOLS, *BUDGETS, *ARTIFACTS, *START, *ITSELF,
)  # fmt: skip
