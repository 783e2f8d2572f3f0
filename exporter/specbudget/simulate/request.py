"""One request on its way through the stand-in engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from specbudget.simulate.acceptance import draw
from specbudget.simulate.configs import GAMMA

DRAW_BLOCK = 16
FAKE_BOOTSTRAP_HOST = "2.2.2.2"
"""SGLang disaggregation/utils.py."""


class Ending(StrEnum):
    """How a request will end when nothing else happens to it."""

    STOP = "stop"
    LENGTH = "length"
    ABORT_RUNNING = "abort-running"
    ABORT_WAITING = "abort-waiting"
    POOL_FULL = "pool-full"
    HANDED_OVER = "handed-over"
    """A prefill engine has given the prompt's KV to a decode engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Where a prefill engine and its decode engine meet for one request; `port` is None in the warm-up."""

    host: str
    port: int | None
    room: int

    @property
    def fake(self) -> bool:
        """The warm-up of a disaggregated engine hands over to nobody."""
        return self.host == FAKE_BOOTSTRAP_HOST

    @property
    def parameters(self) -> dict[str, object]:
        """As they stand among the request's parameters."""
        port = {} if self.port is None else {"bootstrap_port": self.port}
        return {"bootstrap_host": self.host, **port, "bootstrap_room": self.room}


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """What a client asked for, and what became of it so far.

    `output_tokens` is where generation ends: a stop token, max_new_tokens, or the moment of an abort.
    `drafts` is the number of drafts that each verify step counts as proposed: the engine multiplies the steps by
    the window of its launch, also where the window moves. `length_factor` is how much easier or harder than its
    profile this request is. Times are epoch seconds.
    """

    rid: str
    profile: str
    adapter: str | None
    text: str
    prompt_tokens: int
    shared_prefix: str
    shared_tokens: int
    sampling_params: dict[str, object]
    stream: bool
    output_tokens: int
    ending: Ending
    length_factor: float
    arrived: float
    generator: np.random.Generator
    drafts: int = GAMMA
    bootstrap: Bootstrap | None = None
    input_ids: tuple[int, ...] | None = None

    dispatched: float = 0.0
    entered: float | None = None
    first_token: float | None = None
    finished: float = 0.0
    rank: int = 0
    cached_tokens: int = 0
    prefilled: int = 0
    completion_tokens: int = 0
    retractions: int = 0
    verify_steps: int = 0
    accepted: int = 0
    histogram: list[int] = field(default_factory=list)
    held_tokens: int = 0

    _draws: list[int] = field(default_factory=list)
    _drawn_for: float = 0.0

    def next_accepted(self, length: float, *, window: int, repeating: bool) -> int:
        """Drafts that the next verify step accepts, where the profile's acceptance length is `length` now.

        `length` is what a window of nine would bring; a narrower one cuts each step.

        Drawn in blocks; a change of `length` throws the rest of a block away.
        """
        if repeating:
            return max(0, min(window - 1, round(length) - 1))
        if length != self._drawn_for or not self._draws:
            own = 1.0 + (length - 1.0) * self.length_factor
            self._draws = draw(self.generator, own, DRAW_BLOCK).tolist()
            self._drawn_for = length
        return min(self._draws.pop(), window - 1)

    def verify(self, accepted: int) -> None:
        """Count one verify step that accepted this many drafts."""
        self.verify_steps += 1
        self.accepted += accepted
        histogram = self.histogram
        if accepted >= len(histogram):
            histogram.extend([0] * (accepted + 1 - len(histogram)))
        histogram[accepted] += 1

    def produce(self, tokens: int) -> bool:
        """Add output tokens, trimmed at the end of the output; True when the request has reached it."""
        self.completion_tokens = min(self.completion_tokens + tokens, self.output_tokens)
        return self.completion_tokens >= self.output_tokens

    @property
    def proposed(self) -> int:
        """Proposed drafts as the engine counts them (tokenizer_manager.py `_calculate_spec_decoding_metrics`)."""
        return self.verify_steps * self.drafts

    @property
    def context_tokens(self) -> int:
        """Prompt and output so far."""
        return self.prompt_tokens + self.completion_tokens
