"""Chromium for tests, as Playwright drives it: the one that the system has, and no host but this one."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """The path of a Chromium; skips the test where there is none, and fails it in a pipeline."""
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return found
    missing = "no Chromium here: apt-get install --no-install-recommends chromium"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


@dataclass
class Watched:
    """What a page did that nobody should have to read in a console."""

    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> Watched:
        """Watches from now on: console warnings and errors, faults of scripts, and every request."""
        watched = cls()
        page.on("console", lambda said: watched._said(said.type, said.text))
        page.on("pageerror", lambda fault: watched.messages.append(str(fault)))
        page.on("request", watched._asked)
        return watched

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.messages.append(text)

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)
