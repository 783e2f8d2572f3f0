"""Runs blocking reads beside the event loop without ever holding up its end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_background(call: Callable[[], Result]) -> Result:
    """What `call` returns or raises, from a daemon thread.

    Unlike asyncio.to_thread(), whose threads are waited for when the loop ends: a checkpoint on a store that hangs
    must not keep a terminated process alive.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            result = call()
        except Exception as error:
            _tell(loop, answer, functools.partial(answer.set_exception, error))
        else:
            _tell(loop, answer, functools.partial(answer.set_result, result))

    threading.Thread(target=run, daemon=True, name="specbudget-read").start()
    return await answer


def _tell(loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Result], settle: Callable[[], None]) -> None:
    """Settles the answer on its loop; one that nobody waits for any more, or whose loop has ended, is dropped."""

    def unless_done() -> None:
        if not answer.done():
            settle()

    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(unless_done)
