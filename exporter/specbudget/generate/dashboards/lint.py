"""A linter of dashboards: what makes a file that Grafana takes and a person cannot use, or that drifts.

It reads JSON text and needs neither the SDK nor a parser of PromQL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

COLUMNS = 24
BY_VARIABLE = "${datasource}"
PER_PANEL = ("title", "description", "type", "datasource", "gridPos", "id")
WITH_LEGEND = ("timeseries", "state-timeline", "barchart", "bargauge")
NO_QUERY = ("row", "text")


class _Twice(ValueError):
    """A key stands twice in one object; the second would silently win."""


def faults(text: str, *, uid: str | None = None) -> list[str]:
    """All faults of a dashboard's JSON text, each as one line; `uid` is what its own must be."""
    twice: list[str] = []
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, twice))
    except ValueError as error:
        return [f"is not JSON: {error}"]
    if not isinstance(found, dict):
        return ["is not an object"]
    wrong = [f"key {key!r} stands twice in one object" for key in twice]
    wrong += _of_dashboard(found, uid)
    wrong += _of_data_sources(found, "dashboard")
    panels = list(_panels(found))
    wrong += _of_ids(panels)
    for panel in panels:
        wrong += _of_panel(panel)
    wrong += _of_places(found.get("panels") or [])
    for panel in panels:
        wrong += _of_places(panel.get("panels") or [])
    return wrong


def _object(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            twice.append(key)
        found[key] = value
    return found


def _of_dashboard(found: dict[str, Any], uid: str | None) -> Iterator[str]:
    if found.get("id") is not None:
        yield f"id {found['id']!r} is fixed: it belongs to one Grafana's database; leave it out"
    if not isinstance(found.get("schemaVersion"), int):
        yield "schemaVersion is missing: Grafana would take it for the oldest and migrate it"
    if not found.get("uid"):
        yield "uid is missing: links and alerts cannot lead here"
    elif uid is not None and found["uid"] != uid:
        yield f"uid {found['uid']!r} is not {uid!r}"
    if not found.get("title"):
        yield "title is missing"


def _of_data_sources(value: Any, where: str) -> Iterator[str]:
    """Every reference to a data source, however deep, is by variable; Grafana's own for stored marks is none."""
    if isinstance(value, dict):
        source = value.get("datasource")
        if isinstance(source, str) and source != BY_VARIABLE:
            yield f"{where}: data source {source!r} is fixed: refer to the variable"
        if isinstance(source, dict) and source.get("uid") != BY_VARIABLE:
            yield f"{where}: data source uid {source.get('uid')!r} is fixed: refer to the variable"
        name = value.get("title") or value.get("name") or where
        for key, inner in value.items():
            if key != "datasource":
                yield from _of_data_sources(inner, name if isinstance(name, str) else where)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_data_sources(inner, where)


def _panels(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels, rows and what lies in folded rows included."""
    for panel in found.get("panels") or []:
        yield panel
        yield from panel.get("panels") or []


def _name(panel: dict[str, Any]) -> str:
    return f"panel {panel.get('title') or panel.get('id')!r}"


def _of_ids(panels: list[dict[str, Any]]) -> Iterator[str]:
    seen: set[Any] = set()
    for panel in panels:
        if panel.get("id") in seen:
            yield f"{_name(panel)}: id {panel.get('id')!r} is another panel's too"
        seen.add(panel.get("id"))


def _of_panel(panel: dict[str, Any]) -> Iterator[str]:
    if panel.get("type") == "row":
        if not panel.get("title"):
            yield f"{_name(panel)}: title is missing"
        return
    for key in PER_PANEL:
        if not panel.get(key) and not (key == "datasource" and panel.get("type") in NO_QUERY):
            yield f"{_name(panel)}: {key} is missing"
    if panel.get("type") in NO_QUERY:
        return
    defaults = (panel.get("fieldConfig") or {}).get("defaults") or {}
    for key, why in (("unit", "numbers without one are guessed"), ("noValue", "nothing would look like 0")):
        if not defaults.get(key):
            yield f"{_name(panel)}: {key} is missing: {why}"
    if panel.get("type") in WITH_LEGEND and not _legend(panel).get("showLegend"):
        yield f"{_name(panel)}: its legend is hidden"
    if panel.get("type") == "heatmap" and not _legend(panel).get("show"):
        yield f"{_name(panel)}: its legend is hidden"
    yield from _of_targets(panel)


def _legend(panel: dict[str, Any]) -> dict[str, Any]:
    return (panel.get("options") or {}).get("legend") or {}


def _of_targets(panel: dict[str, Any]) -> Iterator[str]:
    targets = panel.get("targets") or []
    if not targets:
        yield f"{_name(panel)}: has no query"
    refs = [target.get("refId") for target in targets]
    if not all(refs):
        yield f"{_name(panel)}: a query has no refId"
    if len(set(refs)) != len(refs):
        yield f"{_name(panel)}: two queries have one refId"
    for target in targets:
        if not target.get("expr"):
            yield f"{_name(panel)}: query {target.get('refId')} is empty"


def _of_places(panels: list[dict[str, Any]]) -> Iterator[str]:
    """Within the columns and none over another.

    Panels of a folded row are held against each other only: when it opens, Grafana moves all below.
    """
    taken: dict[tuple[int, int], str] = {}
    for panel in panels:
        place = panel.get("gridPos") or {}
        x, y, w, h = (place.get(key) for key in ("x", "y", "w", "h"))
        if not (isinstance(x, int) and isinstance(y, int) and isinstance(w, int) and isinstance(h, int)):
            yield f"{_name(panel)}: its place is not four whole numbers"
            continue
        if x < 0 or y < 0 or w < 1 or h < 1 or x + w > COLUMNS:
            yield f"{_name(panel)}: takes columns {x} to {x + w} of {COLUMNS}"
            continue
        cells = [(column, row) for column in range(x, x + w) for row in range(y, y + h)]
        others = sorted({taken[cell] for cell in cells if cell in taken})
        if others:
            yield f"{_name(panel)}: lies over {', '.join(others)}"
        taken.update(dict.fromkeys(cells, _name(panel)))
