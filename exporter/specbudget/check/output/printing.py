"""How the text form puts lines on a console: signs, colours, and words in a column of their own."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from specbudget.domain.finding import CheckResult

SIGNS = {CheckResult.PASS: "✓", CheckResult.WARN: "!", CheckResult.FAIL: "✗", CheckResult.UNKNOWN: "?"}
STYLES = {
    CheckResult.PASS: "green",
    CheckResult.WARN: "yellow",
    CheckResult.FAIL: "bold red",
    CheckResult.UNKNOWN: "magenta",
}
INDENT, GAP, UNDER = "  ", "  ", 5


def print_line(console: Console, text: Text) -> None:
    """One line as it is: a terminal that is narrower wraps it by itself, nothing is cut and nothing padded."""
    console.print(text, soft_wrap=True)


def print_hanging(console: Console, head: Text, words: Text, room: int) -> None:
    """Words in a column of their own behind a head, however many lines they take."""
    margin = " " * cell_len(head.plain)
    for number, part in enumerate(words.wrap(console, max(room, 10))):
        part.rstrip()
        print_line(console, Text.assemble(margin if number else head, part))
