"""A desk whose engine is a real HTTP server and whose clock a test turns, and /metrics as a reader sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.scripted_engine import Answer, ScriptedEngine

from specbudget.budget.reading import LoadedBudget, load_budget
from specbudget.catalog.series import PREFIX, SERVICE_LABEL
from specbudget.catalog.sets import Source
from specbudget.serve.collect import collect
from specbudget.serve.desk import Desk
from specbudget.serve.engine_loops import EngineLoops
from specbudget.serve.poll import read_once
from specbudget.serve.publish import render
from specbudget.sources.http import EngineHttp

STARTED = 1_796_000_000.0


def write_budget(folder: Path, url: str, **sections: Any) -> Path:
    """A budget file for an engine at `url`; `engine` adds to its section, others stand as given."""
    document = {"service": "chat", **sections, "engine": {"url": url, **sections.get("engine", {})}}
    path = folder / "budget.yaml"
    path.write_text(json.dumps(document))
    return path


class Page:
    """The samples of one text page, by name without prefix and labels without the service."""

    def __init__(self, text: bytes) -> None:
        self.text = text.decode()
        self._samples: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                labels = frozenset(item for item in sample.labels.items() if item[0] != SERVICE_LABEL)
                self._samples.setdefault(sample.name.removeprefix(PREFIX), {})[labels] = sample.value

    def value(self, name: str, **labels: str) -> float | None:
        """The sample of exactly these labels; None when it is not there."""
        return self._samples.get(name, {}).get(frozenset(labels.items()))

    def of(self, name: str, **labels: str) -> list[float]:
        """The values of all samples that have these labels."""
        wanted = set(labels.items())
        return [value for found, value in self._samples.get(name, {}).items() if wanted <= found]

    def state(self, name: str, **labels: str) -> str | None:
        """The state that is 1 in the set of these labels; None when the set is not there."""
        wanted, now_in = set(labels.items()), []
        for found, value in self._samples.get(name, {}).items():
            if wanted <= found and value == 1:
                now_in.append(dict(found)["state"])
        return now_in[0] if len(now_in) == 1 else None

    def label(self, name: str, label: str) -> list[str]:
        """The values that a label takes."""
        return sorted({dict(found)[label] for found in self._samples.get(name, {})})

    def __iter__(self) -> Iterator[tuple[str, frozenset[tuple[str, str]], float]]:
        """All samples."""
        return ((name, labels, value) for name, held in self._samples.items() for labels, value in held.items())


class PolledDesk:
    """The desk of a budget, and its three endpoints to be read when the test says."""

    def __init__(self, server: ScriptedEngine, folder: Path, **sections: Any) -> None:
        self.engine, self.now = server, STARTED
        self.loaded: LoadedBudget = load_budget(write_budget(folder, server.url, **sections))
        self.desk = Desk(self.loaded, STARTED)
        key_file = self.loaded.budget.engine.api_key_file
        self.http = EngineHttp(server.url, api_key_file=None if key_file is None else folder / key_file)
        self.loops = EngineLoops(self.desk, self.http, clock=lambda: self.now)

    async def poll(self, *sources: Source) -> None:
        """Reads endpoints once, all three unless named."""
        reads = {
            Source.METRICS: self.loops.read_metrics,
            Source.LOADS: self.loops.read_loads,
            Source.SERVER_INFO: self.loops.read_server_info,
        }
        for source in sources or reads:
            await read_once(self.desk.health[source], self.desk.ledger, reads[source], clock=lambda: self.now)

    async def read(self, metrics: bytes | str, *, after: float = 0.0) -> None:
        """Turns the clock on and reads /metrics with that body."""
        self.now += after
        body = metrics if isinstance(metrics, bytes) else metrics.encode()
        self.engine.answers["/metrics"] = Answer(body)
        await self.poll(Source.METRICS)

    async def see(self, metrics: bytes | str, *, after: float = 0.0) -> Page:
        """Turns the clock on, reads /metrics with that body, and renders."""
        await self.read(metrics, after=after)
        return self.page()

    def page(self) -> Page:
        """/metrics as of now."""
        return Page(render(collect(self.desk, self.now)).text)
