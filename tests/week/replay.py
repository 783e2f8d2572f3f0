"""Back-fills a week into VictoriaMetrics and has vmalert replay the generated files over it, `for` and all.

Replay runs each rule over the whole week before the next, so that rules are replayed in the order in which one reads
the other: first those that read pages only, then those that read these. Annotations are left out: in replay vmalert
knows no `query` in a text.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tests.prometheus_tools import Suite, tool

from week.calendar import DAY, DAYS, MONDAY
from week.expected import INTERVAL, Firing
from week.pages import Sampled
from week.replica import TIMES

PATIENCE = 60.0
AT_ONCE = 40
"""Series in one request of the import."""

Rule = Mapping[str, Any]


@dataclass(frozen=True)
class Store:
    """A VictoriaMetrics of the test's own."""

    url: str
    folder: Path
    suite: Suite

    def fill(self, samples: Iterable[Sampled]) -> None:
        """Imports a week's samples."""
        stamps = ((MONDAY + TIMES) * 1000).astype(np.int64)
        lines: list[str] = []
        for one in samples:
            there = ~np.isnan(one.values)
            metric = {"__name__": one.name, **one.labels}
            values, times = one.values[there].tolist(), stamps[there].tolist()
            lines.append(json.dumps({"metric": metric, "values": values, "timestamps": times}))
            if len(lines) == AT_ONCE:
                self._ask("/api/v1/import", "\n".join(lines).encode())
                lines.clear()
        self._ask("/api/v1/import", "\n".join(lines).encode())
        self.flush()

    def flush(self) -> None:
        """Makes everything that was written readable."""
        self._ask("/internal/force_flush")

    def replay(self, files: Sequence[Path]) -> None:
        """Replays the rules of the files over the week."""
        groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
        for number, stage in enumerate(stages(groups)):
            rules = self.folder / f"stage-{number}.yml"
            rules.write_text(json.dumps({"groups": stage}))
            self._vmalert(rules)
            self.flush()

    def _vmalert(self, rules: Path) -> None:
        begin, end = (datetime.fromtimestamp(MONDAY + x, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for x in (0, DAYS * DAY))
        command = [
            str(tool("vmalert", self.suite)),
            f"-rule={rules}",
            f"-datasource.url={self.url}",
            f"-remoteWrite.url={self.url}",
            "-remoteWrite.flushInterval=100ms",
            f"-evaluationInterval={INTERVAL:.0f}s",
            f"-replay.timeFrom={begin}",
            f"-replay.timeTo={end}",
            "-replay.maxDatapointsPerQuery=11000",
            "-replay.rulesDelay=0s",
            "-replay.disableProgressBar",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        told = done.stdout + done.stderr
        assert done.returncode == 0, told[-2000:]
        assert re.search(r"(generated|Imported) \d+ samples", told), told[-2000:]

    def firing(self) -> Firing:
        """When which alert fired, by name: each span's first and last evaluation."""
        query = {
            "query": 'max by (alertname) (ALERTS{alertstate="firing"})',
            "start": MONDAY,
            "end": MONDAY + DAYS * DAY,
            "step": INTERVAL,
        }
        found: dict[str, list[tuple[float, float]]] = {}
        for one in json.loads(self._ask(f"/api/v1/query_range?{urllib.parse.urlencode(query)}"))["data"]["result"]:
            times = np.array([float(stamp) - MONDAY for stamp, _ in one["values"]])
            # groups that are evaluated every two minutes leave every other minute to what was written before
            breaks = np.flatnonzero(np.diff(times) > 3 * INTERVAL)
            firsts, lasts = times[np.concatenate([[0], breaks + 1])], times[np.concatenate([breaks, [len(times) - 1]])]
            found[one["metric"]["alertname"]] = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
        return found

    def names(self) -> set[str]:
        """Names of all series."""
        span = urllib.parse.urlencode({"start": MONDAY, "end": MONDAY + DAYS * DAY})
        return set(json.loads(self._ask(f"/api/v1/label/__name__/values?{span}"))["data"])

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.url + path, data=body)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return bytes(answer.read())


def stages(groups: Sequence[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The groups' rules, those first that read only pages, then those that read only rules before them."""
    left = {(g["name"], place): rule for g in groups for place, rule in enumerate(g["rules"])}
    recorded = {rule["record"] for rule in left.values() if "record" in rule}
    done: set[str] = set()
    while left:
        ripe = {key: rule for key, rule in left.items() if _reads(rule) & recorded <= done}
        assert ripe, "rules read each other"
        yield [
            {
                **{key: value for key, value in g.items() if key != "rules"},
                "rules": [_plain(rule) for (name, _), rule in ripe.items() if name == g["name"]],
            }
            for g in groups
            if any(name == g["name"] for name, _ in ripe)
        ]
        done |= {rule["record"] for rule in ripe.values() if "record" in rule}
        left = {key: rule for key, rule in left.items() if key not in ripe}


def _reads(rule: Rule) -> set[str]:
    return set(re.findall(r"[a-z]+:specbudget_\w+:\w+", rule["expr"]))


def _plain(rule: Rule) -> dict[str, Any]:
    return {key: value for key, value in rule.items() if key != "annotations"}


@contextmanager
def store(folder: Path, suite: Suite = Suite.USUAL) -> Iterator[Store]:
    """Runs VictoriaMetrics until the block ends."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    command = [
        str(tool("victoria-metrics", suite)),
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-retentionPeriod=100y",
        "-search.latencyOffset=0s",
        "-search.disableCache",
        "-search.maxPointsPerTimeseries=40000",
    ]
    with (folder / "victoria-metrics.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "GOMAXPROCS": "2"})
    try:
        end = time.monotonic() + PATIENCE
        while not _answers(url):
            assert process.poll() is None, (folder / "victoria-metrics.log").read_text()[-2000:]
            assert time.monotonic() < end, "VictoriaMetrics does not begin to answer"
            time.sleep(0.05)
        yield Store(url, folder, suite)
    finally:
        process.kill()
        process.wait(10)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
