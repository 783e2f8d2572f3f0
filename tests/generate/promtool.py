"""promtool as the tests call it: run on many test files at once."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.prometheus_tools import Suite, tool

PROCESSES = 2


def run(*arguments: str | Path, suite: Suite = Suite.USUAL) -> subprocess.CompletedProcess[str]:
    command = [str(tool("promtool", suite)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def failures(files: list[Path], suite: Suite = Suite.USUAL) -> dict[Path, str]:
    """What each file of rule tests that fails has to say; nothing for those that pass."""
    if not files:
        return {}
    size = max(1, -(-len(files) // PROCESSES))
    chunks = [files[place : place + size] for place in range(0, len(files), size)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        outputs = list(pool.map(lambda chunk: run("test", "rules", *chunk, suite=suite), chunks))
    told: dict[Path, str] = {}
    for chunk, done in zip(chunks, outputs, strict=True):
        if done.returncode == 0:
            continue
        if len(chunk) == 1:
            told[chunk[0]] = done.stderr
            continue
        if "Unit Testing:" not in done.stdout:
            # the newest names no file: each alone, then
            told |= {file: text for file in chunk for text in failures([file], suite).values()}
            continue
        # verdicts of a file go to one of the two streams, its title always to the first: only together they tell
        passed = {Path(name) for name in re.findall(r"^Unit Testing:  (.+)\n  SUCCESS", done.stdout, re.M)}
        for file in chunk:
            if file not in passed:
                told[file] = done.stderr
    return told
