"""Records a scenario as a real Prometheus saw it: every sample, recorded series and alerts included.

    python scripts/record-scenario.py SCENARIO SECONDS OUT.om.gz [--dir DIR] [--interval SECONDS]

Runs `specbudget demo` at real speed beside Prometheus with the rules of the demo's own budget, and writes all samples
in the OpenMetrics form that `promtool tsdb create-blocks-from openmetrics` reads, each with its time. Everything is as
it would have been in production at that scrape interval; nothing is made up.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

# what starts real programs for the tests starts them here, too
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from e2e.deployment import COMMAND, reserved_ports, started, stop  # noqa: E402
from e2e.running_prometheus import running_prometheus  # noqa: E402

FORGOTTEN = ("scrape_", "prometheus_")
"""Prefixes of what Prometheus says of itself."""


def configuration(sidecar: int, interval: float) -> dict[str, object]:
    every = f"{interval:g}s"
    target = {"targets": [f"127.0.0.1:{sidecar}"], "labels": {"instance": "replica-0:9877"}}
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": ["alerts/*.rules.yml"],
        "scrape_configs": [{"job_name": "specbudget", "static_configs": [target]}],
    }


def openmetrics(series: list[dict[str, object]]) -> str:
    """All samples, series of one name together, oldest first within a series."""
    lines = []
    for one in sorted(series, key=lambda s: sorted(s["metric"].items())):  # type: ignore[attr-defined]
        labels = dict(one["metric"])  # type: ignore[call-overload]
        name = labels.pop("__name__")
        inside = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(labels.items()))
        lines += [f"{name}{{{inside}}} {value} {at}" for at, value in one["values"]]  # type: ignore[attr-defined]
    return "\n".join([*lines, "# EOF", ""])


def record(scenario: str, seconds: float, interval: float, work: Path) -> str:
    sidecar, own = reserved_ports(2)
    budget = work / "deployment" / "budget.yaml"
    with ExitStack() as stack:
        # Prometheus first: what happens a few seconds after the engine's start would be missed otherwise
        prometheus = stack.enter_context(running_prometheus(work, configuration(sidecar, interval), own))
        demo = ["demo", "--scenario", scenario, "--listen", f"127.0.0.1:{sidecar}", "--dir", str(budget.parent)]
        running = stack.enter_context(started(work, "demo", *demo))
        stack.callback(stop, running)
        until = time.monotonic() + 60
        while not budget.exists():
            if time.monotonic() > until:
                sys.exit(f"the demo wrote no budget: {(work / 'demo.out').read_text()[-500:]}")
            time.sleep(0.2)
        rules = [*COMMAND, "generate", "rules", "--budget", str(budget), "--out", str(work)]
        subprocess.run(rules, check=True, stdout=subprocess.DEVNULL, timeout=60)
        prometheus.reload()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if running.poll() is not None:
                sys.exit(f"the demo ended: {(work / 'demo.out').read_text()[-500:]}")
            time.sleep(1)
        found = prometheus.query(f'{{__name__=~".+"}}[{int(seconds) + 120}s]')
        return openmetrics([one for one in found if not one["metric"]["__name__"].startswith(FORGOTTEN)])


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("scenario")
    parser.add_argument("seconds", type=float)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dir", type=Path, help="keep logs, rules and the small deployment here")
    parser.add_argument("--interval", type=float, default=15.0, help="seconds between scrapes, default %(default)g")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.dir or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        text = record(options.scenario, options.seconds, options.interval, work.resolve())
    options.out.parent.mkdir(parents=True, exist_ok=True)
    # no file name and no time inside, so that equal samples make equal files
    options.out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{options.out}: {text.count(chr(10)) - 1} samples, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
