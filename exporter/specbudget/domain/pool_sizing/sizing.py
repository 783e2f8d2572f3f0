"""From the memory left to tokens: the engine's rule, and the bounds of its result.

Source: SGLang 0.5.18 and 0.5.23 `model_executor/pool_configurator.py` (`DefaultPoolConfigurator`) and
`mem_cache/kv_cache_configurator.py` (`config_from_budget`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specbudget.domain.kv_geometry import floor_to_page
from specbudget.domain.pool_sizing.memory import GIB
from specbudget.domain.pool_sizing.span import Span, TokenSpan
from specbudget.domain.pool_sizing.state_sizing import StateSizing


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizing:
    """The rule of one deployment: `cell` in bytes per token with the drafter's charge, page and cap in tokens.

    `state` is the plan of recurrent state, None for a model without. `reported_per_row` turns rows of one rank into
    the tokens that the engine reports.
    """

    cell: int
    page: int
    most_tokens: int | None = None
    state: StateSizing | None = None
    reported_per_row: int = 1

    def kv_bytes(self, rest_gib: float) -> int:
        """Bytes for KV of the memory left, what recurrent state takes being off; 0 or less: a refusal."""
        if self.state is None:
            return int(rest_gib * GIB)
        return self._beside(rest_gib, self.state.slots(rest_gib))

    def rows(self, rest_gib: float) -> int:
        """Rows of the pool on one rank; 0 where the engine refuses to start."""
        return self._rows(self.kv_bytes(rest_gib))

    def _beside(self, rest_gib: float, slots: int) -> int:
        """Bytes for KV beside this many slots of recurrent state; 0 where they do not serve one request."""
        if self.state is None or slots // self.state.ratio <= 0:
            return 0
        return int(self.state.left_gib(rest_gib, slots) * GIB)

    def _rows(self, kv_bytes: int) -> int:
        rows = floor_to_page(max(0, kv_bytes) // self.cell, self.page)
        if self.most_tokens is not None:
            rows = floor_to_page(min(rows, self.most_tokens), self.page)
        return rows

    def span(self, rest_gib: Span) -> TokenSpan:
        """The tokens that the engine reports, over all memory within the bounds."""
        point = self.rows(rest_gib.point)
        found = [point, self.rows(rest_gib.low), self.rows(rest_gib.high), *self._between(rest_gib)]
        scale = self.reported_per_row
        return TokenSpan(low=min(found) * scale, point=point * scale, high=max(found) * scale)

    def _between(self, rest_gib: Span) -> Iterator[int]:
        """Rows on either side of the steps at which one more slot of state is planned.

        Each such step takes memory off the KV all at once, so rows do not only grow with the memory. Over as many
        slots as one request needs they do: the least rows lie at one of the first such steps, the most at one of
        the last.
        """
        state = self.state
        if state is None or rest_gib.is_exact:
            return
        first, last = state.slots(rest_gib.low) + 1, state.slots(rest_gib.high)
        for slots in sorted({*range(first, last + 1)[: state.ratio], *range(first, last + 1)[-state.ratio :]}):
            before, at = _step(state, slots, rest_gib.low, rest_gib.high)
            yield self._rows(self._beside(before, slots))
            yield self._rows(self._beside(at, slots - 1))


def _step(state: StateSizing, slots: int, low: float, high: float) -> tuple[float, float]:
    """Two amounts of memory, in GiB and half a byte apart, between which the plan first reaches `slots`."""
    while high - low > 0.5 / GIB:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if state.slots(middle) >= slots:
            high = middle
        else:
            low = middle
    return low, high
