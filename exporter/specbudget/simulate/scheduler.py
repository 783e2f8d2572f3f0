"""One data-parallel rank of the stand-in: its queue, its batch and its pool, pass by pass.

Time is virtual: `advance` carries out everything up to a moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from specbudget.simulate.adaptive import AdaptiveSteps
from specbudget.simulate.conditions import Conditions
from specbudget.simulate.pool import KvPool
from specbudget.simulate.rankstats import RankStats
from specbudget.simulate.reporting import DecodeStep, Queues, Reporter
from specbudget.simulate.request import Ending, Request
from specbudget.simulate.scenarios import Role
from specbudget.simulate.sizing import Sizes
from specbudget.simulate.steptime import decode_seconds, prefill_seconds, transfer_seconds

MAX_RUNNING = 48
CHUNK_TOKENS = 8192
STANDSTILL_SECONDS = 0.05
HEADROOM_TOKENS = 16
"""Slots per running request that admission leaves: few, as an optimistic new-token ratio does."""

ConditionsAt = Callable[[float], Conditions]


class Scheduler:
    """One rank. `started_token(request)` and `finished(request)` hear of first tokens and of requests that end.

    `steps` and `window` are speculative_num_steps and speculative_num_draft_tokens; where `adaptive` is given
    it moves both.
    """

    def __init__(
        self,
        *,
        rank: int,
        sizes: Sizes,
        role: Role,
        steps: int,
        window: int,
        adaptive: AdaptiveSteps | None,
        widest: int,
        adapters: bool,
        graphs: Mapping[str, int],
        conditions: ConditionsAt,
        log: Callable[[float, str], None],
        started_token: Callable[[Request], None],
        finished: Callable[[Request], None],
        now: float,
    ) -> None:
        self.rank = rank
        self.sizes = sizes
        self.role = role
        self.adaptive = adaptive
        self.graphs = graphs
        self.pool = KvPool(sizes.tokens, window=widest)
        self.reporter = Reporter(sizes=sizes, pool=self.pool, role=role, adapters=adapters, log=log, now=now)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.inflight: deque[tuple[float, Request]] = deque()
        self._steps, self._window = steps, window
        self._conditions = conditions
        self._started_token = started_token
        self._finished = finished
        self._now = now
        self._step: Callable[[float], None] | None = None
        self._step_ends = now

    @property
    def stats(self) -> RankStats:
        """What the rank has counted and last reported."""
        return self.reporter.stats

    @property
    def in_flight(self) -> int:
        """Requests waiting, running or being handed over."""
        return len(self.waiting) + len(self.running) + len(self.inflight)

    @property
    def pass_ends(self) -> float | None:
        """When the pass that is under way ends; None when nothing runs."""
        return None if self._step is None else self._step_ends

    def submit(self, request: Request) -> None:
        """A request arrives at this rank."""
        request.rank = self.rank
        self.waiting.append(request)

    def advance(self, until: float) -> None:
        """Carry out all passes that end by `until` (epoch seconds) and begin the next one."""
        while True:
            if self._step is not None:
                if self._step_ends > until:
                    return
                step, self._step = self._step, None
                self._now = self._step_ends
                step(self._now)
                continue
            if not self._begin():
                self._idle(until)
                return

    def _begin(self) -> bool:
        conditions = self._conditions(self._now)
        if not conditions.decoding and self.in_flight:
            self._run(STANDSTILL_SECONDS, lambda _now: None)
            return True
        self._handed_over()
        admitted = self._admit()
        if admitted:
            tokens = sum(count for _, count in admitted)
            self._run(prefill_seconds(tokens), lambda now: self._prefill(now, admitted))
            return True
        if self.running:
            if self.adaptive is not None:
                self.adaptive.before_batch(self._now, len(self.running))
            seconds = decode_seconds(len(self.running), speculation=conditions.speculation)
            self._run(seconds, self._decode)
            return True
        if self.inflight:
            self._step, self._step_ends = (lambda _now: None), self.inflight[0][0]
            return True
        return False

    def _run(self, seconds: float, step: Callable[[float], None]) -> None:
        self._step = step
        self._step_ends = self._now + seconds
        self.stats.busy_seconds += seconds

    def _idle(self, until: float) -> None:
        self.stats.idle_seconds += max(0.0, until - self._now)
        self._now = max(self._now, until)
        self.reporter.idle(self._now, self._queues())

    def _queues(self) -> Queues:
        return Queues(self.running, self.waiting, len(self.inflight))

    # Prefill -------------------------------------------------------------------------------------------------

    def _admit(self) -> list[tuple[Request, int]]:
        """Requests whose prompt is (further) computed in the next pass, with their new tokens in it."""
        budget = CHUNK_TOKENS
        admitted: list[tuple[Request, int]] = []
        while self.waiting and budget > 0 and len(self.running) + len(admitted) < MAX_RUNNING:
            request = self.waiting[0]
            if request.ending is Ending.ABORT_WAITING:
                self._end(self.waiting.popleft(), self._now)
                continue
            if request.held_tokens == 0:
                if not self.pool.admit(request, headroom=HEADROOM_TOKENS * len(self.running)):
                    break
                request.prefilled = request.cached_tokens
                if request.entered is None:
                    request.entered = self._now
            chunk = min(budget, request.context_tokens - request.prefilled)
            admitted.append((request, chunk))
            budget -= chunk
            if request.prefilled + chunk < request.context_tokens:
                break
            self.waiting.popleft()
        return admitted

    def _prefill(self, now: float, admitted: list[tuple[Request, int]]) -> None:
        running_before = len(self.running)
        new_tokens = hits = 0
        for request, chunk in admitted:
            if request.prefilled == request.cached_tokens:
                hits += request.cached_tokens
            request.prefilled += chunk
            new_tokens += chunk
            if request.prefilled >= request.context_tokens:
                self._first_token(request, now)
        self.reporter.prefill(
            now,
            self._queues(),
            sequences=len(admitted),
            new_tokens=new_tokens,
            hits=hits,
            running_before=running_before,
        )

    def _first_token(self, request: Request, now: float) -> None:
        if request.first_token is None:
            request.first_token = now
            self._started_token(request)
        done = request.produce(1)
        if self.role is Role.PREFILL:
            due = now + transfer_seconds(self._transferred_bytes(request))
            # One connection: a transfer ends no earlier than the one before it.
            self.inflight.append((max(due, self.inflight[-1][0]) if self.inflight else due, request))
        elif done:
            self._end(request, now)
        else:
            self.running.append(request)

    # Handing over --------------------------------------------------------------------------------------------

    def _transferred_bytes(self, request: Request) -> int:
        return request.prompt_tokens * (self.sizes.target_token_bytes + self.sizes.drafter_token_bytes)

    def _handed_over(self) -> None:
        """End the requests whose KV has arrived at the decode engine."""
        while self.inflight and self.inflight[0][0] <= self._now:
            due, request = self.inflight.popleft()
            if request.bootstrap is not None and not request.bootstrap.fake:
                size = self._transferred_bytes(request)
                self.stats.transferred(seconds=due - (request.first_token or due), size=size)
            self._end(request, self._now)

    # Decode --------------------------------------------------------------------------------------------------

    def _decode(self, now: float) -> None:
        conditions = self._conditions(now)
        speculation, lengths, repeating = conditions.speculation, conditions.lengths, conditions.repeating
        adaptive = self.adaptive
        steps, window = (self._steps, self._window) if adaptive is None else (adaptive.steps, adaptive.window)
        produced = accepted_now = 0
        ended: list[Request] = []
        rows = self.running
        for request in rows:
            if speculation:
                accepted = request.next_accepted(lengths[request.profile], window=window, repeating=repeating)
                request.verify(accepted)
                accepted_now += accepted
                produced += accepted + 1
                done = request.produce(accepted + 1)
            else:
                produced += 1
                done = request.produce(1)
            if done:
                ended.append(request)
        if adaptive is not None and speculation:
            adaptive.after_batch(now, batch=len(rows), accepted=accepted_now)
            steps, window = adaptive.steps, adaptive.window
        self.reporter.decode(
            now,
            self._queues(),
            DecodeStep(
                rows=len(rows),
                produced=produced,
                accepted=accepted_now,
                seconds=decode_seconds(len(rows), speculation=speculation),
                steps=steps if speculation else 0,
                window=window if speculation else 0,
            ),
        )
        if ended:
            gone = set(map(id, ended))
            self.running = [request for request in rows if id(request) not in gone]
            for request in ended:
                self._end(request, now)
        self._grow(now)

    def _grow(self, now: float) -> None:
        """Extend every running request's slots; retract the newest ones when the pool is full."""
        position = 0
        before = self.pool.available
        victims: list[Request] = []
        while position < len(self.running):
            if self.pool.grow(self.running[position]):
                position += 1
                continue
            victim = self.running.pop()
            self.pool.release(victim, keep=False)
            victim.retractions += 1
            victim.prefilled = 0
            self.waiting.appendleft(victim)
            victims.append(victim)
        if victims:
            self.reporter.retract(now, victims, gained=max(0, self.pool.available - before))

    def _end(self, request: Request, now: float) -> None:
        request.finished = now
        if request.held_tokens:
            self.pool.release(request, keep=True)
        self._finished(request)
