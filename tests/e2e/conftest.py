"""Order of the tests that run whole deployments."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that everything else runs beside it."""
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)
