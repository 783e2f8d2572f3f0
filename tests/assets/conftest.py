"""A browser for the tests of the front-end files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.chromium import browser as headless


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, one for all tests of a file."""
    with headless() as started:
        yield started
