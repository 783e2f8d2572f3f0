"""The numbers of each line in columns: what is spent against what, and with `--verbose` every finding."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from specbudget.catalog.lines import CODESIGN
from specbudget.check.output.printing import GAP, INDENT, SIGNS, STYLES, UNDER, print_hanging, print_line
from specbudget.check.output.words import amount, interval, printable, used_ratio
from specbudget.check.report import LineVerdict
from specbudget.domain.finding import CheckResult, Exactness, Finding
from specbudget.words import bar

_BAR_CELLS = 10
_LEAST_WORDS = 40
"""Where a sentence would have less room than this beside its numbers, it stands below them."""


def print_details(console: Console, line: LineVerdict, *, verbose: bool, told_above: set[str]) -> int:
    """Prints a line's rows under its title; returns how many findings it left out.

    Without `verbose` only what has a limit. A finding in `told_above` shows its numbers alone.
    """
    shown = [finding for finding in line.findings if verbose or _is_spending(line, finding)]
    if shown:
        print_line(console, Text())
        print_line(console, Text(line.line.title, "bold"))
    rows = [_cells(line, finding) for finding in shown]
    widths = [max((cell_len(row[column].plain) for row in rows), default=0) for column in range(5)]
    for finding, cells in zip(shown, rows, strict=True):
        _print_row(console, cells, widths, "" if finding.id in told_above else _beside(line, finding))
    return len(line.findings) - len(shown)


def _print_row(console: Console, cells: tuple[Text, ...], widths: list[int], words: str) -> None:
    """Sign, name and numbers in columns; the sentence beside them where there is room, else below."""
    row = Text(INDENT)
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if not width:
            continue
        padding = " " * (width - cell_len(cell.plain))
        right = column in (2, 3)
        row = Text.assemble(row, padding if right else "", cell, "" if right else padding, GAP)
    room = console.width - cell_len(row.plain)
    if not words:
        row.rstrip()
        print_line(console, row)
    elif room >= _LEAST_WORDS:
        print_hanging(console, row, Text(words, "dim"), room)
    else:
        row.rstrip()
        print_line(console, row)
        print_hanging(console, Text(" " * UNDER), Text(words, "dim"), console.width - UNDER)


def _is_spending(line: LineVerdict, finding: Finding) -> bool:
    """Whether it holds a number against a limit; what a rule of the pair compares is no spending."""
    return line.line is not CODESIGN and used_ratio(finding) is not None


def _cells(line: LineVerdict, finding: Finding) -> tuple[Text, ...]:
    """What a rule of the pair holds against each other is no spending, so it has neither limit nor bar."""
    spends = line.line is not CODESIGN
    style, ratio = STYLES[finding.result], used_ratio(finding) if spends else None
    limit = amount(finding.limit, finding.unit) if spends else ""
    return (
        Text(SIGNS[finding.result], style),
        Text(finding.check),
        Text(amount(finding.value, finding.unit) if spends else ""),
        Text("" if not limit else f"{'≥' if finding.floor else '≤'} {limit}", "dim"),
        Text("" if ratio is None else bar(ratio, _BAR_CELLS), style),
    )


def _beside(line: LineVerdict, finding: Finding) -> str:
    """What the numbers of a row do not say: of a kept limit only how sure they are."""
    if finding.result is not CheckResult.PASS or used_ratio(finding) is None or line.line is CODESIGN:
        return printable(finding.message)
    span = "" if amount(finding.low, finding.unit) == amount(finding.high, finding.unit) else interval(finding)
    sure = "" if finding.exactness in (None, Exactness.EXACT) else f"{finding.exactness}".replace("_", " ")
    return ", ".join(part for part in (sure, span) if part)
