"""SGLang's max_total_num_tokens before anything runs, with the arithmetic that leads to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

from specbudget.domain.pool_sizing.charges import TokenBytes, token_bytes
from specbudget.domain.pool_sizing.explanation import explain, warnings_of
from specbudget.domain.pool_sizing.inputs import PoolInputs
from specbudget.domain.pool_sizing.memory import GIB
from specbudget.domain.pool_sizing.outcome import (
    NotEnoughMemory,
    NotPredicted,
    PoolOutcome,
    Prediction,
    StatePool,
    TokenCost,
)
from specbudget.domain.pool_sizing.refusals import why_not_predicted
from specbudget.domain.pool_sizing.sizing import PoolSizing
from specbudget.domain.pool_sizing.span import Certainty, Span, TokenSpan
from specbudget.domain.pool_sizing.state_sizing import StateSizing, device_states, state_sizing

ESTIMATE_SHARE = 0.05
"""An estimate is never given tighter than this share of itself on either side."""

_LEAST_REQUESTS, _MOST_REQUESTS, _REQUESTS_PER_CONTEXT = 2048, 4096, 512
"""How many requests the engine allows by itself: its `resolve_max_num_reqs`."""


def predict_pool(inputs: PoolInputs) -> PoolOutcome:
    """The pool of a deployment, a refusal of the engine, or why it is not predicted."""
    reason = why_not_predicted(inputs)
    cells = None if reason is not None else token_bytes(inputs)
    if cells is None or inputs.fraction is None:
        return NotPredicted(reason=reason or "the engine's charge for this drafter is not known")
    return _Predictor(inputs=inputs, cells=cells, fraction=inputs.fraction).outcome()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Predictor:
    inputs: PoolInputs
    cells: TokenBytes
    fraction: float

    @property
    def certainty(self) -> Certainty:
        return Certainty.ESTIMATE if self.inputs.fraction_estimated else self.inputs.memory.certainty

    def outcome(self) -> PoolOutcome:
        speculative = self.inputs.algorithm is not None
        rest = self._rest()
        sizing = self._sizing(self.cells.cell, speculative=speculative)
        tokens = self._bounds(sizing.span(rest))
        state = _state_pool(sizing.state, rest.point)
        rest_bytes = Span(low=rest.low * GIB, point=rest.point * GIB, high=rest.high * GIB)
        steps = explain(self.inputs, self.cells, sizing, rest_bytes, state, self.fraction)
        if tokens.high <= 0:
            return NotEnoughMemory(
                certainty=self.certainty,
                rest_bytes=rest_bytes,
                message=_refusal(self.inputs, rest, state),
                steps=steps,
            )
        rows = sizing.rows(rest.point)
        dcp = self.cells.drafter_rows
        drafter_pool = (rows + self.inputs.page) * dcp * self.cells.drafter
        without, cost = self._without_drafter(rest, rows) if speculative else (None, None)
        slack = self.inputs.memory.before_load.point * (1 - self.fraction)
        return Prediction(
            certainty=self.certainty,
            tokens=tokens,
            rest_bytes=rest_bytes,
            cell_bytes=self.cells.cell,
            target_token_bytes=self.cells.target,
            charged_token_bytes=self.cells.charged,
            drafter_token_bytes=self.cells.drafter,
            target_pool_bytes=(rows + self.inputs.page) * self.cells.target,
            drafter_pool_bytes=drafter_pool,
            charged_bytes=rows * self.cells.charged,
            slack_bytes=slack,
            state=state,
            without_drafter=without,
            cost=cost,
            max_running=_max_running(self.inputs, rows, state),
            steps=steps,
            warnings=tuple(
                warnings_of(
                    self.inputs,
                    self.cells,
                    unpriced_bytes=drafter_pool - rows * self.cells.charged,
                    slack_bytes=slack,
                    tokens=tokens.point,
                    may_refuse=tokens.low <= 0,
                    cost=cost,
                )
            ),
        )

    def _rest(self, *, without_drafter: bool = False) -> Span:
        return self.inputs.memory.rest(
            self.fraction, reserved_gib=self.inputs.reserved_mib / 1024, without_drafter=without_drafter
        )

    def _sizing(self, cell: int, *, speculative: bool) -> PoolSizing:
        inputs = self.inputs
        states = device_states(inputs)
        # 0.5.23 reports the tokens of all decode-context ranks together, 0.5.18 the rows of one
        widened = inputs.decode_context_parallel if inputs.read_release == "0.5.23" else 1
        return PoolSizing(
            cell=cell,
            page=inputs.page,
            most_tokens=inputs.max_tokens,
            state=state_sizing(inputs, states, speculative=speculative) if states else None,
            reported_per_row=widened,
        )

    def _bounds(self, tokens: TokenSpan) -> TokenSpan:
        if self.certainty is not Certainty.ESTIMATE:
            return tokens
        return replace(
            tokens,
            low=min(tokens.low, floor(tokens.point * (1 - ESTIMATE_SHARE))),
            high=max(tokens.high, ceil(tokens.point * (1 + ESTIMATE_SHARE))),
        )

    def _without_drafter(self, rest: Span, rows: int) -> tuple[TokenSpan | None, TokenCost | None]:
        """The pool of the same arguments without speculation, and the difference part by part."""
        if self.inputs.memory.drafter_weights is None:
            return None, None
        kept = self._sizing(self.cells.target, speculative=True).rows(rest.point)
        plain = self._sizing(self.cells.target, speculative=False)
        lighter = plain.rows(rest.point)
        freed = self._rest(without_drafter=True)
        scale = plain.reported_per_row
        cost = TokenCost(
            kv_tokens=(kept - rows) * scale,
            state_tokens=(lighter - kept) * scale,
            weights_tokens=(plain.rows(freed.point) - lighter) * scale,
        )
        return self._bounds(plain.span(freed)), cost


def _state_pool(sizing: StateSizing | None, rest_gib: float) -> StatePool | None:
    if sizing is None:
        return None
    slots = sizing.slots(rest_gib)
    return StatePool(
        slots=slots,
        ratio=sizing.ratio,
        bytes_per_slot=sizing.state_bytes + sizing.ring_bytes,
        state_bytes=sizing.slot_bytes(slots),
        fixed_bytes=sizing.fixed_bytes,
        scratch_bytes=sizing.scratch_bytes(slots),
    )


def _max_running(inputs: PoolInputs, rows: int, state: StatePool | None) -> int | None:
    """Requests one data-parallel rank really admits: the arguments', the pool's and the state slots' least."""
    asked = inputs.running_per_rank(speculative=inputs.algorithm is not None)
    if asked is None:
        if inputs.context_length is None:
            return None
        by_context = int(rows / inputs.context_length * _REQUESTS_PER_CONTEXT)
        asked = max(min(by_context, _MOST_REQUESTS), _LEAST_REQUESTS)
    limits = [asked, rows // 2]
    if state is not None:
        limits.append(state.slots // state.ratio)
    return min(limits)


def _refusal(inputs: PoolInputs, rest: Span, state: StatePool | None) -> str:
    left = f"{rest.point:.2f} GiB are left for KV" if rest.point > 0 else f"{-rest.point:.2f} GiB are missing"
    slots = "" if state is None or state.slots >= state.ratio else ", which do not hold the state of one request"
    return f"not enough memory: at mem_fraction_static {inputs.fraction} {left} beside the weights{slots}"
