"""Polls one endpoint on its own cadence, one request at a time, slower when the engine is slow to answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from specbudget.catalog.sets import ErrorReason
from specbudget.errors import SourceError
from specbudget.serve.faults import log_fault
from specbudget.serve.health import SourceHealth
from specbudget.serve.ledger import Ledger
from specbudget.sources.exposition import ExpositionError

BUSY_SHARE = 0.25
"""Rendering metrics blocks the engine: at most this share of time is spent in our requests."""

LONGEST_PAUSE = 60.0

ABSENT_SECONDS = 5.0
"""An engine that refuses connections is starting or gone: asking costs nothing, and its first answer is wanted soon."""

log = logging.getLogger(__name__)


async def read_once(
    health: SourceHealth,
    ledger: Ledger,
    read: Callable[[], Awaitable[None]],
    *,
    clock: Callable[[], float] = time.time,
) -> float:
    """One reading, its health noted; returns the seconds that it took. Never raises but when cancelled.

    `clock` tells seconds since the epoch.
    """
    started = time.monotonic()
    try:
        await read()
    except SourceError as error:
        problem: tuple[str, str] | None = (error.reason, str(error))
    except (ExpositionError, msgspec.DecodeError) as error:
        # these name a line or a key and repeat nothing of the body
        problem = (ErrorReason.MALFORMED, f"{health.source}: not what this engine answers: {error}")
    except RecursionError:
        problem = (ErrorReason.MALFORMED, f"{health.source}: not what this engine answers: nested too deeply")
    except Exception as error:
        log_fault(log, f"reading failed: source={health.source}", error)
        problem = (ErrorReason.INTERNAL, f"{health.source}: a fault of specbudget, see the log")
    else:
        problem = None
    duration = time.monotonic() - started
    if problem is None:
        health.succeeded(clock(), duration)
    else:
        health.failed(ledger, *problem, duration)
    return duration


async def poll_forever(
    health: SourceHealth, ledger: Ledger, read: Callable[[], Awaitable[None]], after: Callable[[], None]
) -> None:
    """Reads at once and then every `health.interval`, until cancelled; `after` follows each reading.

    Slower where the engine is slow to answer, sooner while it refuses connections.
    """
    while True:
        started = time.monotonic()
        duration = await read_once(health, ledger, read)
        after()
        interval = min(health.interval, ABSENT_SECONDS) if health.reason == ErrorReason.REFUSED else health.interval
        pause = max(interval, min(duration / BUSY_SHARE, LONGEST_PAUSE))
        await asyncio.sleep(max(0.0, started + pause - time.monotonic()))
