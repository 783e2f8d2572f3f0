"""The simulated clients: when requests arrive and what they ask for, reproducible from a seed."""

from __future__ import annotations

import numpy as np

from specbudget.simulate.conditions import Conditions
from specbudget.simulate.prompts import CHARACTERS_PER_TOKEN, prompt_text, system_prompt
from specbudget.simulate.request import FAKE_BOOTSTRAP_HOST, Bootstrap, Ending, Request
from specbudget.simulate.scenarios import Role, Scenario

JSON_SCHEMA = '{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}'
LONG_PROMPT_EVERY = 500
LONG_PROMPT_CHARACTERS = (300_000, 600_000)
BOOTSTRAP_HOST, BOOTSTRAP_PORT = "10.0.3.21", 8998
STOP_TOKEN = 156892
WARM_UP_IDS = (10, 11, 12, 13)

CHANCES = {
    "one_token": 0.01,
    "json_schema": 0.05,
    "other_script": 0.10,
    "stop": 0.60,
    Ending.ABORT_RUNNING: 0.015,
    Ending.ABORT_WAITING: 0.005,
    Ending.POOL_FULL: 0.002,
}
"""Shares of the special kinds of requests."""


class Traffic:
    """Draws arrivals and requests; each request has a generator of its own, so their order does not matter."""

    def __init__(self, scenario: Scenario, *, drafts: int, seed: int, life: int, longest_prompt_tokens: int) -> None:
        self._profiles = scenario.profiles
        self._hands_over = scenario.role is Role.PREFILL
        self._shortest, self._longest_output = scenario.output_tokens
        self._drafts = drafts
        self._seed = (seed, life)
        self._gaps = np.random.default_rng([seed, life, 0])
        self._longest = longest_prompt_tokens
        self.count = 0

    def gap(self, rate: float) -> float:
        """Seconds until the next arrival at `rate` requests per second, exponentially distributed."""
        return float(self._gaps.exponential(1.0 / rate))

    def request(self, conditions: Conditions, now: float) -> Request:
        """The next request, arriving at `now` (epoch seconds)."""
        number = self.count
        self.count += 1
        generator = np.random.default_rng([*self._seed, number + 1])
        profile = self._choose(conditions, generator)
        chances = {name: generator.random() < chance for name, chance in CHANCES.items()}
        tokens = min(self._longest, max(64, int(conditions.prompt_tokens * generator.lognormal(0.0, 0.5))))
        if number % LONG_PROMPT_EVERY == LONG_PROMPT_EVERY // 3:
            wanted = int(generator.integers(*LONG_PROMPT_CHARACTERS)) // CHARACTERS_PER_TOKEN
            tokens = min(self._longest, wanted)
        text = prompt_text(generator, profile, tokens=tokens, other_script=chances["other_script"])
        prompt_tokens = max(8, len(text) // CHARACTERS_PER_TOKEN)
        output = int(generator.integers(self._shortest, self._longest_output + 1))
        ending, limit = Ending.LENGTH, output
        if chances["one_token"]:
            output = limit = 1
        elif chances[Ending.ABORT_WAITING]:
            ending = Ending.ABORT_WAITING
        elif chances[Ending.POOL_FULL]:
            ending, output = Ending.POOL_FULL, output // 2
        elif chances[Ending.ABORT_RUNNING]:
            ending, output = Ending.ABORT_RUNNING, output // 2
        elif chances["stop"]:
            ending, limit = Ending.STOP, 512
        if self._hands_over and ending is not Ending.ABORT_WAITING:
            ending, output = Ending.HANDED_OVER, 1
        sampling: dict[str, object] = {"max_new_tokens": limit}
        if chances["json_schema"]:
            sampling["json_schema"] = JSON_SCHEMA
        elif limit > 1:
            sampling |= {"temperature": 0.6, "top_p": 0.95}
        room = int(generator.integers(1 << 62)) if self._hands_over else None
        return Request(
            bootstrap=None if room is None else Bootstrap(host=BOOTSTRAP_HOST, port=BOOTSTRAP_PORT, room=room),
            drafts=self._drafts,
            rid=generator.bytes(16).hex(),
            profile=profile,
            adapter=self._profiles[profile].adapter,
            text=text,
            prompt_tokens=prompt_tokens,
            shared_prefix=profile,
            shared_tokens=len(system_prompt(profile)) // CHARACTERS_PER_TOKEN,
            sampling_params=sampling,
            stream=number % 3 == 0,
            output_tokens=output,
            ending=ending,
            length_factor=float(np.clip(generator.normal(1.0, 0.07), 0.75, 1.25)),
            arrived=now,
            generator=generator,
        )

    def warm_up(self, now: float, rank: int) -> Request:
        """The request that the server sends to itself: 8 tokens (http_server.py `_execute_server_warmup`).

        A prefill engine gets four token ids instead of a text and hands them over to nobody.
        """
        generator = np.random.default_rng([*self._seed, 0, 0])
        profile = next(iter(self._profiles))
        hands_over = self._hands_over
        return Request(
            bootstrap=Bootstrap(host=FAKE_BOOTSTRAP_HOST, port=None, room=rank) if hands_over else None,
            input_ids=WARM_UP_IDS if hands_over else None,
            drafts=self._drafts,
            rid=generator.bytes(16).hex(),
            profile=profile,
            adapter=None,
            text="The capital city of France is",
            prompt_tokens=len(WARM_UP_IDS) if hands_over else 6,
            shared_prefix="",
            shared_tokens=0,
            sampling_params={"temperature": 0, "max_new_tokens": 8},
            stream=False,
            output_tokens=1 if hands_over else 8,
            ending=Ending.HANDED_OVER if hands_over else Ending.LENGTH,
            length_factor=1.0,
            arrived=now,
            generator=generator,
        )

    def _choose(self, conditions: Conditions, generator: np.random.Generator) -> str:
        names = list(conditions.shares)
        weights = np.cumsum([conditions.shares[name] for name in names])
        return names[int(np.searchsorted(weights, generator.random() * weights[-1], side="right"))]
