"""The simulated clients: when requests arrive and what they ask for, reproducible from a seed."""

from __future__ import annotations

import numpy as np

from specbudget.simulate.conditions import Conditions
from specbudget.simulate.prompts import CHARACTERS_PER_TOKEN, prompt_text, system_prompt
from specbudget.simulate.request import Ending, Request
from specbudget.simulate.scenarios import Profile

JSON_SCHEMA = '{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}'
LONG_PROMPT_EVERY = 500
LONG_PROMPT_CHARACTERS = (300_000, 600_000)
SHORTEST_OUTPUT, LONGEST_OUTPUT = 128, 320
STOP_TOKEN = 156892

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

    def __init__(self, profiles: dict[str, Profile], *, seed: int, life: int, longest_prompt_tokens: int) -> None:
        self._profiles = profiles
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
        output = int(generator.integers(SHORTEST_OUTPUT, LONGEST_OUTPUT + 1))
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
        sampling: dict[str, object] = {"max_new_tokens": limit}
        if chances["json_schema"]:
            sampling["json_schema"] = JSON_SCHEMA
        elif limit > 1:
            sampling |= {"temperature": 0.6, "top_p": 0.95}
        return Request(
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

    def warm_up(self, now: float) -> Request:
        """The request that the server sends to itself: 8 tokens (http_server.py `_execute_server_warmup`)."""
        generator = np.random.default_rng([*self._seed, 0, 0])
        profile = next(iter(self._profiles))
        return Request(
            rid=generator.bytes(16).hex(),
            profile=profile,
            adapter=None,
            text="The capital city of France is",
            prompt_tokens=6,
            shared_prefix="",
            shared_tokens=0,
            sampling_params={"temperature": 0, "max_new_tokens": 8},
            stream=False,
            output_tokens=8,
            ending=Ending.LENGTH,
            length_factor=1.0,
            arrived=now,
            generator=generator,
        )

    def _choose(self, conditions: Conditions, generator: np.random.Generator) -> str:
        names = list(conditions.shares)
        weights = np.cumsum([conditions.shares[name] for name in names])
        return names[int(np.searchsorted(weights, generator.random() * weights[-1], side="right"))]
