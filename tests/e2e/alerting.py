"""Real rules in a real Prometheus, a real Alertmanager behind it, and what arrives at the end of the chain."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.generate.running_alertmanager import Running, running

from e2e.alert_runs import AlertRun, rules_of
from e2e.deployment import reserved_ports
from e2e.pace import Pace, seconds_of
from e2e.running_prometheus import Prometheus, running_prometheus
from specbudget.catalog.alerts import AlertDef, Severity
from specbudget.catalog.recording import SELDOM_SECONDS
from specbudget.domain.time_to_page import Cadence
from specbudget.generate import alertmanager

NAMESPACE = "e2e"


@dataclass(frozen=True, slots=True)
class Message:
    """What a person reads in a chat."""

    title: str
    text: str
    link: str


@dataclass
class Alerting:
    """The chain from rules to messages. Each run is a cluster of its own, with one replica of its service."""

    prometheus: Prometheus
    alertmanager: Running
    pace: Pace
    ports: Mapping[str, int]

    def told(self, run: AlertRun) -> dict[str, float]:
        """The names of the alerts that a webhook was told of, and when first, in seconds since the epoch."""
        found: dict[str, float] = {}
        for path, body, at in tuple(self.alertmanager.receiver.received):
            if path.startswith("/webhook/") and body["groupLabels"].get("cluster") == run.name:
                for alert in body["alerts"]:
                    if alert["status"] == "firing":
                        found.setdefault(alert["labels"]["alertname"], at)
        return found

    def receivers(self, run: AlertRun) -> set[str]:
        """Who was told of anything."""
        return {
            path.removeprefix("/webhook/")
            for path, body, _ in tuple(self.alertmanager.receiver.received)
            if path.startswith("/webhook/") and body["groupLabels"].get("cluster") == run.name
        }

    def messages(self, run: AlertRun) -> list[Message]:
        """The rendered messages of a run, oldest first: the template ends each with the cluster."""
        attachments = [
            body["attachments"][0]
            for path, body, _ in tuple(self.alertmanager.receiver.received)
            if path == "/slack" and f"\nCluster: {run.name}\n" in body["attachments"][0]["text"] + "\n"
        ]
        return [Message(one["title"], one["text"], one.get("title_link", "")) for one in attachments]

    def states(self, run: AlertRun) -> dict[str, str]:
        """What the rules say now of a run, silenced or not: pending or firing by alert."""
        now = self.prometheus.query(f'max by (alertname, alertstate) (ALERTS{{cluster="{run.name}"}})')
        return {one["metric"]["alertname"]: one["metric"]["alertstate"] for one in now}

    def wait_of(self, severity: Severity) -> float:
        """Seconds that the generated configuration lets a notification wait for others of its group, at this pace."""
        return self.pace.seconds(_GROUP_WAITS[severity])

    def wait_after_condition(self, alert: AlertDef) -> float:
        """The most seconds from a condition that holds to the message: scrape, evaluations, `for`, group."""
        evaluation = self.pace.seconds(SELDOM_SECONDS) if alert.reads_hours else self.pace.evaluation
        cadence = Cadence(scrape=self.pace.scrape, evaluation=evaluation, notification=self.wait_of(alert.severity))
        return cadence.longest_wait(self.pace.seconds(alert.for_seconds))


def _group_waits() -> dict[str, float]:
    (ours,) = yaml.safe_load(alertmanager.config())["route"]["routes"]
    waits = {}
    for route in ours["routes"]:
        (matcher,) = route["matchers"]
        waits[matcher.partition("=")[2].strip('"')] = seconds_of(route["group_wait"])
    return waits


_GROUP_WAITS = _group_waits()


@contextlib.contextmanager
def alerting(runs: tuple[AlertRun, ...], pace: Pace, folder: Path) -> Iterator[Alerting]:
    """Prometheus and Alertmanager for these runs; the sidecar of each is to listen on the port named for it."""
    own, *others = reserved_ports(1 + len(runs))
    ports = {run.name: port for run, port in zip(runs, others, strict=True)}
    for name, document in rules_of(runs, pace, folder).items():
        (folder / name).write_text(json.dumps(document))
    (folder / "alertmanager").mkdir()
    with running(folder / "alertmanager", paced=pace.routes) as manager:
        configuration = _configuration(ports, pace, manager.url)
        with running_prometheus(folder, configuration, own) as prometheus:
            yield Alerting(prometheus, manager, pace, ports)


def _configuration(ports: Mapping[str, int], pace: Pace, manager: str) -> dict[str, Any]:
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {"cluster": name, "namespace": NAMESPACE, "pod": f"{name}-0"},
        }
        for name, port in ports.items()
    ]
    every = f"{pace.scrape:g}s"
    return {
        "global": {
            "scrape_interval": every,
            "scrape_timeout": every,
            "evaluation_interval": f"{pace.evaluation:g}s",
        },
        "rule_files": ["*_rules.yml"],
        "scrape_configs": [{"job_name": "specbudget", "static_configs": targets}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager.removeprefix("http://")]}]}]},
    }
