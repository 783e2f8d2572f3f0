"""Writes a review as one HTML file: it opens from disk, asks no network, and its scripts are the only ones that run."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from specbudget import __version__
from specbudget.assets import asset
from specbudget.review.model import MarkKind, Review
from specbudget.review.page import words
from specbudget.review.page.charts import configuration, scale, sections
from specbudget.review.page.starts import MOST_STARTS, timelines

STYLES = ("theme.css", "uplot/uPlot.min.css", "chart.css", "report.css")
EARLY_SCRIPT = "theme.js"
SCRIPTS = ("uplot/uPlot.iife.min.js", "chart.js", "report.js")

MARK_WORDS = {
    MarkKind.CONFIG: "budget",
    MarkKind.TARGET_LENGTH: "target length",
    MarkKind.PAIR: "pair",
    MarkKind.ENGINE_START: "engine start",
    MarkKind.SIDECAR_START: "sidecar start",
    MarkKind.SPECULATION: "speculation",
    MarkKind.CAPACITY: "KV pool",
}


def render(review: Review) -> str:
    """The whole file."""
    thin = scale(review)
    shown = sections(review, thin)
    styles = "\n".join(asset(name) for name in STYLES)
    scripts = {"early": asset(EARLY_SCRIPT), "late": "\n".join(asset(name) for name in SCRIPTS)}
    return (
        environment()
        .get_template("report.html")
        .render(
            review=review,
            version=__version__,
            sections=shown,
            timelines=timelines(review.starts),
            shown_step=thin.step,
            data=Markup(_data(configuration(review, shown, thin))),
            styles=Markup(styles),
            scripts={name: Markup(text) for name, text in scripts.items()},
            policy=policy(styles, tuple(scripts.values())),
        )
    )


def policy(styles: str, scripts: tuple[str, ...]) -> str:
    """What a browser may do with the file: run these texts and nothing else, and ask nobody for anything."""
    allowed = " ".join(_hash(script) for script in scripts)
    return f"default-src 'none'; style-src {_hash(styles)}; script-src {allowed}; img-src data:; base-uri 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(value: object) -> str:
    """JSON that can stand in a script element: no sign in it begins markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def environment() -> Environment:
    """The templates, strict: an unknown name is an error and not an empty text."""
    made = Environment(
        loader=PackageLoader("specbudget.review.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(moment=words.moment, iso=words.iso, figure=words.figure)
    made.globals.update(
        LINE_TITLES=words.LINE_TITLES,
        MARK_WORDS=MARK_WORDS,
        MOST_STARTS=MOST_STARTS,
        clock=words.clock,
        stretch=words.stretch,
    )
    return made
