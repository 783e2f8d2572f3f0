"""A rule test in a few lines: what the sidecars said over time, and how many alerts of a name then fire."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from specbudget.catalog.alerts import AlertDef
from specbudget.catalog.recording import RecordDef, record_groups
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import SeriesDef
from specbudget.domain.burn import PAGE_ROWS, TICKET_ROWS

SERVICE = "chat"
OBJECTIVE = 0.95
WINDOW = 28 * 86400.0


def settings_of(objective: float = OBJECTIVE, window: float = WINDOW, **changes: Any) -> RuleSettings:
    """Settings with an SLO."""
    rows = [row.windows(objective=objective, slo_seconds=window) for row in (*PAGE_ROWS, *TICKET_ROWS)]
    plain = RuleSettings(
        service=SERVICE,
        objective=objective,
        slo_seconds=window,
        pages=tuple(rows[: len(PAGE_ROWS)]),
        tickets=tuple(rows[len(PAGE_ROWS) :]),
        has_break_even=True,
        mode="prefetch",
        order="target,drafter",
        warmup_required=True,
        runbook="https://runbooks.example/r.md",
        dashboards="https://grafana.example/d",
    )
    return replace(plain, **changes)


SETTINGS = settings_of()

Samples = Mapping[str, str]
"""Values of promtool by series."""


def target(replica: str) -> dict[str, str]:
    """The labels that Prometheus gives a replica."""
    return {
        "cluster": "c1",
        "namespace": "llm",
        "pod": replica,
        "instance": f"{replica}:9877",
        "job": "specbudget",
    }


def name(series: SeriesDef, replica: str = "a", *, suffix: str = "", service: str = SERVICE, **labels: str) -> str:
    """A series of a replica, as promtool wants it."""
    every = target(replica) | {"specbudget_service": service} | labels
    return f"{series.full_name}{suffix}{{{','.join(f'{k}={json.dumps(v)}' for k, v in every.items())}}}"


def up(replica: str = "a") -> str:
    """The `up` of a replica's target, which knows no service."""
    return f"up{{{','.join(f'{k}={json.dumps(v)}' for k, v in target(replica).items())}}}"


GONE = None
"""A phase without samples."""


def grows(*phases: tuple[int, float | None], start: float = 0.0) -> str:
    """A counter: (samples, increase per sample) each; None is a gap. A negative increase is a restart to 0."""
    parts, value = [f"{start:.10g}"], start
    for count, step in phases:
        if step is None:
            parts.append(f"_x{count}")
            continue
        if step < 0:
            value, step = 0.0, 0.0
        parts.append(f"{value + step:.10g}+{step:.10g}x{count - 1}")
        value += step * count
    return " ".join(parts)


def holds(*phases: tuple[int, float | None]) -> str:
    """A gauge: (samples, value) each; None is a gap."""
    return " ".join(f"_x{count}" if value is None else f"{value:.10g}x{count - 1}" for count, value in phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`expect` says for moments such as `70m` how many alerts fire then.

    `step` is the time between samples, `evaluated` between evaluations. `once`: the alert waited exactly once, so
    that its `for` shows in how long it was pending before the last moment. `plain` cases are about the shape of the
    data and no threshold: what is changed on purpose need not be run on them.
    """

    alert: AlertDef
    says: str
    series: Samples
    expect: Mapping[str, int]
    step: str = "1m"
    evaluated: str = "1m"
    once: bool = False
    plain: bool = False
    settings: RuleSettings = field(default_factory=lambda: SETTINGS)

    @property
    def id(self) -> str:
        """What the test is called."""
        return f"{self.alert.name.removeprefix('Specbudget')}: {self.says}"

    def test(self) -> dict[str, Any]:
        """The case as promtool's test group."""
        checks = [
            _sample(f'count(ALERTS{{alertname="{self.alert.name}",alertstate="firing"}})', at, count)
            for at, count in self.expect.items()
        ]
        if self.once:
            last = list(self.expect)[-1]
            waited = ceil(self.alert.for_seconds / seconds(self.evaluated))
            pending = f'ALERTS{{alertname="{self.alert.name}",alertstate="pending"}}'
            checks.append(_sample(f"max(count_over_time({pending}[100d]))", last, waited))
        return {
            "name": self.says,
            "interval": self.step,
            "input_series": [{"series": key, "values": values} for key, values in self.series.items()],
            "promql_expr_test": checks,
        }


def _sample(query: str, at: str, value: int) -> dict[str, Any]:
    samples = [{"labels": "{}", "value": value}] if value else []
    return {"expr": query, "eval_time": at, "exp_samples": samples}


def seconds(text: str) -> float:
    """Seconds of `30s`, `2m`, `1h`."""
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


def needed(settings: RuleSettings, texts: Sequence[str], replaced: Mapping[str, RecordDef]) -> list[dict[str, str]]:
    """The recording rules that the texts read, and those that these read, in an order in which they can follow."""
    records = [replaced.get(r.name, r) for group in record_groups(settings) for r in group.rules]
    wanted: set[str] = set()
    for record in reversed(records):
        if any(f"{record.name}{{" in text for text in (*texts, *(r.text() for r in records if r.name in wanted))):
            wanted.add(record.name)
    return [{"record": r.name, "expr": r.text()} for r in records if r.name in wanted]
