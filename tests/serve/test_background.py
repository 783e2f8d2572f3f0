"""Blocking reads beside the loop: their answer, their failure, and one that never ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from specbudget.serve.background import in_background


async def test_an_answer_and_a_failure_come_back() -> None:
    """As if the call had been made in place."""
    assert await in_background(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)


def test_a_read_that_hangs_does_not_hold_up_the_end() -> None:
    """The loop ends while the read still waits, as on a store that does not answer."""
    answered, waited = threading.Event(), threading.Event()

    def hang() -> None:
        answered.wait(5.0)
        waited.set()

    async def serve() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_background(hang), 0.05)

    asyncio.run(serve())
    assert not waited.is_set()
    answered.set()
