"""The device memory that an engine has left when it sizes its KV pool, from the three kinds of evidence.

Source: SGLang 0.5.18 and 0.5.23 `mem_cache/kv_cache_configurator.py` (`_profile_available_bytes`): free memory less
the share of the memory before loading that stays for activations and graphs. Every figure is of one device, free
memory the least over the ranks, as the engine takes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.pool_sizing.span import Certainty, Span, exactly, within_share

GIB = 2**30
LOG_ROUNDING = 0.005 * GIB
"""The log prints free memory and weights with two decimals of a GiB."""

_BELOW_THE_LABEL = (1.0, 2.0, 3.0)
"""GiB that the driver, the CUDA context and the communicator take of the memory that a GPU is sold with."""

_ZERO = exactly(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledMemory:
    """Bytes on one device while the pool is sized.

    `before_load` is free memory after the process group is up and before any weight. `target_weights` and
    `drafter_weights` are what is charged then: an EAGLE or MTP drafter still holds copies of embedding and head.
    `drafter_weights` is None where it is not known; the pool without the drafter is then not known either. `other` is
    everything else allocated before the pool is sized. `after_load` is free memory as it was measured after the last
    load; None to compute it from the weights and `other`.
    """

    before_load: Span
    target_weights: Span
    drafter_weights: Span | None
    certainty: Certainty
    other: Span = _ZERO
    after_load: Span | None = None

    def free(self) -> Span:
        """Free memory after the loads."""
        if self.after_load is not None:
            return self.after_load
        taken = [self.target_weights, self.drafter_weights or _ZERO, self.other]
        return Span(
            low=self.before_load.low - sum(span.high for span in taken),
            point=self.before_load.point - sum(span.point for span in taken),
            high=self.before_load.high - sum(span.low for span in taken),
        )

    def rest(self, fraction: float, *, reserved_gib: float = 0.0, without_drafter: bool = False) -> Span:
        """GiB left for KV and recurrent state, in the engine's own order of floating-point operations.

        `reserved_gib` is kept for multimodal inputs. `without_drafter` gives back what the drafter's weights take,
        as far as they are known. Negative where the weights do not fit.
        """
        free = self.free()
        returned = (self.drafter_weights or _ZERO) if without_drafter else _ZERO

        def left(free_bytes: float, before: float, back: float) -> float:
            return (free_bytes + back) / GIB - before / GIB * (1 - fraction) - reserved_gib

        before = self.before_load
        if self.after_load is None:
            # computed free memory rises and falls with the memory before loading, by more than its own slack
            low, high = before.low, before.high
            weights = _ZERO if without_drafter else self.drafter_weights or _ZERO
            return Span(
                low=left(low - self.target_weights.high - weights.high - self.other.high, low, 0.0),
                point=left(free.point, before.point, returned.point),
                high=left(high - self.target_weights.low - weights.low - self.other.low, high, 0.0),
            )
        return Span(
            low=left(free.low, before.high, returned.low),
            point=left(free.point, before.point, returned.point),
            high=left(free.high, before.low, returned.high),
        )


def memory_from_bytes(
    *,
    before_load: int,
    target_weights: int,
    drafter_weights: int | None,
    other: int = 0,
    weights_error: float = 0.0,
    rounding: float = 0.0,
) -> ProfiledMemory:
    """From the free memory before loading, in bytes within `rounding`, and the weights of the tensor headers.

    `weights_error` is a share, 0-1, for weights that the engine lays out anew: with it the result is an estimate.
    """
    known = Certainty.FROM_LOG if rounding else Certainty.EXACT
    return ProfiledMemory(
        before_load=exactly(before_load).wider(rounding),
        target_weights=within_share(target_weights, weights_error),
        drafter_weights=None if drafter_weights is None else within_share(drafter_weights, weights_error),
        other=exactly(other),
        certainty=Certainty.ESTIMATE if weights_error else known,
    )


def memory_from_log(
    *,
    before_load: float,
    after_load: float,
    target_weights: float,
    drafter_weights: float | None,
    drafter_loads: int = 1,
) -> ProfiledMemory:
    """From the bytes that a start-up log prints, each within 0.005 GiB.

    `before_load` is the least free memory of any rank at its first `Load weight begin`, `after_load` the least at its
    last `Load weight end`, the weights are `mem usage` of the first load and of the `drafter_loads` after it.
    """
    return ProfiledMemory(
        before_load=exactly(before_load).wider(LOG_ROUNDING),
        after_load=exactly(after_load).wider(LOG_ROUNDING),
        target_weights=exactly(target_weights).wider(LOG_ROUNDING),
        drafter_weights=None
        if drafter_weights is None
        else exactly(drafter_weights).wider(LOG_ROUNDING * drafter_loads),
        certainty=Certainty.FROM_LOG,
    )


def memory_from_label(
    *, gpu_memory: int, target_weights: int, drafter_weights: int | None, other: int = 0, weights_error: float = 0.0
) -> ProfiledMemory:
    """From the memory that a GPU is sold with, 1 to 3 GiB above what is free before loading. An estimate."""
    least, likely, most = (gpu_memory - gib * GIB for gib in reversed(_BELOW_THE_LABEL))
    known = memory_from_bytes(
        before_load=0,
        target_weights=target_weights,
        drafter_weights=drafter_weights,
        other=other,
        weights_error=weights_error,
    )
    return ProfiledMemory(
        before_load=Span(low=least, point=likely, high=most),
        target_weights=known.target_weights,
        drafter_weights=known.drafter_weights,
        other=known.other,
        certainty=Certainty.ESTIMATE,
    )
