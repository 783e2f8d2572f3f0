"""Measures how long a checkpoint of a terabyte in 2,000 shards takes to read, in a process of its own.

Makes the checkpoint of sparse files in a temporary folder, or measures one that is there; prints seconds of processor
and of wall clock and the peak of resident memory, interpreter and imports included; ends with 1 above a limit.

    python bench/checkpoint.py [--folder DIR] [--rounds N]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from giant_checkpoint import write_giant

MOST_CPU_SECONDS = 0.6
MOST_WALL_SECONDS = 1.0
MOST_RESIDENT_BYTES = 120 * 2**20

READ = """
import sys
from pathlib import Path
from specbudget.pair.side import read_side
from specbudget.sources.checkpoint import read_checkpoint
side = read_side(read_checkpoint(Path(sys.argv[1])))
checkpoint = side.checkpoint
assert checkpoint.problems == (), checkpoint.problems[0]
print(checkpoint.parameters, checkpoint.disk_bytes, side.fingerprints.headers)
# ru_maxrss would tell of the process that started this one, too
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
"""


def measure(folder: Path) -> tuple[float, float, int, str]:
    """Processor seconds, wall seconds, peak resident bytes and what one process printed that read the folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", READ, str(folder)], check=True, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told, resident = done.stdout.splitlines()
    return cpu, wall, int(resident) * 1024, told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, help="a checkpoint to read instead of one made for this")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        if options.folder is None:
            start = time.perf_counter()
            total = write_giant(folder)
            print(f"made {total} bytes of tensors in {time.perf_counter() - start:.1f} s")
        runs = [measure(folder) for _ in range(options.rounds)]
    cpu, wall, memory = (min(run[part] for run in runs) for part in range(3))
    print(f"parameters, bytes on disk, digest of the headers: {runs[0][3]}")
    print(f"processor {cpu:.3f} s, wall {wall:.3f} s, resident {memory / 2**20:.0f} MiB (best of {len(runs)})")
    return int(cpu > MOST_CPU_SECONDS or wall > MOST_WALL_SECONDS or memory > MOST_RESIDENT_BYTES)


if __name__ == "__main__":
    raise SystemExit(main())
