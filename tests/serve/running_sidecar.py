"""A real sidecar in the test's own event loop, on a port of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from tests.serve.polled_desk import Page

from specbudget.budget.reading import load_budget
from specbudget.serve.sidecar import Sidecar
from specbudget.serve.web_config import read_web_config

PATIENCE = 20.0
"""Seconds until a condition that should come true is given up."""


@dataclass
class Running:
    """A sidecar that serves, and a client of it."""

    sidecar: Sidecar
    url: str
    client: aiohttp.ClientSession

    async def get(self, path: str, *, accept: str = "") -> tuple[int, str, str]:
        """Status, content type and text of one GET."""
        async with self.client.get(self.url + path, headers={"Accept": accept} if accept else {}) as response:
            return response.status, response.headers["Content-Type"], await response.text()

    async def post(self, path: str) -> tuple[int, str]:
        """Status and text of one POST."""
        async with self.client.post(self.url + path) as response:
            return response.status, await response.text()

    async def page(self) -> Page:
        """/metrics now."""
        return Page((await self.get("/metrics"))[2].encode())

    async def page_when(self, holds: Callable[[Page], bool]) -> Page:
        """/metrics as soon as it is as wanted; the last one when it never is."""
        for _ in range(round(PATIENCE / 0.05)):
            page = await self.page()
            if holds(page):
                break
            await asyncio.sleep(0.05)
        return page


@contextlib.asynccontextmanager
async def running(budget: Path, *, state: Path | None = None, web: Path | None = None) -> AsyncIterator[Running]:
    """Serves the budget file until the block ends, behind the web configuration `web`."""
    protected = None if web is None else read_web_config(web).load()
    sidecar = Sidecar(load_budget(budget), state, protected)
    scheme = "http" if protected is None or protected.context is None else "https"
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(sidecar.serve("127.0.0.1", 0, started=started.set_result))
    try:
        await asyncio.wait({started, serving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        async with aiohttp.ClientSession() as client:
            yield Running(sidecar, f"{scheme}://127.0.0.1:{started.result()}", client)
    finally:
        serving.cancel()
        ended, _ = await asyncio.wait({serving}, timeout=PATIENCE)
        if not ended:
            serving.cancel()
            raise AssertionError("the sidecar does not end when it is told to")
