"""What a prediction of the KV pool comes to."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.pool_sizing.span import Certainty, Span, TokenSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the arithmetic: what it is, the value of this deployment and its unit."""

    words: str
    value: float
    unit: str

    def __str__(self) -> str:
        number = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:,.4f}"
        return f"{self.words}: {number} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """What the drafter costs the target in tokens of its pool, at the point of the prediction.

    `kv_tokens` is for the charge per token, `weights_tokens` for the drafter's weights, `state_tokens` for what
    speculation changes in the plan of recurrent state. The last is negative where a target with few request slots
    keeps less state with speculation than without; then the whole cost may be negative too.
    """

    kv_tokens: int
    state_tokens: int
    weights_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens that the pool would hold more without the drafter."""
        return self.kv_tokens + self.state_tokens + self.weights_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePool:
    """Recurrent state on one device. `slots` is max_mamba_cache_size of one rank, without the padding slot.

    `state_bytes` holds the slots with their replay rings, `fixed_bytes` a ring that does not grow with them,
    `scratch_bytes` the states that a verify step keeps until it is decided. `ratio` is slots per running request.
    """

    slots: int
    ratio: int
    bytes_per_slot: int
    state_bytes: int
    fixed_bytes: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """SGLang's max_total_num_tokens and what goes with it; all bytes are of one device.

    `tokens` is as the engine reports it, `point` and all other figures of the most likely inputs. `cell_bytes` is
    what the engine divides by: `target_token_bytes` and `charged_token_bytes`. `drafter_pool_bytes` is what the
    drafter's pool really takes, `charged_bytes` what was kept for it; `unpriced_bytes` is the difference, which must
    fit beside activations and graphs in `slack_bytes` (negative: it lies idle). `without_drafter` and `cost` are None
    without a drafter and where its weights are not known; `max_running` is None where the context length decides and
    is not known.
    """

    certainty: Certainty
    tokens: TokenSpan
    rest_bytes: Span
    cell_bytes: int
    target_token_bytes: int
    charged_token_bytes: int
    drafter_token_bytes: int
    target_pool_bytes: int
    drafter_pool_bytes: int
    charged_bytes: int
    slack_bytes: float
    state: StatePool | None
    without_drafter: TokenSpan | None
    cost: TokenCost | None
    max_running: int | None
    steps: tuple[Step, ...]
    warnings: tuple[str, ...]

    @property
    def unpriced_bytes(self) -> int:
        """The drafter's pool less what was kept for it."""
        return self.drafter_pool_bytes - self.charged_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEnoughMemory:
    """The engine refuses to start: whatever the inputs within their bounds, nothing is left for KV."""

    certainty: Certainty
    rest_bytes: Span
    message: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPredicted:
    """The size is not predicted, and why."""

    reason: str


PoolOutcome = Prediction | NotEnoughMemory | NotPredicted
