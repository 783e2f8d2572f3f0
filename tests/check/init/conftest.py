"""The Ling pair as the stand-in writes it, once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from specbudget.simulate.checkpoint import write_drafter, write_target


@pytest.fixture(scope="session")
def ling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `target` and `drafter`: true configs and headers over holes."""
    folder = tmp_path_factory.mktemp("ling")
    write_target(folder / "target")
    write_drafter(folder / "drafter")
    return folder
