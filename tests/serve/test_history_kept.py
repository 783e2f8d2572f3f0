"""The sidecar keeps the history that a review reads, and says so when it cannot."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.serve.running_sidecar import running

from specbudget.catalog.kept import KEPT_BY_NAME
from specbudget.domain.axis import axis_over
from specbudget.history.database import FILE_NAME
from specbudget.history.reader import HistorySamples
from specbudget.sources.exposition import read_samples

Make = Callable[..., Any]


async def test_what_the_page_says_is_kept_under_the_same_names_and_labels(budget_file: Make, tmp_path: Path) -> None:
    """Every sample of a kept series that was published, also when the sidecar ends within a minute."""
    begun = time.time()
    async with running(budget_file(), state=tmp_path / "state") as sidecar:
        text = (await sidecar.get("/metrics"))[2]
    kept = HistorySamples(tmp_path / "state", begun - 60, time.time() + 60)
    axis = axis_over(begun - 30, time.time() + 60, 15.0)
    shown = [sample for sample in read_samples(text.encode()) if sample.name in KEPT_BY_NAME]
    assert len({sample.name for sample in shown}) > 10
    for sample in shown:
        only = dict(KEPT_BY_NAME[sample.name].only)
        if any(sample.labels.get(label) != value for label, value in only.items()):
            continue
        rows = kept.rows(sample.name, sample.labels, axis, KEPT_BY_NAME[sample.name].reduction, 60.0)
        assert [dict(row.labels) for row in rows] == [dict(sample.labels)], sample


async def test_a_history_that_cannot_be_kept_stops_nothing_and_shows(budget_file: Make, tmp_path: Path) -> None:
    """The page goes on, positions and counters are saved, and state_saved is 0 until the history is kept, too."""
    state = tmp_path / "state"
    (state / FILE_NAME).mkdir(parents=True)
    async with running(budget_file(), state=state) as sidecar:
        page = await sidecar.page_when(lambda page: page.value("state_saved") == 0)
        assert page.value("state_saved") == 0
        (state / FILE_NAME).rmdir()
        page = await sidecar.page_when(lambda page: page.value("state_saved") == 1)
        assert page.value("state_saved") == 1


async def test_without_a_state_folder_nothing_is_kept(budget_file: Make, tmp_path: Path) -> None:
    """No file appears beside the budget."""
    async with running(budget_file()) as sidecar:
        await sidecar.page()
    assert not histories(tmp_path)


def histories(folder: Path) -> list[Path]:
    return list(folder.rglob(FILE_NAME))
