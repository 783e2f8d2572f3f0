"""When lines of the log were read, and the latest start as it is now."""

from __future__ import annotations

from dataclasses import dataclass

from specbudget.domain.start_up import StartUp


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAt:
    """When lines were read: seconds since the epoch and on the monotonic clock.

    `live`: they were written since the previous look, so that reading and writing are seconds apart. `quiet`: for
    how long the file had not been written to when it was read, 0 where not known.
    """

    epoch: float
    monotonic: float
    live: bool = False
    quiet: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartView:
    """The latest start now.

    `running_seconds` is how long it has been going on without a generation, None from the first one on; waiting
    for traffic is not part of it. `open_seconds` is how long the open stage has lasted, `silent_seconds` how long
    the log has told nothing new of a start that is not ready. `started_at` is the start of the process in seconds
    since the epoch. `over_budget` is of the cold start, also of one that is going on.
    """

    start: StartUp
    running_seconds: float | None = None
    open_seconds: float | None = None
    silent_seconds: float | None = None
    started_at: float | None = None
    stuck: bool = False
    over_budget: bool = False
