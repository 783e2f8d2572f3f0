"""What Prometheus and VictoriaMetrics make of the counters across kills and restarts is what the records say.

Two things are the servers' own and not the sidecar's. Prometheus's `increase` knows nothing of what was counted before
the first scrape and stretches what it saw to the ends of its window: so the window here begins with the first sample
and ends with the last, and nothing is left to stretch. VictoriaMetrics's `increase` is exact, and takes the first value
of a new series for an increase from 0. What a sidecar counted after its last scrape dies with it, as with any exporter,
where the next one has another identity; with the same identity it is shown after all.
"""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.prometheus_tools import Suite
from tests.serve.scraping_servers import Sample, Server, scraping, wait_for

pytestmark = pytest.mark.slow
Make = Callable[..., Any]

GOOD, BAD = (
    {"spec_num_correct_drafts": 20},
    {
        "spec_num_correct_drafts": 5,
        "spec_correct_drafts_histogram": [5, 5, 0, 0, 0],
    },
)
"""Ten steps of length 3.0 and of 1.5, where 2.6 is asked."""

EVENTS = "specbudget_slo_events_total"


class Traffic:
    """Writes records to a log and keeps count of them."""

    def __init__(self, log: Path, line: Callable[..., bytes]) -> None:
        log.parent.mkdir()
        self._log, self._line, self._rng = log, line, random.Random(1)
        self.written: Counter[str] = Counter()

    def write(self, count: int) -> None:
        """So many records, a third of them bad."""
        with self._log.open("ab") as out:
            for _ in range(count):
                verdict = "bad" if self._rng.random() < 1 / 3 else "good"
                out.write(self._line(f"{self.written.total():032d}", **(BAD if verdict == "bad" else GOOD)))
                self.written[verdict] += 1

    def write_for(self, seconds: float) -> threading.Thread:
        """Writes about 500 records a second beside what the test does."""

        def run() -> None:
            for _ in range(round(seconds / 0.02)):
                self.write(10)
                time.sleep(0.02)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


def increased(samples: list[Sample]) -> float:
    """By how much a counter grew from its first sample on; a fall is a restart from 0."""
    values = [value for _, value in samples]
    return sum(now - before if now >= before else now for before, now in itertools.pairwise(values))


def of_verdict(verdict: str) -> str:
    return f'{EVENTS}{{verdict="{verdict}"}}'


def seen(server: Server) -> dict[str, float]:
    """What a server has at last, by verdict."""
    found = {}
    for verdict in ("good", "bad"):
        series = server.samples(of_verdict(verdict))
        assert len(series) <= 1, "one target, one series"
        if series:
            found[verdict] = series[0][-1][1]
    return found


def shown(sidecar: Any) -> dict[str, float]:
    """What the page says now, by verdict."""
    verdicts = ("good", "bad")
    values = [sidecar.value("slo_events_total", sli="request", verdict=v, profile="default") for v in verdicts]
    return {verdict: value for verdict, value in zip(verdicts, values, strict=True) if value is not None}


def settled(sidecar: Any) -> dict[str, float]:
    """What the page says once it has moved and then stood still for three publishings."""
    wait_for("something is counted", lambda: sum(shown(sidecar).values()) > 0)
    before, now = {}, shown(sidecar)
    while before != now:
        time.sleep(3.0)
        before, now = now, shown(sidecar)
    return now


def until_scraped(servers: tuple[Server, ...], sidecar: Any, expected: dict[str, float]) -> None:
    """Waits until the page says this, and both servers have it."""
    wait_for(f"the page says {expected}", lambda: shown(sidecar) == expected)
    for server in servers:
        wait_for(f"{server.name} has {expected}", lambda one=server: seen(one) == expected)


@pytest.mark.parametrize("suite", [Suite.USUAL, Suite.NEWEST])
def test_both_servers_count_what_was_written_across_kills_and_identities(
    suite: Suite, serving: Make, budget_file: Make, record_line: Callable[..., bytes], tmp_path: Path
) -> None:
    """Killed under load, ended, away, and begun anew as another pod: every event once, good and bad."""
    traffic = Traffic(tmp_path / "requests" / "a.log", record_line)
    budget = budget_file()
    one = serving(budget, POD_UID="one")
    one.start()
    with scraping(f"127.0.0.1:{one.port}", tmp_path / "servers", suite) as servers:
        # before the first event, or Prometheus has nothing to see it grow from
        until_scraped(servers, one, {"good": 0, "bad": 0})
        for _ in range(3):
            writer = traffic.write_for(2.0)
            time.sleep(1.3)
            one.end(signal.SIGKILL)
            one.start()
            writer.join()
        first = Counter(traffic.written)
        until_scraped(servers, one, dict(first))
        assert one.end() == 0

        traffic.write(300)
        two = serving(budget, POD_UID="two")
        two.start()
        writer = traffic.write_for(2.0)
        time.sleep(1.3)
        two.end(signal.SIGKILL)
        two.start()
        writer.join()
        # the new identity counts from 0, what was written while nobody read included
        until_scraped(servers, two, dict(traffic.written - first))
        compared(servers, dict(traffic.written))


def compared(servers: tuple[Server, ...], truth: dict[str, int]) -> None:
    """Raw samples, `increase` over all of them, and the share of bad events, against the truth."""
    for server in servers:
        grown = {}
        for verdict, count in truth.items():
            (samples,) = server.samples(of_verdict(verdict))
            assert samples[0][1] == 0
            assert increased(samples) == count, server.name
            assert any(later < earlier for (_, earlier), (_, later) in itertools.pairwise(samples))
            begin, end = samples[0][0], samples[-1][0]
            window = round((end - begin) * 1000) + 1
            (answer,) = server.query(f"sum by (verdict) (increase({of_verdict(verdict)}[{window}ms]))", end)
            grown[verdict] = float(answer["value"][1])
            # one millisecond more than the samples span is all that is there to stretch
            assert grown[verdict] == pytest.approx(count, rel=2 / window), server.name
        bad = grown["bad"] / (grown["good"] + grown["bad"])
        assert bad == pytest.approx(truth["bad"] / sum(truth.values()), rel=1e-4), server.name


def test_what_no_scrape_saw_is_all_that_another_identity_loses(
    serving: Make, budget_file: Make, record_line: Callable[..., bytes], tmp_path: Path
) -> None:
    """Killed under load and followed by another pod: missing are at most the events between last scrape and kill."""
    traffic = Traffic(tmp_path / "requests" / "a.log", record_line)
    budget = budget_file()
    one = serving(budget, POD_UID="one")
    one.start()
    with scraping(f"127.0.0.1:{one.port}", tmp_path / "servers") as servers:
        until_scraped(servers, one, {"good": 0, "bad": 0})
        writer = traffic.write_for(4.0)
        time.sleep(3.3)
        last = shown(one)
        one.end(signal.SIGKILL)
        two = serving(budget, POD_UID="two")
        two.start()
        writer.join()
        ended = settled(two)
        until_scraped(servers, two, ended)
        for server in servers:
            for verdict, count in traffic.written.items():
                (samples,) = server.samples(of_verdict(verdict))
                scraped = max(value for _, value in samples[: _reset(samples)])
                assert last[verdict] - scraped >= 0
                assert increased(samples) == scraped + ended[verdict]
                # the page is made once a second, so that the kill came at most so much later than what it said
                assert 0 <= count - increased(samples) <= count - ended[verdict] - scraped
                assert count - ended[verdict] >= last[verdict]


def _reset(samples: list[Sample]) -> int:
    """The place of the first sample after the restart."""
    return next(place for place in range(1, len(samples)) if samples[place][1] < samples[place - 1][1])
