"""One life of the engine process: its start-up, its ranks, its clients. Knows no file and no socket.

Everything happens in virtual time: `advance` carries out what is due by a moment, in order, so that the same
seed gives the same requests, draws and log lines however finely the moments are cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from specbudget.simulate import loglines, startup
from specbudget.simulate.adaptive import ADAPTIVE_CONFIG, AdaptiveSteps
from specbudget.simulate.conditions import Conditions, Timeline
from specbudget.simulate.deployment import SERVED_MODEL, Deployment
from specbudget.simulate.exposition import Sample
from specbudget.simulate.frontend import Frontend
from specbudget.simulate.rankmetrics import gpu_samples, scheduler_samples
from specbudget.simulate.request import Request
from specbudget.simulate.scenarios import Role
from specbudget.simulate.scheduler import Scheduler
from specbudget.simulate.traffic import Traffic

MOST_IN_FLIGHT = 160
"""Clients per rank: as long as so many requests are not answered, nobody sends another."""

LogLine = Callable[[float, str, str], None]


class Process:
    """`log(when, text, prefix)` gets every log line, `ended(request)` every request that is over."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        seed: int,
        life: int,
        speed: float,
        requests_per_second: float,
        started: float,
        first_ready: float | None,
        log: LogLine,
        ended: Callable[[Request], None],
    ) -> None:
        self.deployment = deployment
        self.life = life
        self.started = started
        self.pid = 4_100 + 100 * life
        self.sizes = deployment.sizes(life)
        self.plan = startup.plan(deployment, life=life, speed=speed, pid=self.pid)
        self.frontend = Frontend(model_name=SERVED_MODEL, engine_type=deployment.engine_type)
        self.ready_at: float | None = None
        self.first_generation_at: float | None = None
        self.schedulers: list[Scheduler] = []
        self._scenario = deployment.scenario
        self._timeline = Timeline(self._scenario, speed=speed)
        self._first_ready = first_ready
        self._rate = requests_per_second
        self._log = log
        self._ended = ended
        self._lines = deque(self.plan.lines)
        self._traffic = Traffic(
            self._scenario,
            drafts=deployment.drafting.window - 1,
            seed=seed,
            life=life,
            longest_prompt_tokens=min(self.sizes.tokens // 4, deployment.context_tokens // 2),
        )
        self._warming: set[int] | None = None
        self._next_arrival: float | None = None
        self._turn = 0

    # Time ------------------------------------------------------------------------------------------------------

    @property
    def http_up_at(self) -> float:
        """When the server begins to accept connections, epoch seconds."""
        return self.started + self.plan.http_up

    def conditions(self, now: float) -> Conditions:
        """What the scenario says for a moment; before the first ready its beginning holds."""
        since = self._first_ready if self._first_ready is not None else self.ready_at
        return self._timeline.at(0.0 if since is None else max(0.0, now - since))

    def advance(self, until: float) -> None:
        """Carry out everything due by `until` (epoch seconds)."""
        self._start_up(until)
        if self.ready_at is None and not self._warm_up_ends(until):
            return
        while (arrival := self._arrival(until)) is not None:
            for scheduler in self.schedulers:
                scheduler.advance(arrival)
            self._arrive(arrival)
        for scheduler in self.schedulers:
            scheduler.advance(until)

    def _start_up(self, until: float) -> None:
        while self._lines and self.started + self._lines[0].at <= until:
            line = self._lines.popleft()
            self._print(self.started + line.at, line)
        scheduler_up = self.started + self.plan.scheduler_up
        if not self.schedulers and scheduler_up <= until:
            self.schedulers = [self._scheduler(rank) for rank in range(self._scenario.data_parallel)]
        warm_up = self.started + self.plan.warm_up
        if self._warming is None and warm_up <= until:
            self._warming = set()
            self._log(warm_up, loglines.access("127.0.0.1:40102", "GET /model_info HTTP/1.1", "200 OK"), "")
            if self._scenario.role is Role.PREFILL:
                self._log(warm_up, loglines.handover_warmup(len(self.schedulers))[0], "")
            for scheduler in self.schedulers:
                scheduler.advance(warm_up)
                request = self._traffic.warm_up(warm_up, scheduler.rank)
                self._warming.add(id(request))
                scheduler.submit(request)
                scheduler.advance(warm_up)

    def _warm_up_ends(self, until: float) -> bool:
        """Advance pass by pass, so that traffic begins at the moment of ready and not at the end of a cut."""
        while self.ready_at is None:
            ends = [end for scheduler in self.schedulers if (end := scheduler.pass_ends) is not None]
            moment = min(ends, default=until)
            for scheduler in self.schedulers:
                scheduler.advance(min(moment, until))
            if moment >= until:
                break
        return self.ready_at is not None

    def _scheduler(self, rank: int) -> Scheduler:
        prefix = self._prefix(rank, 0)
        drafter = self.deployment.drafting

        def log(when: float, text: str) -> None:
            self._log(when, text, prefix)

        adaptive = AdaptiveSteps(ADAPTIVE_CONFIG, first=drafter.steps, graph_sizes=self.deployment.graph_sizes, log=log)
        return Scheduler(
            rank=rank,
            sizes=self.sizes,
            role=self._scenario.role,
            steps=drafter.steps,
            window=drafter.window,
            adaptive=adaptive if drafter.adaptive else None,
            widest=drafter.widest,
            adapters=bool(self.deployment.adapters),
            graphs=self.deployment.graphs,
            conditions=self.conditions,
            log=log,
            started_token=self.frontend.first_token,
            finished=self._finished,
            now=self.started + self.plan.scheduler_up,
        )

    def _print(self, when: float, line: startup.Line) -> None:
        if not line.everywhere and not line.leader:
            self._log(when, line.text, "")
            return
        tensor_ranks = 1 if line.leader else self._scenario.tensor_parallel
        for data_rank in range(self._scenario.data_parallel):
            for tensor_rank in range(tensor_ranks):
                self._log(when, line.text, self._prefix(data_rank, tensor_rank))

    def _prefix(self, data_rank: int, tensor_rank: int) -> str:
        return loglines.rank_prefix(
            data_rank=data_rank if self._scenario.data_parallel > 1 else None,
            tensor_rank=tensor_rank if self._scenario.tensor_parallel > 1 else None,
        )

    # Requests ------------------------------------------------------------------------------------------------

    def _arrival(self, until: float) -> float | None:
        """The next arrival if it is due by `until`; asks again when arrivals have stopped."""
        if self._next_arrival is None:
            self._next_arrival = self._after(self.ready_at or self.started)
        if self._next_arrival > until:
            return None
        arrival = self._next_arrival
        self._next_arrival = self._after(arrival)
        return arrival

    def _after(self, moment: float) -> float:
        rate = self._rate * self.conditions(moment).arrivals
        return moment + (self._traffic.gap(rate) if rate > 0 else 0.25)

    def _arrive(self, now: float) -> None:
        conditions = self.conditions(now)
        if conditions.arrivals <= 0:
            return
        scheduler = self.schedulers[self._turn % len(self.schedulers)]
        if scheduler.in_flight >= MOST_IN_FLIGHT:
            return
        self._turn += 1
        scheduler.submit(self._traffic.request(conditions, now))

    def _finished(self, request: Request) -> None:
        self.frontend.finished(request)
        if self.first_generation_at is None:
            self.first_generation_at = request.finished
        self._ended(request)
        port = 1024 + request.prompt_tokens * 37 % 60_000
        self._log(request.finished, loglines.access(f"10.0.3.17:{port}", "POST /generate HTTP/1.1", "200 OK"), "")
        if self._warming and id(request) in self._warming:
            self._warming.discard(id(request))
            if not self._warming:
                self.ready_at = request.finished
                if self._scenario.role is Role.PREFILL:
                    for text in loglines.handover_warmup(len(self.schedulers))[1:]:
                        self._log(request.finished, text, "")
                self._log(request.finished, loglines.FIRED_UP, "")

    # Metrics -------------------------------------------------------------------------------------------------

    def samples(self, now: float) -> Iterator[Sample]:
        """Every sample of /metrics at `now`."""
        base = {"engine_type": self.deployment.engine_type, "model_name": SERVED_MODEL}
        for phase, seconds in self.plan.timings.items():
            yield Sample("startup_time_seconds", {**base, "phase": phase}, seconds)
        for phase, seconds in self.plan.graphs.items():
            yield Sample("startup_cuda_graph_time_seconds", {**base, "phase": phase}, seconds)
        yield from self.frontend.samples()
        free = self.deployment.free_after_start(self.life)
        for scheduler in self.schedulers:
            data = {"dp_rank": str(scheduler.rank)} if self._scenario.data_parallel > 1 else {}
            for tensor_rank in range(self._scenario.tensor_parallel):
                labels = {**base, **data, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": str(tensor_rank)}
                yield from gpu_samples(
                    labels,
                    sizes=self.sizes,
                    graphs=self.deployment.graphs,
                    free=free,
                    context=self.deployment.context_tokens,
                )
                yield from scheduler_samples(
                    labels,
                    stats=scheduler.stats,
                    now=now,
                    leads=tensor_rank == 0,
                    pid=self.pid + scheduler.rank * 10 + tensor_rank,
                )
