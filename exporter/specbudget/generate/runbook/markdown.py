"""Markdown as GitHub renders it, from texts that may hold any sign."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")
_LINE_END = re.compile(r"\s*[\r\n\x0b\x0c\x85\u2028\u2029]\s*")


def plain(text: str) -> str:
    """Text of others, as it is: nothing in it is markup, and it stays on its line."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def one_line(text: str) -> str:
    """The text without line ends."""
    return _LINE_END.sub(" ", text)


def code(text: str, *, in_table: bool = False) -> str:
    """A code span; its marks are longer than any run of them in the text."""
    text = one_line(text) or " "
    marks = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    shown = f"{marks}{pad}{text}{pad}{marks}"
    return shown.replace("|", "\\|") if in_table else shown


def block(text: str, language: str) -> str:
    """A fenced block, ready to copy."""
    fence = "`" * max(3, _longest(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def link(words: str, address: str) -> str:
    """A link; `words` are Markdown, signs of the address that would end it are written as %XX."""
    written = quote(one_line(address), safe=_ADDRESS)
    return f"[{words}]({written})" if re.fullmatch(r"[\w#:/.?=&%~+,;-]+", written) else f"[{words}](<{written}>)"


_ADDRESS = "!#$%&'()*+,-./:;=?@[]_~{}^" + "".join(chr(sign) for sign in range(0xA1, 0x250))


def web_address(address: str) -> bool:
    """Whether an address leads somewhere from any page."""
    return address.startswith(("http://", "https://"))


def anchor(heading: str) -> str:
    """The fragment that GitHub gives a heading: small letters, punctuation gone, blanks as dashes."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown with their pipes escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def bullets(items: Iterable[str]) -> str:
    """A list."""
    return "".join(f"- {item}\n" for item in items)


def numbered(items: Iterable[str]) -> str:
    """A list whose order matters."""
    return "".join(f"{place}. {item}\n" for place, item in enumerate(items, start=1)).rstrip("\n") + "\n"


def folded(title: str, body: str) -> str:
    """A part that opens on a tap."""
    return f"<details><summary>{title}</summary>\n\n{body}\n</details>\n"
