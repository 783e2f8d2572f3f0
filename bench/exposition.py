"""Measures how fast the exposition reader is beside the Prometheus client library's parser, in one run.

Prints milliseconds for one real body of an engine with two data-parallel ranks, and the ratios; ends with 1 when the
reader is not ten times as fast for the names that a monitor wants.

    python bench/exposition.py [--body FILE] [--names N] [--rounds N]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from specbudget.sources.exposition import read_samples

BODY = Path(__file__).parents[1] / "tests" / "fixtures" / "exposition" / "sglang-0.5.23-dp2.prom"
LEAST_RATIO = 10.0


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """The shortest of some runs, in seconds: what the work takes when nothing else is in the way."""
    durations = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return min(durations)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--body", type=Path, default=BODY)
    parser.add_argument("--names", type=int, default=25, help="how many names are wanted")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()

    body = options.body.read_bytes()
    names = sorted({s.name for s in read_samples(body) if not s.name.endswith("_bucket")})
    wanted = frozenset(names[:: max(1, len(names) // options.names)][: options.names])
    found = sum(1 for _ in read_samples(body, wanted))

    library = best_of(options.rounds, lambda: list(text_string_to_metric_families(body.decode())))
    some = best_of(options.rounds * 10, lambda: read_samples(body, wanted))
    everything = best_of(options.rounds, lambda: read_samples(body))

    lines = body.count(b"\n")
    print(f"body: {len(body)} bytes, {lines} lines; wanted: {len(wanted)} names, {found} samples")
    print(f"client library, every sample   {library * 1e3:8.2f} ms")
    print(f"this reader, every sample      {everything * 1e3:8.2f} ms   {library / everything:6.1f} times as fast")
    print(f"this reader, wanted samples    {some * 1e3:8.2f} ms   {library / some:6.1f} times as fast")
    return 0 if library / some >= LEAST_RATIO else 1


if __name__ == "__main__":
    raise SystemExit(main())
