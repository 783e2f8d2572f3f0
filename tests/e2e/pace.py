"""The same rules and routes in less time: every duration in them divided by one factor, nothing else touched."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_DURATION = r"(?:\d+(?:ms|[smhdwy]))+"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_PARTS = re.compile(
    rf"""(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""  # a string is left as it is
    rf"""|\[(?P<range>{_DURATION})(?P<resolution>:(?:{_DURATION})?)?\]"""
    rf"""|(?P<offset>\boffset\s+-?)(?P<back>{_DURATION})"""
)
_WAITS = ("group_wait", "group_interval", "repeat_interval")


def seconds_of(duration: str) -> float:
    """The seconds of a duration as Prometheus writes it: 5m, 2h14m24s."""
    return sum(float(count) * _SECONDS[unit] for count, unit in re.findall(r"(\d+)(ms|[smhdwy])", duration))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much faster than written rules and routes go, and how often Prometheus scrapes and evaluates, in seconds.

    What a sidecar times itself is not quickened: a frozen engine is told after a minute at any pace.
    """

    factor: float
    scrape: float
    evaluation: float

    def duration(self, written: str) -> str:
        """A duration at this pace, to the millisecond."""
        return f"{max(1, round(seconds_of(written) * 1000 / self.factor))}ms"

    def seconds(self, written: float) -> float:
        """Seconds at this pace."""
        return written / self.factor

    def expression(self, text: str) -> str:
        """PromQL with its ranges and offsets at this pace; names and strings that look like some are left."""

        def at_pace(found: re.Match[str]) -> str:
            if found["string"] is not None:
                return found["string"]
            if found["back"] is not None:
                return f"{found['offset']}{self.duration(found['back'])}"
            resolution = found["resolution"] or ""
            if len(resolution) > 1:
                resolution = f":{self.duration(resolution[1:])}"
            return f"[{self.duration(found['range'])}{resolution}]"

        return _PARTS.sub(at_pace, text)

    def rules(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A file of rules at this pace."""
        paced: dict[str, Any] = copy.deepcopy(dict(document))
        for group in paced["groups"]:
            if "interval" in group:
                group["interval"] = self.duration(group["interval"])
            for rule in group["rules"]:
                rule["expr"] = self.expression(rule["expr"])
                for wait in ("for", "keep_firing_for"):
                    if wait in rule:
                        rule[wait] = self.duration(rule[wait])
        return paced

    def routes(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Alertmanager's configuration at this pace."""
        paced: dict[str, Any] = copy.deepcopy(dict(document))
        routes = [paced["route"]]
        while routes:
            route = routes.pop()
            route.update({wait: self.duration(route[wait]) for wait in _WAITS if wait in route})
            routes.extend(route.get("routes", ()))
        return paced


PRODUCTION = Pace(factor=1.0, scrape=15.0, evaluation=15.0)
"""As it is written, at intervals that are usual."""

QUICK = Pace(factor=8.0, scrape=2.0, evaluation=2.0)
"""In the tests: eight times as fast, intervals included. What is good before a scenario's change lasts 15 seconds at
any pace: at a much quicker one it would delay the fast burn for longer than the slow burn waits, which it never does
as written, and a page would come that nobody gets."""
