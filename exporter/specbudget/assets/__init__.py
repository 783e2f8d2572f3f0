"""The front-end files of pages and reports, from this folder; README.md says what each is and what is vendored."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""By the end of the name; what ends otherwise is no asset of a page."""


@cache
def asset(name: str) -> str:
    """The text of one file, such as `chart.js` or `uplot/uPlot.min.css`. Raises FileNotFoundError."""
    return files(__name__).joinpath(*name.split("/")).read_text(encoding="utf-8")
