"""Break-even: the acceptance length under which two models are slower than one."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Break-even by running requests, as points (running, length) with `running` rising.

    Between two points it is interpolated linearly; outside them the nearest point holds, since nothing was
    measured there. `everywhere` says that it was given for every batch, as one number.
    """

    points: tuple[tuple[int, float], ...]
    everywhere: bool = False

    def is_lower_bound(self, running: float) -> bool:
        """Whether `running` lies beyond what was measured: break-even rises with the batch, so it may be higher."""
        return not self.everywhere and running > self.points[-1][0]

    def at(self, running: float) -> float:
        """The break-even acceptance length with `running` requests in the batch."""
        runs = [run for run, _ in self.points]
        upper = bisect_right(runs, running)
        if upper == 0:
            return self.points[0][1]
        if upper == len(self.points):
            return self.points[-1][1]
        (run_0, length_0), (run_1, length_1) = self.points[upper - 1], self.points[upper]
        return length_0 + (length_1 - length_0) * (running - run_0) / (run_1 - run_0)


def constant(length: float) -> BreakEven:
    """One break-even for every batch."""
    return BreakEven(((1, length),), everywhere=True)


def from_step_times(*, plain_ms: float, draft_ms: float, verify_ms: float, overhead_ms: float) -> BreakEven:
    """τ* = (T_draft + T_verify + T_overhead) / T_plain, all per step of the same batch."""
    return constant((draft_ms + verify_ms + overhead_ms) / plain_ms)


def from_trial(*, length: float, speedup: float) -> BreakEven:
    """τ* = τ / s of one A/B: at acceptance length τ the pair was s times as fast as the target alone."""
    return constant(length / speedup)


def speedup(*, length: float, break_even: float) -> float:
    """How many times as fast the pair is as the target alone: τ / τ*. Below 1 two models are slower than one."""
    return length / break_even
