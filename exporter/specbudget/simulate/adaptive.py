"""The adaptive verify window: SGLang 0.5.23 speculative/adaptive_spec_params.py and adaptive_runtime_state.py.

Each range of batch sizes has candidates for speculative_num_steps and a moving mean of accepted drafts that
chooses among them. The window is one wider than the steps, and changes for the whole batch at once.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ADAPTIVE_CONFIG: Mapping[str, Any] = {
    "up_hysteresis": -2.0,
    "down_hysteresis": -1.5,
    "1": {"candidate_steps": [5, 7]},
    "16": {"candidate_steps": [5]},
}
"""--speculative-adaptive-config of the deployment: seven steps for small batches that accept them, else five."""

MEAN_WEIGHT = 0.2
UPDATE_EVERY = 5
WARM_UP_BATCHES = 10
"""The engine's defaults of ema_alpha, update_interval and warmup_batches."""


class StepSlot:
    """Steps for one range of batch sizes."""

    def __init__(self, candidates: Sequence[int], *, first: int, up: float, down: float) -> None:
        self.candidates = sorted(candidates)
        self.steps = first if first in self.candidates else self.candidates[len(self.candidates) // 2]
        self.mean = float(self.steps - 1)
        self._up, self._down = up, down
        self._batches = 0

    def update(self, accepted: float) -> bool:
        """Take in the mean of accepted drafts of one batch; True when the steps change."""
        self.mean += MEAN_WEIGHT * (accepted - self.mean)
        self._batches += 1
        late = self._batches - WARM_UP_BATCHES
        if late <= 0 or late % UPDATE_EVERY:
            return False
        before = self.steps
        self.steps = self._chosen()
        return self.steps != before

    def _chosen(self) -> int:
        candidates = self.candidates
        place = before = candidates.index(self.steps)
        while place > 0 and self.mean <= candidates[place - 1] - 0.5 + self._down:
            place -= 1
        if place == before:
            while place < len(candidates) - 1 and self.mean > candidates[place] - 0.5 + self._up:
                place += 1
        return candidates[place]


class AdaptiveSteps:
    """The active speculative_num_steps; `log(when, text)` gets the engine's lines about it."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        first: int,
        graph_sizes: Sequence[int],
        log: Callable[[float, str], None],
    ) -> None:
        slots = {int(key): entry for key, entry in config.items() if key.isdecimal()}
        self._sizes = sorted(slots)
        self._slots = {
            size: StepSlot(
                entry["candidate_steps"],
                first=first,
                up=float({**config, **entry}.get("up_hysteresis", 0.0)),
                down=float({**config, **entry}.get("down_hysteresis", -0.25)),
            )
            for size, entry in slots.items()
        }
        self._graph_sizes = sorted(graph_sizes)
        self._log = log
        self.steps = first

    @property
    def window(self) -> int:
        """The verify window: speculative_num_draft_tokens."""
        return self.steps + 1

    def before_batch(self, now: float, batch: int) -> None:
        """The next batch has this many requests."""
        self._activate(now, self._slot(batch).steps)

    def after_batch(self, now: float, *, batch: int, accepted: int) -> None:
        """A batch of this many requests has accepted so many drafts altogether."""
        slot = self._slot(batch)
        before = slot.steps
        if slot.update(accepted / batch):
            mean = f"(ema_accept_len={slot.mean:.2f})"
            self._log(now, f"Adaptive spec params updated: steps {before} -> {slot.steps} {mean}")
            self._activate(now, slot.steps)

    def _slot(self, batch: int) -> StepSlot:
        """A batch runs in the graph of the next captured size, and that size decides."""
        place = bisect.bisect_left(self._graph_sizes, batch)
        padded = self._graph_sizes[place] if place < len(self._graph_sizes) else batch
        return self._slots[self._sizes[max(0, bisect.bisect_right(self._sizes, padded) - 1)]]

    def _activate(self, now: float, steps: int) -> None:
        if steps == self.steps:
            return
        change = f"steps {self.steps} -> {steps}, draft_tokens {self.window} -> {steps + 1}"
        self.steps = steps
        self._log(now, f"Switch adaptive runtime state: {change}")
