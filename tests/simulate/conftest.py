"""Runs of the stand-in in virtual time, and the captured output of a real engine to hold it against."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specbudget.simulate.deployment import Deployment
from specbudget.simulate.exposition import render
from specbudget.simulate.process import Process
from specbudget.simulate.records import record
from specbudget.simulate.request import Request
from specbudget.simulate.scenarios import SCENARIOS, Scenario
from specbudget.simulate.truth import Truth

CAPTURED = Path(__file__).parent.parent / "fixtures" / "sglang"
STARTED = 1_795_968_000.0


@dataclass
class VirtualRun:
    """One life of the engine, driven by hand: `until(seconds)` after its start."""

    process: Process
    lines: list[tuple[float, str, str]] = field(default_factory=list)
    ended: list[Request] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    now: float = STARTED

    def until(self, seconds: float, *, cut: float = 0.25) -> VirtualRun:
        """Advance to `seconds` after the process start, in cuts."""
        end = STARTED + seconds
        while self.now < end:
            self.now = min(end, self.now + cut)
            self.process.advance(self.now)
        return self

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of all ended requests, through JSON as a reader sees them."""
        return [json.loads(json.dumps(record(request, request.rank))) for request in self.ended]

    @property
    def exposition(self) -> str:
        """The text of /metrics now."""
        return render(self.process.samples(self.now))

    def texts(self, beginning: str) -> list[str]:
        """Log texts that begin so, in order."""
        return [text for _, _, text in self.lines if text.startswith(beginning)]


@pytest.fixture(scope="session")
def virtual() -> Callable[..., VirtualRun]:
    """Makes a virtual run of a scenario, by name or declared in the test."""

    def make(
        scenario: str | Scenario, *, seed: int = 0, speed: float = 1.0, rate: float | None = None, life: int = 0
    ) -> VirtualRun:
        declared = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
        deployment = Deployment(scenario=declared, folder=Path("/srv/stand-in"), host="127.0.0.1", port=30000)
        run = VirtualRun(process=None)  # type: ignore[arg-type]

        def ended(request: Request) -> None:
            run.ended.append(request)
            run.truth.add(request)

        run.process = Process(
            deployment,
            seed=seed,
            life=life,
            speed=speed,
            requests_per_second=declared.requests_per_second if rate is None else rate,
            started=STARTED,
            first_ready=None,
            log=lambda when, text, prefix: run.lines.append((when, prefix, text)),
            ended=ended,
        )
        return run

    return make


@pytest.fixture(scope="session")
def seen(virtual: Callable[..., VirtualRun]) -> Callable[[str], VirtualRun]:
    """Forty seconds of a scenario by name, run once: for tests that only look."""
    runs: dict[str, VirtualRun] = {}

    def look(name: str) -> VirtualRun:
        if name not in runs:
            runs[name] = virtual(name).until(40)
        return runs[name]

    return look


@dataclass
class FamilyShape:
    """What an exposition says of one family."""

    type: str
    help: str
    labels: set[frozenset[str]] = field(default_factory=set)
    buckets: list[str] = field(default_factory=list)
    samples: dict[str, float] = field(default_factory=dict)


@pytest.fixture(scope="session")
def shapes() -> Callable[[str], dict[str, FamilyShape]]:
    """Reads exposition text into shapes by family name, strictly: a line that does not fit fails."""

    def read(text: str) -> dict[str, FamilyShape]:
        families: dict[str, FamilyShape] = {}
        name = ""
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name, _, words = line.removeprefix("# HELP ").partition(" ")
                families[name] = FamilyShape(type="", help=words)
            elif line.startswith("# TYPE "):
                families[name].type = line.split()[3]
            else:
                match = re.fullmatch(r"([a-z_:0-9]+)\{([^}]*)\} (\S+)", line)
                assert match is not None, line
                labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
                shape = families[name]
                if shape.type == "histogram":
                    bound = labels.pop("le", None)
                    if bound is not None and bound not in shape.buckets:
                        shape.buckets.append(bound)
                shape.labels.add(frozenset(labels))
                shape.samples[f"{match[1]}{{{match[2]}}}"] = float(match[3])
        return families

    return read


@pytest.fixture(scope="session")
def captured() -> Callable[[str], str]:
    """The text of a captured file, by its path under tests/fixtures/sglang."""
    return lambda name: (CAPTURED / name).read_text(encoding="utf-8")
