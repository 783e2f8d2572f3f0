"""How the budgets moved in the last hour: a bounded ring of samples, for people. No rule and no state reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from specbudget.catalog.lines import LINES
from specbudget.domain.line_state import Spending
from specbudget.domain.rolling import EMPTY_SLOT

SLOT_SECONDS = 5.0
SLOTS = 721
"""An hour and the present slot; the rolling windows of acceptance have the same slots."""

CARRIED_SLOTS = 3
"""A sample stands for the slots up to the next one, at most so many: the sidecar looks at least every 5 s or so."""

BREAK_EVEN = "break_even"

Samples = npt.NDArray[np.float32]


def budget_name(line: str, budget: str) -> str:
    """The name under which a budget's used ratio is kept."""
    return f"{line}.{budget}"


NAMES = (*(budget_name(line.id, budget.id) for line in LINES for budget in line.budgets), BREAK_EVEN)


class TrendRing:
    """The newest sample of each slot by name. It can be filled from a history: `note` with times of the past."""

    def __init__(self, names: Sequence[str] = NAMES, *, slots: int = SLOTS, slot_seconds: float = SLOT_SECONDS) -> None:
        self.slot_seconds = slot_seconds
        self._places = {name: place for place, name in enumerate(names)}
        self._index = np.full(slots, EMPTY_SLOT, dtype=np.int64)
        self._samples: Samples = np.full((slots, len(self._places)), np.nan, dtype=np.float32)
        self._newest = EMPTY_SLOT

    def note(self, at: float, values: Mapping[str, float | None]) -> None:
        """Keeps the samples of the time `at` (seconds since the epoch); None is not known. Other names are ignored.

        Each call says all that is known at that time: what it leaves out is not known then. A sample older than the
        newest goes into its own slot, unless that slot already tells of a later turn of the ring.
        """
        slot = int(at // self.slot_seconds)
        row = np.full(len(self._places), np.nan, dtype=np.float32)
        for name, value in values.items():
            if value is not None and name in self._places:
                row[self._places[name]] = value
        first = slot
        if self._newest < slot <= self._newest + CARRIED_SLOTS and self._newest != EMPTY_SLOT:
            first = self._newest + 1
        slots = len(self._index)
        for one in range(first, slot + 1):
            place = one % slots
            if self._index[place] <= one:
                self._index[place], self._samples[place] = one, row
        self._newest = max(self._newest, slot)

    def column(self, name: str, now: float) -> Samples:
        """One value per slot of the ring up to the present one, oldest first; NaN where nothing is known."""
        slots = len(self._index)
        index = int(now // self.slot_seconds) - slots + 1 + np.arange(slots)
        places = index % slots
        found: Samples = np.where(self._index[places] == index, self._samples[places, self._places[name]], np.nan)
        return found

    def note_spendings(self, at: float, spendings: Iterable[Spending], break_even: float | None) -> None:
        """Keeps the used ratio of every budget, and break-even."""
        ratios = {budget_name(s.line, s.budget): s.used_ratio for s in spendings}
        self.note(at, {**ratios, BREAK_EVEN: break_even})
