"""Waiting for a running stand-in and reading what it wrote."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

FAST = 20.0
"""Speed of most runs: delays of scenarios and start-ups are divided by it."""


async def records_in(folder: Path) -> list[dict]:
    """Every record of every file, whatever its name."""
    paths = sorted((folder / "requests").iterdir())
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


async def until(condition, *, seconds: float = 15.0) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 -- the engine sets no event for a reader of its truth
            await asyncio.sleep(0.02)
