"""Compares the processor time of two whole processes that swallow the same request log: the sidecar and mtail.

Both read a file of SGLang request records (the keys and their order of SGLang 0.5.23's request metrics exporter) from
its start and count requests, verify steps and accepted drafts. mtail runs once over the file and ends; the sidecar runs
as in production, with state and `/metrics`, until it shows no backlog. User and system time of each process, start-up
included, come from the kernel when it ends. Ends with 1 when the counts differ or the ratio is above the limit.

    python bench/ingest.py [--records N] [--bytes N] [--pairs N] [--mtail PATH] [--program FILE] [--specbudget PATH]

The result depends on mtail's version and program, so both are printed. The limit is held against
request_records.mtail, which takes the numbers that the sidecar takes. request_counts.mtail takes three of them and
nothing else; against it the sidecar's start-up (Python and its libraries, over a second here) is most of the cost.
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specbudget.sources.exposition import read_samples

HERE = Path(__file__).parent
UNPACKED_MTAIL = HERE.parent / ".cache" / "prometheus" / "trixie" / "usr" / "bin" / "mtail"
LIMIT = 0.2
PATIENCE_SECONDS = 180.0
LOOK_EVERY_SECONDS = 0.25
DRAFTS_PER_STEP = 7
SENTENCE = 'Explain how a "draft block" is verified \u2013 in detail, with an example.\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What both must agree on."""

    requests: int
    verify_steps: int
    accepted_drafts: int


class BenchError(Exception):
    """Something that makes the comparison void, in one line."""


def record(number: int, finished: float, size: int, rng: random.Random) -> tuple[str, int, int]:
    """One record of about `size` bytes, and its verify steps and accepted drafts."""
    steps_with = [rng.randint(0, 18) for _ in range(DRAFTS_PER_STEP + 1)]
    steps_with[0] += 1
    steps = sum(steps_with)
    accepted = sum(drafts * count for drafts, count in enumerate(steps_with))
    request_id = f"{number:032x}"
    completion = steps + accepted
    parameters = {
        "rid": request_id,
        "text": SENTENCE * max(1, (size - 1300) // 84),
        "sampling_params": {"max_new_tokens": completion, "temperature": 0.6, "top_p": 0.95},
        "return_text_in_logprobs": False,
        "stream": number % 3 == 0,
        "log_metrics": True,
        "return_hidden_states": False,
        "background": False,
        "no_logs": False,
    }
    line = {
        "request_parameters": json.dumps(parameters),
        "id": request_id,
        "finish_reason": {"type": "length", "length": completion},
        "prompt_tokens": 700,
        "weight_version": "default",
        "num_retractions": 0,
        "forward_entry_time": finished - 4.0,
        "prefill_finished_time": finished - 3.7,
        "queue_time": 0.0,
        "reasoning_tokens": 0,
        "completion_tokens": completion,
        "cached_tokens": 0,
        "dp_rank": 0,
        "e2e_latency": 4.1,
        "spec_accept_rate": accepted / (DRAFTS_PER_STEP * steps),
        "spec_accept_length": completion / steps,
        "spec_num_correct_drafts": accepted,
        "spec_num_proposed_drafts": DRAFTS_PER_STEP * steps,
        "spec_verify_ct": steps,
        "spec_correct_drafts_histogram": steps_with,
        "request_received_ts": finished - 4.1,
        "first_token_latency": 0.4,
        "api_server_dispatch_finish_ts": finished - 4.09,
        "request_finished_ts": finished,
        "decode_throughput": completion / 3.7,
        "response_sent_to_client_ts": finished + 0.01,
    }
    return json.dumps(line), steps, accepted


def write_log(folder: Path, records: int, size: int) -> tuple[Path, Counts]:
    """A log of the last ten minutes, named as the engine names the present hour's."""
    now = time.time()
    path = folder / time.strftime("sglang-request-metrics-%Y%m%d_%H.log", time.localtime(now))
    rng = random.Random(1)
    steps = accepted = 0
    with path.open("w", encoding="ascii") as log:
        for number in range(records):
            line, more_steps, more_accepted = record(number, now - 600 + 600 * number / records, size, rng)
            log.write(line + "\n")
            steps += more_steps
            accepted += more_accepted
    return path, Counts(requests=records, verify_steps=steps, accepted_drafts=accepted)


def processor_seconds(process: subprocess.Popen[bytes], patience: float) -> tuple[float, int]:
    """User and system time of the process, once it has ended, and its exit code. Kills it when patience is over."""
    deadline = time.monotonic() + patience
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime, process.returncode
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise BenchError(f"{process.args!r} did not end within {patience:.0f} s")
        time.sleep(0.02)


def totals(body: bytes, requests: str, steps: str, accepted: str) -> Counts:
    """The sums over all series of the three names."""
    sums = dict.fromkeys((requests, steps, accepted), 0.0)
    for sample in read_samples(body, frozenset(sums)):
        if sample.labels.get("source", "request_log") == "request_log" and sample.labels.get("outcome", "ok") == "ok":
            sums[sample.name] += sample.value
    return Counts(requests=int(sums[requests]), verify_steps=int(sums[steps]), accepted_drafts=int(sums[accepted]))


def run_mtail(mtail: str, program: Path, log: Path) -> tuple[float, Counts]:
    command = [mtail, "--one_shot", "--one_shot_format", "prometheus", "--progs", str(program), "--logs", str(log)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, cwd=log.parent)
        seconds, code = processor_seconds(process, PATIENCE_SECONDS)
        if code != 0:
            raise BenchError(f"mtail ended with {code}")
        output.seek(0)
        return seconds, totals(output.read(), "requests", "verify_steps", "accepted_drafts")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def swallowed(body: bytes, records: int) -> bool:
    """Whether the sidecar says that every record is counted and nothing of the log is left."""
    backlog, counted = None, 0.0
    wanted = frozenset({"specbudget_source_backlog_bytes", "specbudget_records_total"})
    for sample in read_samples(body, wanted):
        if sample.labels.get("source") != "request_log":
            continue
        if sample.name == "specbudget_source_backlog_bytes":
            backlog = sample.value
        elif sample.labels.get("outcome") == "ok":
            counted = sample.value
    return backlog == 0 and counted == records


def run_specbudget(specbudget: str, log: Path, records: int, folder: Path) -> tuple[float, Counts]:
    port = free_port()
    budget = folder / "budget.yaml"
    budget.write_text(
        "service: bench\n"
        f"engine: {{kind: sglang, url: 'http://127.0.0.1:{free_port()}', request_log: {json.dumps(str(log.parent))}}}\n"
        "drafter: {algorithm: dspark}\n"
        "budget: {acceptance: {target_length: 2.6}}\n"
    )
    command = [specbudget, "serve", "--budget", str(budget), "--listen", f"127.0.0.1:{port}"]
    command += ["--state", str(folder / "state")]
    body = b""
    with (folder / "serve.log").open("w+b") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while not swallowed(body, records):
                if process.poll() is not None or time.monotonic() > deadline:
                    output.seek(0)
                    said = output.read()[-2000:].decode(errors="replace")
                    raise BenchError(f"the sidecar did not swallow the log (exit {process.returncode}):\n{said}")
                time.sleep(LOOK_EVERY_SECONDS)
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                        body = answer.read()
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    continue  # it does not listen yet
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.send_signal(signal.SIGTERM)
        seconds, code = processor_seconds(process, 10.0)
        if code not in (0, -signal.SIGTERM):
            raise BenchError(f"the sidecar ended with {code}")
    return seconds, totals(
        body,
        "specbudget_records_total",
        "specbudget_verify_steps_total",
        "specbudget_accepted_draft_tokens_total",
    )


def find_mtail() -> str:
    found = shutil.which("mtail") or (str(UNPACKED_MTAIL) if UNPACKED_MTAIL.exists() else None)
    if found is None:
        raise BenchError("no mtail: run scripts/fetch-prometheus-tools.sh mtail")
    return found


def compare(options: argparse.Namespace, folder: Path) -> int:
    logs = folder / "requests"
    logs.mkdir()
    log, truth = write_log(logs, options.records, options.bytes)
    print(f"log: {options.records} records, {log.stat().st_size / options.records:.0f} bytes each", flush=True)
    runs: dict[str, Callable[[Path], tuple[float, Counts]]] = {}
    if options.only != "specbudget":
        mtail = options.mtail or find_mtail()
        version = subprocess.run([mtail, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
        print(f"{version.strip()}, program {options.program.name}")
        runs["mtail"] = lambda _own: run_mtail(mtail, options.program.resolve(), log)
    if options.only != "mtail":
        runs["specbudget"] = lambda own: run_specbudget(options.specbudget, log, options.records, own)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for pair in range(options.pairs):
        for name, run in runs.items():
            own = folder / f"{name}-{pair}"
            own.mkdir()
            spent, counts = run(own)
            print(f"{name:<12}{spent:8.2f} s of processor time", flush=True)
            if counts != truth:
                raise BenchError(f"{name} counted {counts}, the log holds {truth}")
            seconds[name].append(spent)
    if options.only:
        return 0
    ratio = statistics.median(seconds["specbudget"]) / statistics.median(seconds["mtail"])
    print(f"ratio of the medians: {ratio:.3f} (limit {LIMIT})")
    return 0 if ratio <= LIMIT else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--bytes", type=int, default=4_000, help="about so many bytes a record")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--mtail", help="the mtail binary; default: the one in PATH, else the unpacked one")
    parser.add_argument("--program", type=Path, default=HERE / "request_records.mtail", help="what mtail runs")
    parser.add_argument("--specbudget", default=str(Path(sys.executable).with_name("specbudget")))
    parser.add_argument("--only", choices=["mtail", "specbudget"], help="run one of them, without the ratio")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specbudget-bench-") as folder:
        try:
            return compare(options, Path(folder))
        except BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    raise SystemExit(main())
