"""All loops over the sources of one budget: started together, stopped together, replaced by a reload."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from specbudget.budget.model import resolve
from specbudget.catalog.sets import ErrorReason, Source
from specbudget.errors import SourceError
from specbudget.pair.side import SideReader
from specbudget.serve.background import in_background
from specbudget.serve.desk import ARTIFACT_OF, Desk
from specbudget.serve.engine_loops import EngineLoops
from specbudget.serve.faults import log_fault
from specbudget.serve.ingest import RequestLoop, ServerLogLoop, TailLoop
from specbudget.serve.poll import poll_forever
from specbudget.sources.checkpoint import CheckpointReader, ProblemKind
from specbudget.sources.http import EngineHttp
from specbudget.sources.tail import Position
from specbudget.sources.upstream_tls import tls_files

FIRST_LOOK_SECONDS = 2.0
"""So long, at most, the tails wait for the engine's first answer, which says model and verify window."""

BROKEN = {
    ProblemKind.MISSING: ErrorReason.MISSING,
    ProblemKind.UNREADABLE: ErrorReason.UNREADABLE,
    ProblemKind.LFS_POINTER: ErrorReason.MALFORMED,
    ProblemKind.TRUNCATED: ErrorReason.MALFORMED,
    ProblemKind.MALFORMED: ErrorReason.MALFORMED,
    ProblemKind.TOO_LARGE: ErrorReason.MALFORMED,
}
"""Problems that make a checkpoint's source fail; the others only leave a fact unknown."""

log = logging.getLogger(__name__)


class Following:
    """The running loops. Making one starts them; `positions` says how far the tails were read before.

    `publish` is called after every reading.
    """

    def __init__(self, desk: Desk, positions: Mapping[Source, list[Position]], publish: Callable[[], None]) -> None:
        self._desk, self._publish = desk, publish
        self._tasks: list[asyncio.Task[None]] = []
        self._tails: dict[Source, TailLoop] = {}
        self._http = self._engine_http()
        self._start(positions)

    def positions(self) -> dict[Source, list[Position]]:
        """How far each tail was read."""
        return {source: tail.tail.positions() for source, tail in self._tails.items()}

    def stop(self) -> None:
        """Lets no loop take another step; `closed` waits for their ends."""
        for task in self._tasks:
            task.cancel()

    async def closed(self) -> None:
        """Stops, waits, and gives back files and connections."""
        self.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for tail in self._tails.values():
            tail.tail.close()
        await self._http.close()

    def _engine_http(self) -> EngineHttp:
        loaded = self._desk.loaded
        key_file = loaded.budget.engine.api_key_file
        return EngineHttp(
            loaded.budget.engine.url,
            api_key_file=None if key_file is None else resolve(key_file, loaded.path),
            tls=tls_files(loaded.budget, loaded.path),
        )

    def _start(self, positions: Mapping[Source, list[Position]]) -> None:
        desk, ask = self._desk, self._publish
        budget, beside = desk.loaded.budget, desk.loaded.path
        engine, first = EngineLoops(desk, self._http), asyncio.Event()

        def after_metrics() -> None:
            first.set()
            ask()

        self._follow(Source.METRICS, engine.read_metrics, after_metrics)
        self._follow(Source.LOADS, engine.read_loads, ask)
        self._follow(Source.SERVER_INFO, engine.read_server_info, ask)
        for source in desk.checkpoint_sources():
            path = budget.target.path if source is Source.TARGET_CHECKPOINT else budget.drafter.path
            self._follow(source, self._checkpoint_read(source, resolve(path or "", beside)), ask)
        for source, loop, given in (
            (Source.REQUEST_LOG, RequestLoop, budget.engine.request_log),
            (Source.SERVER_LOG, ServerLogLoop, budget.engine.server_log),
        ):
            if given is not None:
                kept = positions.get(source, [])
                tail = self._tails[source] = loop(desk, source, resolve(given, beside), kept, ask)
                self._follow(source, tail.read, ask, wait_for=first)

    def _follow(
        self,
        source: Source,
        read: Callable[[], Awaitable[None]],
        after: Callable[[], None],
        *,
        wait_for: asyncio.Event | None = None,
    ) -> None:
        health, ledger = self._desk.health[source], self._desk.ledger

        async def follow() -> None:
            if wait_for is not None:
                # not wait_for(): on Python 3.11 it can swallow a cancellation
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(FIRST_LOOK_SECONDS):
                        await wait_for.wait()
            await poll_forever(health, ledger, read, after)

        task = asyncio.get_running_loop().create_task(guarded(f"following {source}", follow))
        self._tasks.append(task)

    def _checkpoint_read(self, source: Source, path: Path) -> Callable[[], Awaitable[None]]:
        reader, sides = CheckpointReader(path), SideReader()
        told: set[str] = set()

        async def read() -> None:
            side = await in_background(lambda: sides.read(reader.read()))
            checkpoint = side.checkpoint
            self._desk.checkpoints[ARTIFACT_OF[source]] = checkpoint
            self._desk.pairs.saw(ARTIFACT_OF[source], side)
            await in_background(self._desk.pairs.compare_tokenizers)
            for problem in checkpoint.problems:
                if str(problem) not in told:
                    log.warning("checkpoint: source=%s problem=%s", source, problem)
            told.clear()
            told.update(str(problem) for problem in checkpoint.problems)
            broken = [problem for problem in checkpoint.problems if problem.kind in BROKEN]
            if broken:
                # what could be read stays shown: one truncated shard does not make the geometry unknown
                raise SourceError(BROKEN[broken[0].kind], str(broken[0]))

        return read


async def guarded(what: str, run: Callable[[], Awaitable[None]]) -> None:
    """A loop that ends by a fault is started again: one broken loop must not silence the others."""
    while True:
        try:
            await run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log_fault(log, f"{what} failed, starting it again", error)
            await asyncio.sleep(1.0)
