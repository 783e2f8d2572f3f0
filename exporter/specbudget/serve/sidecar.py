"""The sidecar put together: loops over the sources, one desk, one publisher, one store."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from specbudget.budget.reading import LoadedBudget, content_digest
from specbudget.catalog.sets import Source
from specbudget.errors import BudgetError
from specbudget.history.recorder import Recorder
from specbudget.history.writer import DEFAULT_BYTES
from specbudget.pair.nested_drafter import load_deployment
from specbudget.serve.collect import collect
from specbudget.serve.desk import Desk
from specbudget.serve.faults import log_fault
from specbudget.serve.following import Following, guarded
from specbudget.serve.listener import listen
from specbudget.serve.page.board import Board
from specbudget.serve.page.viewers import Viewers
from specbudget.serve.protection import Protection
from specbudget.serve.publish import Publisher
from specbudget.serve.store import Store
from specbudget.serve.web import make_app
from specbudget.serve.web_config import LoadedWebConfig
from specbudget.sources.tail import Position
from specbudget.sources.upstream_tls import check_tls_files

RELOAD_SECONDS = 5.0
"""Between two looks at the budget file's content."""

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Sidecar:
    """One engine's sidecar, open to all without `web`. `serve` runs until cancelled or told by SIGTERM or SIGINT."""

    def __init__(
        self,
        loaded: LoadedBudget,
        state: Path | None,
        web: LoadedWebConfig | None = None,
        history_bytes: int = DEFAULT_BYTES,
    ) -> None:
        self.desk = Desk(loaded, time.time())
        self._protection = Protection(web, self._web_config_noted, self._readers_changed) if web is not None else None
        self._context = web.context if web is not None else None
        self._store = Store(state) if state is not None else None
        self._history_bytes = history_bytes
        self._recorder: Recorder | None = None
        self._positions: dict[Source, list[Position]] = {}
        self._following: Following | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.board = Board(self.desk)
        self.viewers = Viewers(self.board)
        self.publisher = Publisher(
            settle=lambda _: self.desk.count_starts(),
            collect=lambda now: collect(self.desk, now),
            keep=self._keep,
            store=self._store,
            saved=self._saved,
            shown=self._shown,
        )
        if self._store is not None:
            self._resume(self._store.read())

    async def serve(self, host: str, port: int, *, started: Callable[[int], None]) -> None:
        """Listens and follows all sources; `started` is told the port. Raises OSError when it cannot listen."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        protection = self._protection
        app = make_app(
            publisher=self.publisher,
            board=self.board,
            viewers=self.viewers,
            reload=self.reload,
            guard=protection.guard if protection is not None else None,
        )
        if self._store is not None and self._history_bytes:
            self._recorder = Recorder(self._store.folder, self._history_bytes)
            self.publisher.record = self._recorder.offer
        self.publisher.publish(time.time())
        listener, taken = await listen(app, host, port, self._context)
        started(taken)
        self._follow()
        background = [
            loop.create_task(guarded("publishing", self.publisher.run)),
            loop.create_task(guarded("watching the budget file", self._watch_budget)),
        ]
        if protection is not None:
            protection.listener = listener
            watch = functools.partial(protection.watch, RELOAD_SECONDS)
            background.append(loop.create_task(guarded("watching the web configuration", watch)))
        try:
            await stop.wait()
        finally:
            self.viewers.close()
            self._leave()
            await asyncio.gather(*self._ending, return_exceptions=True)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            self.publisher.publish(time.time(), last=True)
            if self._recorder is not None:
                self._recorder.close()
            await listener.cleanup()
            if self._store is not None:
                self._store.close()

    def _shown(self, now: float) -> None:
        """What people see follows what is published; a fault of theirs must not hold up what rules read."""
        try:
            self.desk.note_trends(now)
            self.viewers.publish()
        except Exception as error:
            log_fault(log, "the status page is not up to date", error)

    def reload(self) -> list[str]:
        """Reads budget file and web configuration again; a bad one leaves the old in force. Returns their problems."""
        web_problems = self._protection.reload() if self._protection is not None else []
        return [*self._reload_budget(), *web_problems]

    def _reload_budget(self) -> list[str]:
        try:
            loaded = load_deployment(self.desk.loaded.path)
            if loaded.budget.engine.tls != self.desk.loaded.budget.engine.tls:
                check_tls_files(loaded.budget, loaded.path)
        except BudgetError as error:
            for problem in error.problems:
                log.error("budget not loaded, the old one stays in force: %s", problem)
            self.desk.reload_ok = False
            self.publisher.ask()
            return [str(problem) for problem in error.problems]
        log.info("budget loaded: file=%s", loaded.path)
        changed = loaded.budget != self.desk.loaded.budget
        if changed:
            self._leave()
            self.desk.use(loaded, time.time())
            self._follow()
        else:
            self.desk.loaded, self.desk.loaded_at, self.desk.reload_ok = loaded, time.time(), True
        self.publisher.ask()
        return []

    async def _watch_budget(self) -> None:
        """Loads budget and lock when their content changes, however the files were replaced."""
        seen = self.desk.loaded.digest
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            self.desk.pairs.read_lock()
            try:
                digest = content_digest(self.desk.loaded.path)
            except OSError:
                digest = ""
            if digest != seen:
                seen = digest
                if digest != self.desk.loaded.digest or not self.desk.reload_ok:
                    self._reload_budget()

    def _web_config_noted(self, ok: bool) -> None:
        self.desk.web_config_ok = ok
        self.publisher.ask()

    def _readers_changed(self) -> None:
        """Who may read has changed: an open page shows its password again."""
        self.viewers.send_away()

    def _follow(self) -> None:
        """Follows the sources of the budget in force, from where they were left."""
        self._following = Following(self.desk, self._positions, self.publisher.ask)

    def _leave(self) -> None:
        """Stops following at once; files and connections are given back as the loop goes on."""
        following, self._following = self._following, None
        if following is None:
            return
        self._positions.update(following.positions())
        following.stop()
        ended = asyncio.get_running_loop().create_task(following.closed())
        self._ending.add(ended)
        ended.add_done_callback(self._ending.discard)

    def _keep(self, with_windows: bool) -> dict[str, Any]:
        if self._following is not None:
            self._positions.update(self._following.positions())
        kept: dict[str, Any] = {
            "identity": self._identity(),
            "ledger": self.desk.ledger.dump(),
            "engine_counters": self.desk.engine_counters.dump(),
            "starts": self.desk.starts.dump(epoch=time.time(), monotonic=time.monotonic()),
            **{f"positions/{source}": positions for source, positions in self._positions.items()},
        }
        if with_windows:
            kept["windows"] = self.desk.book.dump()
        return kept

    def _saved(self, saved: bool) -> None:
        self.desk.state_saved = saved and (self._recorder is None or self._recorder.saved)

    def _resume(self, kept: dict[str, Any]) -> None:
        """Positions always go on; counters and windows only under the same identity."""
        for source in (Source.REQUEST_LOG, Source.SERVER_LOG):
            self._positions[source] = (
                self._taken(f"positions/{source}", lambda name: _positions(kept[name]), kept) or []
            )
        if kept.get("identity") != self._identity():
            return
        desk, now, monotonic = self.desk, time.time(), time.monotonic()
        self._taken("ledger", lambda name: desk.ledger.load(kept[name]), kept)
        self._taken("engine_counters", lambda name: desk.engine_counters.load(**_counters(kept[name])), kept)
        self._taken("starts", lambda name: desk.starts.load(kept[name], epoch=now, monotonic=monotonic), kept)
        self._taken("windows", lambda name: desk.book.load(kept[name]), kept)
        log.info("going on from the kept state: identity=%s", "/".join(self._identity()))

    def _taken(self, name: str, take: Callable[[str], Result], kept: dict[str, Any]) -> Result | None:
        """What is kept under a name; what is there in another shape is left out and told."""
        if name not in kept:
            return None
        try:
            return take(name)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            log.error(
                "part of the state has another shape and is begun anew: part=%s reason=%s", name, type(error).__name__
            )
            return None

    def _identity(self) -> list[str]:
        """Whose counters these are: service, engine, and the pod or else the host."""
        budget = self.desk.loaded.budget
        return [budget.service, budget.engine.url, os.environ.get("POD_UID") or socket.gethostname()]


def _positions(kept: Any) -> list[Position]:
    return msgspec.convert(kept, list[Position])


def _counters(kept: Any) -> dict[str, Any]:
    return {"begun": bool(kept["begun"]), "last": {tuple(key): value for key, value in kept["last"]}}
