"""promtool as the tests call it: run on many test files at once."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.prometheus_tools import tool

PROCESSES = 2


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(tool("promtool")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def failures(files: list[Path]) -> dict[Path, str]:
    """What each file of rule tests that fails has to say; nothing for those that pass."""
    if not files:
        return {}
    size = max(1, -(-len(files) // PROCESSES))
    chunks = [files[place : place + size] for place in range(0, len(files), size)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        outputs = list(pool.map(lambda chunk: run("test", "rules", *chunk), chunks))
    told: dict[Path, str] = {}
    for chunk, done in zip(chunks, outputs, strict=True):
        # verdicts of a file go to one of the two streams, its title always to the first: only together they tell
        passed = {Path(name) for name in re.findall(r"^Unit Testing:  (.+)\n  SUCCESS", done.stdout, re.M)}
        for file in chunk:
            if file not in passed:
                told[file] = done.stderr
    return told
