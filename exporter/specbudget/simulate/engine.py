"""Running the stand-in engine: as a task, or as a command until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from specbudget.simulate.choice import ChoiceError, chosen
from specbudget.simulate.scenarios import Scenario
from specbudget.simulate.standin import StandInEngine


async def run_engine(
    scenario: Scenario,
    *,
    host: str,
    port: int,
    directory: Path,
    seed: int = 0,
    speed: float = 1.0,
    requests_per_second: float | None = None,
    api_key: str | None = None,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Run a stand-in engine until this task is cancelled; `announce` gets its address once it is bound."""
    engine = StandInEngine(
        scenario,
        directory=directory,
        host=host,
        port=port,
        seed=seed,
        speed=speed,
        requests_per_second=requests_per_second,
        api_key=api_key,
    )
    async with engine:
        if announce is not None:
            announce(engine.url)
        await engine.wait()


def run(scenario_name: str, listen: str, directory: Path, seed: int = 0, speed: float = 1.0) -> int:
    """Run a scenario until SIGINT or SIGTERM. Returns 0, or 2 with one line on stderr for wrong usage."""
    host, _, port = listen.rpartition(":")
    try:
        scenario = chosen(scenario_name, speed)
    except ChoiceError as error:
        return _usage(str(error))
    if not port.isdecimal() or int(port) > 65535:
        return _usage(f"--listen: {listen!r}: give HOST:PORT, like 127.0.0.1:30000")

    def announce(url: str) -> None:
        print(f"scenario {scenario_name} on {url}, files in {directory}", flush=True)

    async def main() -> None:
        task = asyncio.create_task(
            run_engine(
                scenario,
                host=host.strip("[]") or "127.0.0.1",
                port=int(port),
                directory=directory,
                seed=seed,
                speed=speed,
                announce=announce,
            )
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        asyncio.run(main())
    except OSError as error:
        place = error.filename or listen
        return _usage(f"{place}: {error.strerror or error}")
    return 0


def _usage(message: str) -> int:
    print(f"specbudget simulate: {message}", file=sys.stderr)
    return 2
