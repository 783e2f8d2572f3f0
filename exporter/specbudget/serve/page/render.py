"""Writes the page: templates over the status, everything that an engine said escaped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from specbudget.assets import asset
from specbudget.catalog.lines import KV
from specbudget.catalog.sets import ROLLING_WINDOWS, Artifact
from specbudget.domain.line_state import LineState
from specbudget.serve.desk import Desk
from specbudget.serve.headline import DEFINITIONS, NOT_BUDGETED
from specbudget.serve.page import spark, words
from specbudget.serve.page.ledger import LIMIT_MARK, ledger
from specbudget.serve.page.memory import cost, pool_bars, rank_bars
from specbudget.serve.page.timeline import timeline
from specbudget.serve.page.trace import HEIGHT, WIDTH, Trace, picture
from specbudget.serve.status_model import Status
from specbudget.words import count, size

REGIONS = ("head", "cost", "ledger", "acceptance", "memory", "start", "pair", "unknown", "sources", "links")
"""The parts of the page that change while it is open; each is one template."""

STYLES = ("theme.css", "uplot/uPlot.min.css", "chart.css", "page.css")
SCRIPTS = ("uplot/uPlot.iife.min.js", "chart.js", "page.js")
EARLY_SCRIPT = "theme.js"
ICONS = tuple(f"icon-{state}.svg" for state in (*LineState, NOT_BUDGETED))
SERVED = (*STYLES, EARLY_SCRIPT, *SCRIPTS, *ICONS)
"""Every file that the page may ask for."""


@cache
def build() -> str:
    """Names the page's files by their content: an open page of another build loads itself anew."""
    digest = hashlib.sha256()
    for name in SERVED:
        digest.update(asset(name).encode())
    for name in sorted(environment().list_templates()):
        digest.update(_source(name).encode())
    return digest.hexdigest()[:12]


@cache
def environment() -> Environment:
    """The templates, strict: an unknown name is an error and not an empty text."""
    made = Environment(
        loader=PackageLoader("specbudget.serve.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        clock=words.clock, iso=words.iso, percent=words.percent, plain=words.plain, size=size, count=count
    )
    made.tests["link"] = words.is_link
    made.globals.update(
        STATE_WORDS=words.STATE_WORDS,
        SPARK={"width": spark.WIDTH, "height": spark.HEIGHT},
        PICTURE={"width": WIDTH, "height": HEIGHT},
        LIMIT_MARK=LIMIT_MARK,
        WINDOWS=tuple(ROLLING_WINDOWS),
    )
    return made


def _source(name: str) -> str:
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0]


def regions(desk: Desk, status: Status) -> dict[str, str]:
    """The markup of every region, by name."""
    context = _context(desk, status)
    return {name: environment().get_template(f"{name}.html").render(context) for name in REGIONS}


def document(status: Status, regions: Mapping[str, str], trace: Trace) -> bytes:
    """The whole page, complete without any script."""
    return (
        environment()
        .get_template("page.html")
        .render(
            status=status,
            regions={name: Markup(text) for name, text in regions.items()},
            picture=picture(trace),
            styles=STYLES,
            scripts=SCRIPTS,
            early_script=EARLY_SCRIPT,
            build=build(),
        )
        .encode()
    )


def _context(desk: Desk, status: Status) -> dict[str, Any]:
    models = {model.artifact: model for model in status.models}
    kv = next((line for line in status.lines if line.line == KV.id), None)
    mark = next((b.limit for b in kv.budgets if b.budget == KV.budget("high_water").id), None) if kv else None
    return {
        "status": status,
        "engine": words.ENGINE_NAMES.get(status.engine.kind, status.engine.kind),
        "target": models[Artifact.TARGET],
        "drafter": models[Artifact.DRAFTER],
        "ledger": ledger(status.lines, status.acceptance, desk.trends, status.at),
        "cost": cost(status),
        "ranks": rank_bars(status.memory),
        "pools": pool_bars(status),
        "high_water": mark,
        "timeline": timeline(status),
        "log_given": desk.loaded.budget.engine.server_log is not None,
        "unknown": _unknown(status),
    }


def _unknown(status: Status) -> list[tuple[str, str]]:
    """What is not known, and why, of everything that has a limit or a picture."""
    found = [
        (f"{line.title}: {DEFINITIONS[line.line].budget(budget.budget).title}", budget.why or "no reason is told")
        for line in status.lines
        for budget in line.budgets
        if budget.state == LineState.UNKNOWN
    ]
    if status.kv.why:
        found.append(("what the drafter's KV costs", status.kv.why))
    if status.start is None:
        found.append(("the latest start", "no start of the engine was seen since this sidecar began to look"))
    return found
