"""The stand-in engine as a whole: a process that lives through its scenario, its files and its HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from specbudget.simulate.adaptive import ADAPTIVE_CONFIG
from specbudget.simulate.budgetfile import budget_text
from specbudget.simulate.checkpoint import write_drafter, write_target
from specbudget.simulate.deployment import Deployment
from specbudget.simulate.http import application
from specbudget.simulate.lockfile import write_pair_lock
from specbudget.simulate.port import bind_port
from specbudget.simulate.process import Process
from specbudget.simulate.records import record
from specbudget.simulate.request import Request
from specbudget.simulate.requestlog import RequestLog
from specbudget.simulate.scenarios import Action, Scenario
from specbudget.simulate.serverlog import ServerLog
from specbudget.simulate.truth import Truth

TICK_SECONDS = 0.04
TRUTH_SECONDS = 1.0
OTHER_DRAFTER = {"target_layer_ids": [1, 11, 23, 29, 39], "max_position_embeddings": 131072}
"""What the swapped drafter's config.json says otherwise."""


class StandInEngine:
    """A simulated SGLang deployment.

    `start` writes the files and begins the start-up; the port is bound at once and refuses connections until
    the simulated server listens. `clock` gives epoch seconds. `truth` is exact at any time.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        directory: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        seed: int = 0,
        speed: float = 1.0,
        requests_per_second: float | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if speed <= 0:
            raise ValueError("speed: give a number above 0")
        self.scenario = scenario
        self.directory = directory
        self.api_key = api_key
        self.truth = Truth()
        self._host, self._port = host, port
        self._seed, self._speed = seed, speed
        rate = requests_per_second
        self._rate = scenario.requests_per_second if rate is None else rate
        self._clock = clock
        self._socket: socket.socket | None = None
        self._deployment: Deployment | None = None
        self._process: Process | None = None
        self._request_log: RequestLog | None = None
        self._server_log: ServerLog | None = None
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.Task[None] | None = None
        self._locking: asyncio.Task[None] | None = None
        self._actions: deque[tuple[float, Action]] = deque()
        self._first_ready: float | None = None
        self._truth_due = 0.0

    # Life ------------------------------------------------------------------------------------------------------

    @property
    def deployment(self) -> Deployment:
        """Where everything is; known from `start` on."""
        if self._deployment is None:
            raise RuntimeError("the stand-in engine has not been started")
        return self._deployment

    @property
    def process(self) -> Process:
        """The present life of the engine."""
        if self._process is None:
            raise RuntimeError("the stand-in engine has not been started")
        return self._process

    @property
    def url(self) -> str:
        """The engine's address."""
        return self.deployment.url

    @property
    def ready(self) -> bool:
        """True from "fired up" on, in the present life."""
        return self._process is not None and self._process.ready_at is not None

    async def start(self) -> None:
        """Write the deployment's files, bind the port, begin the start-up. Raises OSError where it cannot."""
        self._socket = bind_port(self._host, self._port)
        self._port = self._socket.getsockname()[1]
        self._deployment = Deployment(
            scenario=self.scenario,
            folder=self.directory,
            host=self._host,
            port=self._port,
            api_key=self.api_key,
        )
        try:
            self._write_files()
            self._request_log = RequestLog(self._deployment.requests)
            self._server_log = ServerLog(self._deployment.server_log)
        except OSError:
            await self._close()
            raise
        if self.scenario.approved:
            # reading the headers of all shards takes a second, for which no start-up waits
            lock = asyncio.to_thread(write_pair_lock, self._deployment, now=self.now())
            self._locking = asyncio.create_task(lock, name="locking the pair")
        self._begin_life(0)
        self._loop = asyncio.create_task(self._live(), name="stand-in engine")

    async def wait_ready(self) -> None:
        """Wait until the present life is ready; raises what broke the engine. Bound it with asyncio.timeout."""
        while not self.ready:
            if self._loop is None or self._loop.done():
                await self.wait()
                raise RuntimeError("the stand-in engine has ended")
            await asyncio.sleep(0.01)

    async def wait(self) -> None:
        """Wait until the engine ends by itself, which only an error makes it do."""
        if self._loop is not None:
            await self._loop

    async def stop(self) -> None:
        """End at once: close the server and the files, write the truth for the last time."""
        try:
            if self._loop is not None:
                self._loop.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._loop
        finally:
            self._loop = None
            if self._locking is not None:
                await asyncio.gather(self._locking, return_exceptions=True)
            await self._close()
            if self._process is not None:
                self._write_truth()

    async def _close(self) -> None:
        await self._close_http()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._request_log is not None:
            self._request_log.close()
        if self._server_log is not None:
            self._server_log.close()
            self._server_log = None

    async def __aenter__(self) -> StandInEngine:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    # What the endpoints use --------------------------------------------------------------------------------------

    def now(self) -> float:
        """Epoch seconds."""
        return self._clock()

    def count_health_call(self, path: str) -> None:
        """Count a call that makes a real engine generate a token."""
        self.truth.health_calls[path] += 1

    def log(self, when: float, text: str, prefix: str = "") -> None:
        """Write one line to the server log."""
        if self._server_log is not None:
            self._server_log.write(when, text, prefix=prefix)

    # Inside ------------------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        deployment = self.deployment
        deployment.folder.mkdir(parents=True, exist_ok=True)
        write_target(deployment.target)
        write_drafter(deployment.drafter, drafter=deployment.drafting, changes=dict(self.scenario.drafter_config))
        if deployment.drafting.adaptive:
            deployment.adaptive_config.write_text(json.dumps(ADAPTIVE_CONFIG, indent=2) + "\n", encoding="utf-8")
        if self.api_key is not None:
            key = deployment.folder / "engine-key"
            key.write_text(self.api_key + "\n", encoding="utf-8")
            key.chmod(0o600)
        deployment.budget.write_text(budget_text(deployment, speed=self._speed), encoding="utf-8")

    def _begin_life(self, life: int) -> None:
        now = self.now()
        self._process = Process(
            self.deployment,
            seed=self._seed,
            life=life,
            speed=self._speed,
            requests_per_second=self._rate,
            started=now,
            first_ready=self._first_ready,
            log=self.log,
            ended=self._request_ended,
        )
        self.truth.begin_start(now)

    def _request_ended(self, request: Request) -> None:
        if self._request_log is not None:
            self._request_log.write(record(request, request.rank), request.finished)
        self.truth.add(request)

    async def _live(self) -> None:
        while True:
            now = self.now()
            process = self.process
            process.advance(now)
            if self._locking is not None and self._locking.done():
                await self._locked()
            self.truth.ready_at, self.truth.first_generation_at = process.ready_at, process.first_generation_at
            if self._first_ready is None and process.ready_at is not None:
                self._first_ready = process.ready_at
                self._plan_actions(process.ready_at)
            while self._actions and self._actions[0][0] <= now:
                await self._act(self._actions.popleft()[1])
            if self._server_log is not None:
                self._server_log.flush()
            if self._runner is None and self.process.http_up_at <= now:
                await self._open_http()
            if now >= self._truth_due:
                self._truth_due = now + TRUTH_SECONDS
                self._write_truth()
            await asyncio.sleep(TICK_SECONDS)

    def _plan_actions(self, ready: float) -> None:
        planned = [
            (ready + phase.at / self._speed, action)
            for phase in sorted(self.scenario.phases, key=lambda phase: phase.at)
            for action in phase.actions
        ]
        self._actions.extend(planned)

    async def _act(self, action: Action) -> None:
        log = self._request_log
        match action:
            case Action.RESTART:
                await self._close_http()
                self._socket = bind_port(self._host, self._port)
                self._begin_life(self.process.life + 1)
            case Action.ROTATE_BY_RENAME if log is not None:
                log.rotate_by_rename()
            case Action.ROTATE_BY_COPY if log is not None:
                log.rotate_by_copy()
            case Action.NEXT_HOUR if log is not None:
                log.next_hour()
            case Action.SWAP_DRAFTER:
                await self._locked()
                write_drafter(self.deployment.drafter, drafter=self.deployment.drafting, changes=OTHER_DRAFTER)

    async def _locked(self) -> None:
        """Waits until the pair is locked as it was at the start; raises what kept it from that."""
        locking, self._locking = self._locking, None
        if locking is not None:
            await locking

    async def _open_http(self) -> None:
        if self._socket is None:
            raise RuntimeError("no port is bound")
        runner = web.AppRunner(application(self), access_log=None, handle_signals=False, shutdown_timeout=0.2)
        await runner.setup()
        self._runner = runner
        await web.SockSite(runner, self._socket).start()

    async def _close_http(self) -> None:
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
            self._socket = None

    def _write_truth(self) -> None:
        process = self._process
        if process is not None:
            self.truth.engine = {
                str(scheduler.rank): {
                    "decode_passes": scheduler.stats.decode_passes,
                    "decode_tokens": scheduler.stats.decode_tokens,
                    "reported_steps": scheduler.stats.lifetime.rows,
                    "reported_accepted_drafts": scheduler.stats.lifetime.accepted,
                    "running": len(scheduler.running),
                    "waiting": len(scheduler.waiting),
                }
                for scheduler in process.schedulers
            }
        self.truth.write(self.deployment.truth)
