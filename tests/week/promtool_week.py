"""The week as a rule test of promtool: Prometheus's own rule engine, with groups in their order and every `for`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from tests.prometheus_tools import Suite, tool

from specbudget.catalog.alerts import ALERTS
from week.calendar import DAY, DAYS, MINUTE, STEP, Floats
from week.expected import INTERVAL, Span
from week.pages import Sampled

PATIENCE = 5 * 3600.0
EVERY = 2
"""Each second scrape is kept: a minute between samples halves what promtool has to keep in memory."""

Probe = dict[str, Any]


def written(folder: Path, samples: Sequence[Sampled], rules: Sequence[Path], probes: Sequence[Probe]) -> Path:
    """A file of rule tests over the samples."""
    series = [
        {"series": _named(one), "values": _phases(one.values[::EVERY])}
        for one in samples
        if not np.isnan(one.values[::EVERY]).all()
    ]
    groups = [group["name"] for file in rules for group in yaml.safe_load(file.read_text())["groups"]]
    test = {"interval": f"{STEP * EVERY:.0f}s", "input_series": series, "promql_expr_test": list(probes)}
    document = {
        "rule_files": [str(file) for file in rules],
        "evaluation_interval": f"{INTERVAL:.0f}s",
        # without an order promtool takes the groups in any
        "group_eval_order": groups,
        "tests": [test],
    }
    file = folder / "week.yml"
    file.write_text(json.dumps(document))
    return file


def run(file: Path, suite: Suite) -> subprocess.CompletedProcess[str]:
    """Runs the file."""
    command = [str(tool("promtool", suite)), "test", "rules", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)


def probes(spans: Sequence[Span]) -> Iterator[Probe]:
    """What must have fired by when, and what must not have fired between the spans that allow it."""
    for span in spans:
        if span.by is not None:
            yield _fired(span.alert.name, max(0.0, span.start), span.by, True)
    for alert in ALERTS:
        quiet = 0.0
        for start, end in _joined([span for span in spans if span.alert is alert]):
            if start - MINUTE > quiet:
                yield _fired(alert.name, quiet, start - MINUTE, False)
            quiet = end + MINUTE
        if quiet < DAYS * DAY:
            yield _fired(alert.name, quiet, DAYS * DAY, False)


def _joined(spans: Sequence[Span]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted((span.start, span.end) for span in spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _fired(name: str, start: float, end: float, expected: bool) -> Probe:
    fired = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
    return {
        "expr": f"group by (alertname) (last_over_time({fired}[{end - start:.0f}s]))",
        "eval_time": f"{end:.0f}s",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1}] if expected else [],
    }


def _named(one: Sampled) -> str:
    return f"{one.name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in one.labels.items())}}}"


def _phases(values: Floats) -> str:
    """Values as promtool writes them, equal ones in a row as one; a series that ends is marked stale."""
    gone = np.isnan(values)
    edges = np.flatnonzero(np.diff(np.where(gone, -1.0, values)) != 0) + 1
    parts: list[str] = []
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(values)], strict=True):
        count = last - first
        if not gone[first]:
            parts.append(f"{values[first]:.15g}x{count - 1}")
            continue
        if parts:
            parts.append("stale")
            count -= 1
        parts.extend([f"_x{count}"] if count else [])
    return " ".join(parts)
