"""Rule tests of the acceptance line: burn rates and lengths."""

from __future__ import annotations

from generate.rule_cases import Case, Samples, grows, holds, name
from specbudget.catalog import series
from specbudget.catalog.alerts.burn import BURN_DAY, BURN_THREE_DAYS, FAST_BURN, SLOW_BURN
from specbudget.catalog.alerts.length import BAD_FROM_BOOT, BELOW_BREAK_EVEN, COLLAPSED, DECAYING, OUTLIER
from specbudget.catalog.alerts.model import AlertDef

Phase = tuple[int, float, float, float]
"""Samples, events per sample, share of bad ones, verify steps per sample."""


def traffic(*phases: Phase, replica: str = "a", length: float = 2.0, sli: str = "request") -> dict[str, str]:
    """Counters of a replica, with the suspect and the lag that pages look at."""
    return {
        name(series.SLO_EVENTS, replica, sli=sli, verdict="good", profile="default"): grows(
            *((n, events * (1 - bad)) for n, events, bad, _ in phases)
        ),
        name(series.SLO_EVENTS, replica, sli=sli, verdict="bad", profile="default"): grows(
            *((n, events * bad) for n, events, bad, _ in phases)
        ),
        name(series.VERIFY_STEPS, replica, rank="0", profile="default"): grows(*((n, s) for n, _, _, s in phases)),
        name(series.ACCEPTED_DRAFTS, replica, rank="0", profile="default"): grows(
            *((n, s * (length - 1)) for n, _, _, s in phases)
        ),
        suspect("from_boot", replica): holds((sum(n for n, *_ in phases) + 1, 0.0)),
    }


def suspect(cause: str, replica: str = "a") -> str:
    return name(series.ACCEPTANCE_SUSPECT, replica, cause=cause)


def lag(*phases: tuple[int, float], replica: str = "a") -> Samples:
    return {name(series.SOURCE_LAG, replica, source="request_log"): holds(*phases)}


def cut(samples: Samples, kept: int, gone: int) -> Samples:
    """The same with a gap of `gone` samples behind the first `kept`."""
    return {key: f"{_first(values, kept)} _x{gone}" for key, values in samples.items()}


def _first(values: str, kept: int) -> str:
    """The first samples of a series of one growing phase."""
    start, rest = values.split(" ", 1) if " " in values else ("", values)
    head, _, _ = rest.rpartition("x")
    return f"{start} {head}x{kept}".strip()


BAD = (75, 5.0, 0.75, 120.0)
"""Just enough to page: 25 events and 600 verify steps in five minutes, three of four events bad."""


def fast(says: str, samples: Samples, fires: int, *, once: bool = False, plain: bool = False, at: str = "70m") -> Case:
    return Case(alert=FAST_BURN, says=says, series=samples, expect={at: fires}, once=once, plain=plain, evaluated="2m")


FAST = (
    fast("three of four events bad in both windows", traffic(BAD), 1, once=True),
    fast("half of the hour's events bad", traffic((65, 5, 0.55, 120), (10, 5, 1.0, 120)), 0),
    fast("the last minutes are better", traffic((65, 5, 0.9, 120), (10, 5, 0.55, 120)), 0),
    fast("healthy", traffic((75, 5, 0.01, 120)), 0, plain=True),
    fast("the same ratio with 16 events in five minutes", traffic((75, 3.2, 0.75, 120)), 0),
    fast("the same ratio with 400 verify steps in five minutes", traffic((75, 5, 0.75, 80)), 0),
    fast("a night with four bad events", traffic((75, 4 / 60, 0.75, 40 / 60)), 0, plain=True),
    fast("idle after a bad hour", traffic((60, 5, 0.75, 120), (15, 0, 0, 0)), 0),
    fast("idle", traffic((75, 0, 0, 0)), 0, plain=True),
    fast("a backlog of days is caught up with", traffic(BAD) | lag((76, 400)), 0),
    fast("a small backlog does not hinder", traffic(BAD) | lag((76, 250)), 1),
    fast("a backlog that was caught up with long ago", traffic(BAD) | lag((40, 400), (36, 0)), 1),
    fast("bad since the start of the engine", traffic(BAD) | {suspect("from_boot"): "1x76"}, 0),
    fast("the counters restart at 0", traffic((40, 5, 0.75, 120), (1, -1, 0.75, -1), BAD), 1, at="80m"),
    fast("healthy, and the counters restart", traffic((40, 5, 0.01, 120), (1, -1, 0.01, -1), (40, 5, 0.01, 120)), 0),
    fast("scrapes are missing", cut(traffic(BAD), 50, 25), 0, plain=True),
    fast("one replica catches up, the other is bad", traffic(BAD) | lag((76, 0))
         | traffic((75, 50, 0.0, 900), replica="b") | lag((76, 9000), replica="b"), 1),
    fast("one replica of two was bad since its start", traffic((75, 5, 0.01, 120))
         | traffic((75, 50, 1.0, 900), replica="b") | {suspect("from_boot", "b"): "1x76"}, 0),
    Case(alert=FAST_BURN, says="an hour of good events is outweighed after forty minutes of bad ones",
         series=traffic((70, 5, 0.0, 120), (60, 5, 1.0, 120)), expect={"110m": 0, "116m": 1}, evaluated="2m",
         plain=True),
    fast("the step form works alike", traffic(BAD, sli="step"), 1, plain=True),
)  # fmt: skip

SLOW_BAD = (77, 4.25, 0.35, 100.0)
"""Samples are five minutes apart."""


def slow(says: str, samples: Samples, fires: int, *, once: bool = False, plain: bool = False, step: str = "5m") -> Case:
    return Case(
        alert=SLOW_BURN,
        says=says,
        series=samples,
        expect={"380m": fires},
        once=once,
        plain=plain,
        step=step,
        evaluated="5m",
    )


SLOWLY = (
    slow("a third of the events bad for six hours", traffic(SLOW_BAD), 1, once=True),
    slow("only the last half hour", traffic((69, 4.25, 0.20, 100), (8, 4.25, 0.35, 100)), 0),
    slow("better since half an hour", traffic((69, 4.25, 0.35, 100), (8, 4.25, 0.22, 100)), 0),
    slow("16 events in half an hour", traffic((77, 2.75, 0.35, 100)), 0),
    slow("400 verify steps in half an hour", traffic((77, 4.25, 0.35, 66)), 0),
    slow("the fast burn speaks", traffic((385, 5, 0.75, 120)), 0, step="1m"),
    slow("idle", traffic((77, 0, 0, 0)), 0, plain=True),
    slow("a backlog is caught up with", traffic(SLOW_BAD) | lag((78, 400)), 0, plain=True),
    slow("a small backlog does not hinder", traffic(SLOW_BAD) | lag((78, 250)), 1, plain=True),
    slow("bad since the start of the engine", traffic(SLOW_BAD) | {suspect("from_boot"): "1x78"}, 0),
    slow("scrapes are missing", cut(traffic(SLOW_BAD), 60, 17), 0, plain=True),
)

DAY = 144
"""Samples of a day, ten minutes apart."""


def day(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
    return Case(
        alert=BURN_DAY, says=says, series=samples, expect={"25h": fires}, once=once, step="10m", evaluated="30m"
    )


PER_DAY = (150, 25 / DAY, 0.18, 600 / DAY)

DAILY = (
    day("18 % of a day's events bad", traffic((150, 1, 0.18, 40)), 1, once=True),
    day("so few events that they just count", traffic(PER_DAY), 1),
    day("16 events in a day", traffic((150, 16 / DAY, 0.18, 600 / DAY)), 0),
    day("400 verify steps in a day", traffic((150, 25 / DAY, 0.18, 400 / DAY)), 0),
    day("only the last two hours", traffic((137, 1, 0.10, 40), (13, 1, 0.18, 40)), 0),
    day("better since two hours", traffic((137, 1, 0.18, 40), (13, 1, 0.11, 40)), 0),
    day("idle", traffic((150, 0, 0, 0)), 0),
    day("scrapes are missing", cut(traffic((150, 1, 0.18, 40)), 120, 30), 0),
    day("a backlog counts in tickets", traffic((150, 1, 0.18, 40)) | lag((151, 9000)), 1),
    day("bad since the start has a ticket of its own",
        traffic((150, 1, 0.18, 40)) | {suspect("from_boot"): "1x151"}, 0),
    day("the counters restart every hour", traffic(
        *(phase for _ in range(25) for phase in ((5, 1.0, 0.18, 40.0), (1, -1.0, 0.18, -1.0)))), 1),
)  # fmt: skip


def days(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
    return Case(
        alert=BURN_THREE_DAYS, says=says, series=samples, expect={"76h": fires}, once=once, step="30m", evaluated="1h"
    )


THREE = 152
"""Samples of three days and four hours, half an hour apart."""

THREE_DAILY = (
    days("6.5 % of three days' events bad", traffic((THREE, 1, 0.065, 40)), 1, once=True),
    days("so few events that they just count", traffic((THREE, 25 / 144, 0.065, 600 / 144)), 1),
    days("16 events in three days", traffic((THREE, 16 / 144, 0.065, 600 / 144)), 0),
    days("400 verify steps in three days", traffic((THREE, 25 / 144, 0.065, 400 / 144)), 0),
    days("only the last hours", traffic((139, 1, 0.036, 40), (13, 1, 0.065, 40)), 0),
    days("better since six hours", traffic((139, 1, 0.065, 40), (13, 1, 0.04, 40)), 0),
    days("the day's ticket speaks", traffic((THREE, 1, 0.18, 40)), 0),
    days("idle", traffic((THREE, 0, 0, 0)), 0),
)


def collapsed(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
    return Case(alert=COLLAPSED, says=says, series=samples, expect={"12m": fires}, once=once)


DOWN = (15, 5.0, 0.75, 120.0)

COLLAPSES = (
    collapsed("a length of 1.25", traffic(DOWN, length=1.25), 1, once=True),
    collapsed("a length of 1.6 is low and no collapse", traffic(DOWN, length=1.6), 0),
    collapsed("healthy", traffic((15, 5, 0, 120), length=4.6), 0),
    collapsed("16 events in five minutes", traffic((15, 3.2, 0.75, 120), length=1.25), 0),
    collapsed("400 verify steps in five minutes", traffic((15, 5, 0.75, 80), length=1.25), 0),
    collapsed("idle", traffic((15, 0, 0, 0), length=1.0), 0),
    collapsed("a backlog is caught up with", traffic(DOWN, length=1.25) | lag((16, 400)), 0),
    collapsed("the counters restart at 0",
              traffic((5, 9, 0.7, 200), (1, -1, 0.7, -1), (9, 9, 0.7, 200), length=1.25), 1),
    collapsed("scrapes are missing", cut(traffic(DOWN, length=1.25), 4, 11), 0),
    collapsed("steps without accepted drafts are not counted as refused", {
        key: values for key, values in traffic(DOWN, length=1.25).items() if "accepted" not in key}, 0),
)  # fmt: skip


def load(break_even: float, running: float, replica: str = "a") -> Samples:
    return {
        name(series.BREAK_EVEN, replica): f"{break_even}x60",
        name(series.ENGINE_RUNNING, replica, rank="0"): f"{running}x60",
    }


def below(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
    return Case(alert=BELOW_BREAK_EVEN, says=says, series=samples, expect={"50m": fires}, once=once)


BUSY = (55, 0.85, 0.5, 20.0)

BELOW = (
    below("2.2 where 2.6 would pay", traffic(BUSY, length=2.2) | load(2.6, 1.2), 1, once=True),
    below("3.2 where 2.6 would pay", traffic(BUSY, length=3.2) | load(2.6, 1.2), 0),
    below("nearly no load", traffic(BUSY, length=2.2) | load(2.6, 0.8), 0),
    below("16 events in half an hour", traffic((55, 0.55, 0.5, 20), length=2.2) | load(2.6, 1.2), 0),
    below("400 verify steps in half an hour", traffic((55, 0.85, 0.5, 13.3), length=2.2) | load(2.6, 1.2), 0),
    below("idle", traffic((55, 0, 0, 0)) | load(2.6, 0), 0),
    below("the busy replica counts most", traffic(BUSY, length=3.0) | load(2.0, 1) | load(4.0, 9, "b"), 1),
    below("a backlog is caught up with", traffic(BUSY, length=2.2) | load(2.6, 1.2) | lag((56, 400)), 0),
    below("the counters restart at 0",
          traffic((20, 2, 0.5, 50), (1, -1, 0.5, -1), (34, 2, 0.5, 50), length=2.2) | load(2.6, 1.2), 1),
    below("scrapes are missing", cut(traffic(BUSY, length=2.2), 30, 25) | load(2.6, 1.2), 0),
    below("break-even is not known", traffic(BUSY, length=2.2), 0),
)  # fmt: skip


def outlier(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
    return Case(alert=OUTLIER, says=says, series=samples, expect={"25m": fires}, once=once)


def pair(length: float, steps: float, other: float, of_other: float | None = None) -> Samples:
    beside = traffic((30, 1, 0, steps if of_other is None else of_other), replica="b", length=other)
    return traffic((30, 1, 0, steps), length=length) | beside


OUTLIERS = (
    outlier("half as long as the other", pair(2.0, 40, 4.0), 1, once=True),
    outlier("a little shorter than the other", pair(2.5, 40, 4.0), 0),
    outlier("400 verify steps", pair(2.0, 26, 4.0), 0),
    outlier("alone", traffic((30, 1, 0, 40), length=1.2), 0),
    outlier("idle beside one that works", pair(2.0, 0, 4.0, 40), 0),
    outlier("both restart", traffic((12, 1, 0, 60), (1, -1, 0, -1), (17, 1, 0, 60), length=2.0)
            | traffic((12, 1, 0, 60), (1, -1, 0, -1), (17, 1, 0, 60), replica="b", length=4.0), 1),
    outlier("both healthy and one restarts", traffic((12, 1, 0, 60), (1, -1, 0, -1), (17, 1, 0, 60), length=4.0)
            | traffic((30, 1, 0, 60), replica="b", length=4.0), 0),
    outlier("its scrapes are missing", cut(traffic((30, 1, 0, 40), length=2.0), 8, 22)
            | traffic((30, 1, 0, 40), replica="b", length=4.0), 0),
)  # fmt: skip


def suspected(alert: AlertDef, cause: str, other: str) -> tuple[Case, ...]:
    def case(says: str, samples: Samples, fires: int, *, once: bool = False) -> Case:
        return Case(alert=alert, says=says, series=samples, expect={"20m": fires}, once=once)

    return (
        case("named", {suspect(cause): "1x30", suspect(other): "0x30"}, 1, once=True),
        case("not named", {suspect(cause): "0x30"}, 0),
        case("another is named", {suspect(cause): "0x30", suspect(other): "1x30"}, 0),
        case("the sidecar is gone", {suspect(cause): "1x5 _x25"}, 0),
    )


CASES = (
    *FAST, *SLOWLY, *DAILY, *THREE_DAILY, *COLLAPSES, *BELOW, *OUTLIERS,
    *suspected(DECAYING, "decay", "mix"), *suspected(BAD_FROM_BOOT, "from_boot", "decay"),
)  # fmt: skip
