"""A piece of the page as a tree of plain lists: the open page takes it up without ever reading markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

Node = Any
"""A text, or [tag, {attribute: value}, child, …]."""

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})

CAMEL = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}
"""Names that SVG writes with capitals, which the parser takes away."""

_BETWEEN = re.compile(r"\s*\n\s*")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root: list[Node] = []
        self._open: list[list[Node]] = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)
        if tag not in VOID:
            self._open.append(self._open[-1][-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if len(self._open) == 1 or self._open[-1][0] != tag:
            raise ValueError(f"</{tag}> closes nothing that is open")
        self._open.pop()

    def handle_data(self, data: str) -> None:
        # layout of the template, not of the page
        if not data.isspace() or "\n" not in data:
            self._open[-1].append(_BETWEEN.sub(" ", data))

    def _add(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].append([tag, {CAMEL.get(name, name): value or "" for name, value in attrs}])


def tree(markup: str) -> list[Node]:
    """The nodes of a piece of our own markup. Raises ValueError for one that is not closed as it was opened."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    if len(reader._open) != 1:
        raise ValueError(f"<{reader._open[-1][0]}> is not closed")
    return reader.root
