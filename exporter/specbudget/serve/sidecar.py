"""The sidecar put together: loops over the sources, one desk, one publisher, one store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from specbudget.budget.model import resolve
from specbudget.budget.reading import LoadedBudget, content_digest, load_budget
from specbudget.catalog.sets import ErrorReason, Source
from specbudget.errors import BudgetError, SourceError
from specbudget.serve.collect import collect
from specbudget.serve.desk import ARTIFACT_OF, Desk
from specbudget.serve.engine_loops import EngineLoops
from specbudget.serve.faults import log_fault
from specbudget.serve.ingest import RequestLoop, ServerLogLoop, TailLoop
from specbudget.serve.poll import poll_forever
from specbudget.serve.publish import Publisher
from specbudget.serve.store import Store
from specbudget.serve.web import listen, make_app
from specbudget.sources.checkpoint import CheckpointReader, ProblemKind
from specbudget.sources.http import EngineHttp, TlsFiles
from specbudget.sources.tail import Position

RELOAD_SECONDS = 5.0
"""Between two looks at the budget file's content."""

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


class Sidecar:
    """One engine's sidecar. `serve` runs until cancelled or told by SIGTERM or SIGINT."""

    def __init__(self, loaded: LoadedBudget, state: Path | None) -> None:
        self.desk = Desk(loaded, time.time())
        self._store = Store(state) if state is not None else None
        self._positions: dict[Source, list[Position]] = {}
        self._tails: dict[Source, TailLoop] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._http: EngineHttp | None = None
        self.publisher = Publisher(
            collect=lambda now: collect(self.desk, now), keep=self._keep, store=self._store, saved=self._saved
        )
        if self._store is not None:
            self._resume(self._store.read())

    async def serve(self, host: str, port: int, *, started: Callable[[int], None]) -> None:
        """Listens and follows all sources; `started` is told the port. Raises OSError when it cannot listen."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        app = make_app(publisher=self.publisher, service=lambda: self.desk.loaded.budget.service, reload=self.reload)
        self.publisher.publish(time.time())
        runner, taken = await listen(app, host, port)
        started(taken)
        self._start_sources()
        background = [
            loop.create_task(self._guarded("publishing", self.publisher.run)),
            loop.create_task(self._guarded("watching the budget file", self._watch_budget)),
        ]
        try:
            await stop.wait()
        finally:
            self._keep_positions()
            await self._stop_sources()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            self.publisher.publish(time.time(), last=True)
            await runner.cleanup()
            if self._store is not None:
                self._store.close()

    def reload(self) -> list[str]:
        """Reads the budget file again; a bad one leaves the old in force. Returns its problems."""
        try:
            loaded = load_budget(self.desk.loaded.path)
        except BudgetError as error:
            for problem in error.problems:
                log.error("budget not loaded, the old one stays in force: %s", problem)
            self.desk.reload_ok = False
            self.publisher.ask()
            return [str(problem) for problem in error.problems]
        log.info("budget loaded: file=%s", loaded.path)
        changed = loaded.budget != self.desk.loaded.budget
        if changed:
            self._keep_positions()
            ended = asyncio.get_running_loop().create_task(self._stop_sources())
            self._ending.add(ended)
            ended.add_done_callback(self._ending.discard)
            self.desk.use(loaded, time.time())
            self._start_sources()
        else:
            self.desk.loaded, self.desk.loaded_at, self.desk.reload_ok = loaded, time.time(), True
        self.publisher.ask()
        return []

    async def _watch_budget(self) -> None:
        """Loads the budget when its content changes, however the file was replaced."""
        seen = self.desk.loaded.digest
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                digest = content_digest(self.desk.loaded.path)
            except OSError:
                digest = ""
            if digest != seen:
                seen = digest
                if digest != self.desk.loaded.digest or not self.desk.reload_ok:
                    self.reload()

    def _start_sources(self) -> None:
        desk, budget = self.desk, self.desk.loaded.budget
        beside, ask = desk.loaded.path, self.publisher.ask
        tls = budget.engine.tls
        self._http = EngineHttp(
            budget.engine.url,
            api_key_file=_path(budget.engine.api_key_file, beside),
            tls=TlsFiles(
                ca_file=_path(tls.ca_file, beside),
                cert_file=_path(tls.cert_file, beside),
                key_file=_path(tls.key_file, beside),
                insecure_skip_verify=tls.insecure_skip_verify,
            ),
        )
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
        self._tails = {}
        for source, loop, given in (
            (Source.REQUEST_LOG, RequestLoop, budget.engine.request_log),
            (Source.SERVER_LOG, ServerLogLoop, budget.engine.server_log),
        ):
            if given is not None:
                kept = self._positions.get(source, [])
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
        health, ledger = self.desk.health[source], self.desk.ledger

        async def follow() -> None:
            if wait_for is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wait_for.wait(), FIRST_LOOK_SECONDS)
            await poll_forever(health, ledger, read, after)

        task = asyncio.get_running_loop().create_task(self._guarded(f"following {source}", follow))
        self._tasks.append(task)

    def _checkpoint_read(self, source: Source, path: Path) -> Callable[[], Awaitable[None]]:
        reader: CheckpointReader = CheckpointReader(path)
        told: set[str] = set()

        async def read() -> None:
            checkpoint = await asyncio.to_thread(reader.read)
            if self.desk.health.get(source) is None:
                return
            self.desk.checkpoints[ARTIFACT_OF[source]] = checkpoint
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

    async def _guarded(self, what: str, run: Callable[[], Awaitable[None]]) -> None:
        """A loop that ends by a fault is started again: one broken loop must not silence the others."""
        while True:
            try:
                await run()
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log_fault(log, f"{what} failed, starting it again", error)
                await asyncio.sleep(1.0)

    async def _stop_sources(self) -> None:
        """Ends the loops that run now and closes what they hold; a reload starts others meanwhile."""
        tasks, tails, http = self._tasks, self._tails, self._http
        self._tasks, self._tails, self._http = [], {}, None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for tail in tails.values():
            tail.tail.close()
        if http is not None:
            await http.close()

    def _keep_positions(self) -> None:
        for source, tail in self._tails.items():
            self._positions[source] = tail.tail.positions()

    def _keep(self, with_windows: bool) -> dict[str, Any]:
        self._keep_positions()
        kept: dict[str, Any] = {
            "identity": self._identity(),
            "ledger": self.desk.ledger.dump(),
            "engine_counters": self.desk.engine_counters.dump(),
            **{f"positions/{source}": positions for source, positions in self._positions.items()},
        }
        if with_windows:
            kept["windows"] = self.desk.book.dump()
        return kept

    def _saved(self, saved: bool) -> None:
        self.desk.state_saved = saved

    def _resume(self, kept: dict[str, Any]) -> None:
        """Positions always go on; counters and windows only under the same identity."""
        for source in (Source.REQUEST_LOG, Source.SERVER_LOG):
            self._positions[source] = msgspec.convert(kept.get(f"positions/{source}", []), list[Position])
        if kept.get("identity") == self._identity():
            self.desk.ledger.load(kept["ledger"])
            counters = kept["engine_counters"]
            self.desk.engine_counters.load(
                begun=counters["begun"], last={tuple(key): value for key, value in counters["last"]}
            )
            if "windows" in kept:
                self.desk.book.load(kept["windows"])

    def _identity(self) -> list[str]:
        """Whose counters these are: service, engine, and the pod or else the host."""
        budget = self.desk.loaded.budget
        return [budget.service, budget.engine.url, os.environ.get("POD_UID") or socket.gethostname()]


def _path(path: str | None, beside: Path) -> Path | None:
    return None if path is None else resolve(path, beside)
