"""Rolling sums over wall-clock slots. `now` is always an argument; nothing here reads a clock."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specbudget.domain.acceptance import Floats

EMPTY_SLOT = -1


class SlotRing:
    """Sums of `columns` quantities in `slots` consecutive slots of `slot_seconds`.

    A value lands in the slot of its own time. Values older than the ring are dropped; values from the future
    (a clock ahead of ours) land in the slot of `now`.
    """

    __slots__ = ("_index", "_sums", "slot_seconds")

    def __init__(self, slot_seconds: float, slots: int, columns: int) -> None:
        self.slot_seconds = slot_seconds
        self._index = np.full(slots, EMPTY_SLOT, dtype=np.int64)
        self._sums = np.zeros((slots, columns), dtype=np.float64)

    def add(self, at: Floats, values: Floats, now: float) -> None:
        """Adds rows of `values` (n × columns) at times `at` (n, seconds since the epoch)."""
        newest = int(now // self.slot_seconds)
        slots = len(self._index)
        index = (np.clip(at, 0.0, now) // self.slot_seconds).astype(np.int64)
        kept = index > newest - slots
        for slot in np.unique(index[kept]):
            place = int(slot) % slots
            if self._index[place] != slot:
                self._index[place] = slot
                self._sums[place] = 0.0
            self._sums[place] += values[kept & (index == slot)].sum(axis=0)

    def total(self, seconds: float, now: float) -> Floats:
        """Sums per column over the slots that begin within the last `seconds`, the present one included."""
        newest = int(now // self.slot_seconds)
        oldest = newest - round(seconds / self.slot_seconds) + 1
        wanted = (self._index >= oldest) & (self._index <= newest)
        sums: Floats = self._sums[wanted].sum(axis=0)
        return sums

    def trace(self, seconds: float, now: float) -> Floats:
        """Sums per column over the `seconds` up to each slot of the ring (slots × columns), oldest first.

        The last row ends with the present slot; the first ones reach back beyond the ring and lack what is gone.
        """
        slots, width = len(self._index), max(1, round(seconds / self.slot_seconds))
        index = int(now // self.slot_seconds) - slots + 1 + np.arange(slots)
        places = index % slots
        sums = np.where((self._index[places] == index)[:, None], self._sums[places], 0.0)
        totals = np.concatenate([np.zeros((width, sums.shape[1])), sums]).cumsum(axis=0)
        rolling: Floats = totals[width:] - totals[:-width]
        return rolling

    def dump(self) -> tuple[list[int], list[list[float]]]:
        """The filled slots as plain lists, for keeping across a restart."""
        filled = np.flatnonzero(self._index != EMPTY_SLOT)
        return self._index[filled].tolist(), self._sums[filled].tolist()

    def load(self, index: list[int], sums: list[list[float]]) -> None:
        """Takes up what `dump` gave; slots of another shape are left out."""
        for slot, row in zip(index, sums, strict=False):
            if slot >= 0 and len(row) == self._sums.shape[1]:
                place = slot % len(self._index)
                if slot > self._index[place]:
                    self._index[place], self._sums[place] = slot, row


class LengthRing:
    """Distribution of acceptance lengths over the last hour, in bins of 0.01 and slots of a minute."""

    BIN = 100
    LONGEST = 64

    __slots__ = ("_counts", "_index", "_slots")

    def __init__(self, slots: int = 60) -> None:
        self._slots = slots
        self._index = np.full(slots, EMPTY_SLOT, dtype=np.int64)
        self._counts: npt.NDArray[np.uint32] = np.zeros((slots, self.BIN * self.LONGEST), dtype=np.uint32)

    def add(self, at: Floats, lengths: Floats, now: float) -> None:
        """Counts `lengths` (n) at times `at` (n)."""
        newest = int(now // 60.0)
        index = (np.clip(at, 0.0, now) // 60.0).astype(np.int64)
        # 2.6 is 260 hundredths although 2.6 * 100 falls short of it in binary
        bins = np.minimum((lengths * self.BIN + 1e-6).astype(np.int64), self._counts.shape[1] - 1)
        kept = index > newest - self._slots
        for slot in np.unique(index[kept]):
            place = int(slot) % self._slots
            if self._index[place] != slot:
                self._index[place] = slot
                self._counts[place] = 0
            self._counts[place] += np.bincount(bins[kept & (index == slot)], minlength=self._counts.shape[1]).astype(
                np.uint32
            )

    def reached_by(self, share: float, now: float) -> float | None:
        """The length, to 0.01 below, that `share` of the last hour's events reach.

        None with fewer events than 1 / (1 − share): a quantile that fine cannot be told from so few.
        """
        newest = int(now // 60.0)
        counts = self._counts[(self._index > newest - self._slots) & (self._index <= newest)].sum(axis=0)
        events = int(counts.sum())
        if events < 1.0 / (1.0 - share) - 1e-9:
            return None
        missed = int(np.floor(events * (1.0 - share) + 1e-9))
        return float(np.searchsorted(counts.cumsum(), missed, side="right")) / self.BIN

    def dump(self) -> list[tuple[int, list[int], list[int]]]:
        """Filled slots as (minute, bins, counts)."""
        out = []
        for place in np.flatnonzero(self._index != EMPTY_SLOT):
            bins = np.flatnonzero(self._counts[place])
            out.append((int(self._index[place]), bins.tolist(), self._counts[place, bins].tolist()))
        return out

    def load(self, slots: list[tuple[int, list[int], list[int]]]) -> None:
        """Takes up what `dump` gave."""
        for minute, bins, counts in slots:
            place = minute % self._slots
            if minute > self._index[place] and all(0 <= b < self._counts.shape[1] for b in bins):
                self._index[place] = minute
                self._counts[place] = 0
                self._counts[place, bins] = counts
