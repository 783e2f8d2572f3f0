"""Where panels stand: computed from the room that each wants, left to right, wrapped, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from specbudget.generate.dashboards.house import FULL, Placed
from specbudget.generate.dashboards.sdk import models

Panels = list[models.Panel | models.RowPanel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Panels under one heading; without a title they stand at the top. `folded` shows the heading only."""

    panels: tuple[Placed, ...]
    title: str | None = None
    folded: bool = False


def laid_out(sections: Sequence[Section]) -> Panels:
    """All panels with places and ids. Every panel of one line gets the height of the tallest, so that none is torn."""
    found: Panels = []
    ids = count(1)
    y = 0
    for section in sections:
        heading = None
        if section.title is not None:
            heading = models.RowPanel(title=section.title, collapsed=section.folded, id_val=next(ids))
            heading.grid_pos = models.GridPos(h=1, w=FULL, x=0, y=y)
            found.append(heading)
            y += 1
        below = y
        for line in _wrapped(section.panels):
            x, height = 0, max(placed.height for placed in line)
            for placed in line:
                placed.panel.id_val = next(ids)
                placed.panel.grid_pos = models.GridPos(h=height, w=placed.width, x=x, y=below)
                x += placed.width
            below += height
        if heading is not None and section.folded:
            # Grafana keeps the panels of a folded row inside it and makes room when it is opened
            heading.panels = [placed.panel for placed in section.panels]
        else:
            found += [placed.panel for placed in section.panels]
            y = below
    return found


def _wrapped(panels: Iterable[Placed]) -> list[list[Placed]]:
    """The panels in lines of at most the full width."""
    found: list[list[Placed]] = [[]]
    for placed in panels:
        if sum(each.width for each in found[-1]) + placed.width > FULL:
            found.append([])
        found[-1].append(placed)
    return [line for line in found if line]
