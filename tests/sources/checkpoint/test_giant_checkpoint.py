"""A checkpoint of a terabyte, as sparse files: what reading it takes, and that the sums are right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from giant_checkpoint import Shape, write_giant
from specbudget.sources.checkpoint import read_checkpoint

MOST_CPU_SECONDS = 2.0
"""A busy machine takes its time; `bench/checkpoint.py` holds the reader to 0.6 s."""

MOST_RESIDENT_BYTES = 120 * 2**20

READ = """
import json, resource, sys
from pathlib import Path
from specbudget.pair.side import read_side
from specbudget.sources.checkpoint import read_checkpoint
checkpoint = read_side(read_checkpoint(Path(sys.argv[1]))).checkpoint
used = resource.getrusage(resource.RUSAGE_SELF)
# ru_maxrss would tell of the process that started this one, too
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps([len(checkpoint.problems), checkpoint.tensor_bytes, used.ru_utime + used.ru_stime, int(peak)]))
"""


def test_a_terabyte_in_two_thousand_shards(tmp_path: Path) -> None:
    """In a process of its own, interpreter and imports included: little time, and memory far below the index's sum."""
    total = write_giant(tmp_path)
    assert total > 10**12
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], check=True, capture_output=True, text=True)
    problems, size, seconds, resident = json.loads(done.stdout)
    assert (problems, size) == (0, total)
    assert seconds < MOST_CPU_SECONDS
    assert resident * 1024 < MOST_RESIDENT_BYTES


def test_sums_do_not_depend_on_how_a_model_is_split(tmp_path: Path) -> None:
    """One shard with a header of many pieces, and many small ones: the same groups, parameters and scales."""
    results = []
    for shards in (1, 7, 300):
        folder = tmp_path / str(shards)
        folder.mkdir()
        write_giant(folder, Shape(shards=shards, layers=12, experts=60, hidden=1024, intermediate=256))
        checkpoint = read_checkpoint(folder)
        assert checkpoint.problems == ()
        results.append(
            (checkpoint.tensor_groups, checkpoint.parameters, checkpoint.logical_parameters, checkpoint.storage)
        )
        assert checkpoint.declared_bytes == checkpoint.tensor_bytes == checkpoint.present_bytes
    assert results[0] == results[1] == results[2]
    assert results[0][3] == "fp8 in blocks of 128 x 128"
