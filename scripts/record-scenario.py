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
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

PROMETHEUS = Path(__file__).parents[1] / ".cache" / "prometheus" / "trixie" / "usr" / "bin" / "prometheus"
ENDED = 20.0
"""Seconds until a process that was asked to end is killed."""
FORGOTTEN = ("scrape_", "prometheus_")
"""Prefixes of what Prometheus says of itself."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def asked(url: str, **query: str) -> dict[str, object]:
    with urlopen(f"{url}?{urlencode(query)}", timeout=60) as answer:
        return dict(json.load(answer))["data"]  # type: ignore[no-any-return]


def started(stack: ExitStack, command: list[str], log: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdout=stack.enter_context(log.open("wb")), stderr=subprocess.STDOUT)

    def end() -> None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(ENDED)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(end)
    return process


def wait_for(condition: object, seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            sys.exit(f"{what} did not come within {seconds:g} s")
        time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except (URLError, OSError):
        return False


def configuration(work: Path, sidecar: int, interval: float) -> str:
    return f"""
global: {{scrape_interval: {interval:g}s, scrape_timeout: {interval:g}s, evaluation_interval: {interval:g}s}}
rule_files: [{work}/alerts/*.rules.yml]
scrape_configs:
- job_name: specbudget
  static_configs: [{{targets: ['127.0.0.1:{sidecar}'], labels: {{instance: 'replica-0:9877'}}}}]
"""


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
    sidecar, own = free_port(), free_port()
    python = [sys.executable, "-m", "specbudget"]
    with ExitStack() as stack:
        # Prometheus first: what happens a few seconds after the engine's start would be missed otherwise
        (work / "prometheus.yml").write_text(configuration(work, sidecar, interval), encoding="utf-8")
        address = f"127.0.0.1:{own}"
        command = [str(PROMETHEUS), f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/tsdb"]
        prometheus = started(stack, [*command, f"--web.listen-address={address}"], work / "prometheus.log")
        wait_for(lambda: answers(f"http://{address}/-/ready"), 60, "Prometheus")
        small = work / "deployment"
        demo = [*python, "demo", "--scenario", scenario, "--listen", f"127.0.0.1:{sidecar}", "--dir", str(small)]
        running = started(stack, demo, work / "demo.log")
        wait_for((small / "budget.yaml").exists, 60, "the demo's budget")
        rules = [*python, "generate", "rules", "--budget", str(small / "budget.yaml"), "--out", str(work)]
        subprocess.run(rules, check=True, stdout=subprocess.DEVNULL, timeout=60)
        prometheus.send_signal(signal.SIGHUP)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if running.poll() is not None:
                sys.exit(f"the demo ended: {(work / 'demo.log').read_text()[-500:]}")
            time.sleep(1)
        query = f'{{__name__=~".+"}}[{int(seconds) + 120}s]'
        found = asked(f"http://{address}/api/v1/query", query=query)["result"]
        return openmetrics([s for s in found if not s["metric"]["__name__"].startswith(FORGOTTEN)])  # type: ignore


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
