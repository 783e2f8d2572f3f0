"""How long two checkpoints take from storage into device memory, before anybody has started anything."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.stages import StagingMode


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingEstimate:
    """Seconds of loading from cold storage; `low` where every byte is read once, `high` where every reader reads all.

    `after_load` are seconds of a start beyond loading, as a running engine measured them; they are in both sides.
    """

    low: float
    high: float
    after_load: float | None
    arithmetic: tuple[str, ...]


def estimate_staging(
    *,
    least_bytes: int,
    most_bytes: int,
    readers: int,
    bandwidth: int,
    mode: StagingMode | None,
    after_load: float | None = None,
) -> StagingEstimate:
    """Loading time of both models, one after the other, with an empty page cache.

    `least_bytes` are those that are really loaded, `most_bytes` the whole files; `bandwidth` is bytes per second of
    the storage, `readers` the processes that each read all shards. A page cache that they share makes them one
    reader, and so does prefetching, where the ranks divide the shards among themselves (SGLang 0.5.18 and 0.5.23,
    --weight-loader-prefetch-checkpoints); separate caches, as on some network file systems, do not.
    """
    once = least_bytes / bandwidth
    prefetched = most_bytes / bandwidth
    apart = most_bytes * readers / bandwidth
    rest = after_load or 0.0
    high = prefetched if mode is StagingMode.PREFETCH else apart
    arithmetic = [
        f"every byte once: {least_bytes:,} B / {bandwidth:,} B/s = {once:.1f} s",
        f"prefetched, the ranks divide the files: {most_bytes:,} B / {bandwidth:,} B/s = {prefetched:.1f} s",
        f"each of {readers} readers all files: {most_bytes:,} B x {readers} / {bandwidth:,} B/s = {apart:.1f} s",
        "warm page cache: storage plays no part, not estimated",
    ]
    if after_load is not None:
        arithmetic.append(f"after loading, as the running engine measured its last start: {after_load:.1f} s")
    return StagingEstimate(low=once + rest, high=high + rest, after_load=after_load, arithmetic=tuple(arithmetic))
