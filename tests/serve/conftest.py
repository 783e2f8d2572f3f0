"""Fixtures of the ingest path: `budget_file`, `record_line`, `serving` (a real process) and `free_port`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

RecordLine = Callable[..., bytes]


@pytest.fixture
def budget_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes `budget.yaml` for an engine that nobody runs; keywords add to or replace its sections."""

    def write(*, engine: dict[str, Any] | None = None, **sections: Any) -> Path:
        acceptance = {"target_length": 2.6, "objective": 0.95}
        document: dict[str, Any] = {
            "service": "chat",
            "engine": {"url": "http://127.0.0.1:9", "request_log": "requests", **(engine or {})},
            "budget": {"acceptance": acceptance},
            **sections,
        }
        path = tmp_path / "budget.yaml"
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.fixture
def record_line() -> RecordLine:
    """Makes a record's line: 10 steps that accept 20 of 70 drafts in 100 tokens; keywords replace or add keys."""

    def make(rid: str = "r", *, parameters: dict[str, Any] | None = None, **meta: Any) -> bytes:
        told = {
            "id": rid,
            "finish_reason": {"type": "stop", "matched": 2},
            "completion_tokens": 100,
            "dp_rank": 0,
            "spec_num_correct_drafts": 20,
            "spec_num_proposed_drafts": 70,
            "spec_verify_ct": 10,
            "spec_correct_drafts_histogram": [2, 2, 2, 2, 2],
            "request_finished_ts": time.time(),
            **meta,
        }
        text = json.dumps({"rid": rid, "text": "hello", **(parameters or {})})
        kept = {key: value for key, value in told.items() if value is not ...}
        return json.dumps({"request_parameters": text, **kept}).encode() + b"\n"

    return make


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass
class Serving:
    """`python -m specbudget serve` on one budget, state folder and port, started and ended as often as wanted."""

    budget: Path
    state: Path
    port: int
    output: Path
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> None:
        """Starts it; waits until it answers."""
        command = [
            sys.executable,
            "-m",
            "specbudget",
            "serve",
            "--budget",
            str(self.budget),
            "--state",
            str(self.state),
        ]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "--listen", f"127.0.0.1:{self.port}"],
                stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **self.env},
            )  # fmt: skip
        if wait:
            assert self.until(lambda: self.get("/-/ready") is not None), self.output.read_text()

    def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> bool:
        """Waits for a condition; False when it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return True
            time.sleep(0.02)
        return False

    def get(self, path: str, accept: str = "") -> str | None:
        """The body of one GET; None when nobody answers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float] | None:
        """/metrics as samples by name and labels; None when nobody answers."""
        text = self.get("/metrics")
        if text is None:
            return None
        families = text_string_to_metric_families(text)
        return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of the service; None when it is not there."""
        found = self.samples() or {}
        return found.get((f"specbudget_{name}", frozenset({"specbudget_service": "chat", **labels}.items())))

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signals it and waits; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(10)
        self.process = None
        return code


@pytest.fixture
def serving(tmp_path: Path, free_port: int) -> Iterator[Callable[..., Serving]]:
    """Makes `Serving` processes of a budget file; whatever still runs is killed in the end."""
    made: list[Serving] = []

    def make(budget: Path, **env: str) -> Serving:
        made.append(Serving(budget, tmp_path / "state", free_port, tmp_path / f"output-{len(made)}", env=env))
        return made[-1]

    yield make
    for one in made:
        if one.process is not None:
            with contextlib.suppress(ProcessLookupError):
                one.process.kill()
            one.process.wait(10)
