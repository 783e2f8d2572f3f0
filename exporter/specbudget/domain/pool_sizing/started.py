"""The memory that a start-up's log tells of: free before and after the loads, and what each load took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from specbudget.domain.pool_sizing.memory import ProfiledMemory, memory_from_log
from specbudget.domain.start_events import Mark, StartEvent

_POOLS = frozenset({Mark.KV_POOL, Mark.STATE_POOL, Mark.POOLS_END})


@dataclass(slots=True)
class _RankLoads:
    """One rank's loads before its pools. `taken` has one entry per finished load, the target's first."""

    before: float | None = None
    after: float | None = None
    taken: list[float] = field(default_factory=list)
    complete: bool = True
    past_loading: bool = False

    def take(self, event: StartEvent) -> None:
        if event.mark in _POOLS:
            self.past_loading = True
        if self.past_loading:
            return
        if event.mark is Mark.LOAD_BEGIN and self.before is None and not self.taken:
            self.before = event.free_bytes
        if event.mark is Mark.LOAD_END:
            self.after = event.free_bytes
            if event.size_bytes is None:
                self.complete = False
            else:
                self.taken.append(event.size_bytes)


def memory_from_start(events: Iterable[StartEvent]) -> ProfiledMemory | None:
    """The memory of one start, as of its rank with the least; None where a line is missing.

    Pools must have been allocated on every rank: before that a further load may be to come.
    """
    ranks: dict[str, _RankLoads] = {}
    for event in events:
        if event.mark in _POOLS or event.mark in (Mark.LOAD_BEGIN, Mark.LOAD_END):
            ranks.setdefault(event.rank, _RankLoads()).take(event)
    loads = list(ranks.values())
    before = [rank.before for rank in loads if rank.before is not None]
    after = [rank.after for rank in loads if rank.after is not None]
    if not loads or len(before) < len(loads) or len(after) < len(loads):
        return None
    counts = {len(rank.taken) for rank in loads}
    if len(counts) > 1 or 0 in counts or not all(rank.complete and rank.past_loading for rank in loads):
        return None
    return memory_from_log(
        before_load=min(before),
        after_load=min(after),
        target_weights=max(rank.taken[0] for rank in loads),
        drafter_weights=max(sum(rank.taken[1:]) for rank in loads),
        drafter_loads=counts.pop() - 1,
    )
