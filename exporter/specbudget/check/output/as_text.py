"""The verdict for people: five lines, what is spent against what, and what to do next."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from specbudget.catalog.lines import CODESIGN
from specbudget.check.output.words import amount, interval, printable, used_ratio
from specbudget.check.report import LineVerdict, Report
from specbudget.domain.finding import CheckResult, Exactness, Finding
from specbudget.words import bar

SIGNS = {CheckResult.PASS: "✓", CheckResult.WARN: "!", CheckResult.FAIL: "✗", CheckResult.UNKNOWN: "?"}
STYLES = {
    CheckResult.PASS: "green",
    CheckResult.WARN: "yellow",
    CheckResult.FAIL: "bold red",
    CheckResult.UNKNOWN: "magenta",
}
_BAR_CELLS = 10
_MOST_NAMED = 3
_PIPE_WIDTH = 120
_INDENT, _GAP, _UNDER = "  ", "  ", 5
_LEAST_WORDS = 40
"""Where a sentence would have less room than this beside its numbers, it stands below them."""


def print_text(report: Report, *, verbose: bool, console: Console | None = None) -> None:
    """Prints the report; without `verbose` rules that pass and have no number are only counted."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH, file=console.file, no_color=True)
    _print(
        console,
        Text.assemble(
            ("specbudget check ", "bold"),
            printable(report.service),
            "  ",
            (report.verdict, STYLES[report.verdict]),
            f"{': ' if report.deciding else ''}{_named(report.deciding)}",
        ),
    )
    steps = report.steps
    for line in report.lines:
        _print(console, Text())
        _print_line(console, line, verbose=verbose, told_below={finding.id for finding in steps})
    _print(console, Text())
    _print_next_steps(console, steps, unknown=len(report.left_open))


def _named(findings: tuple[Finding, ...]) -> str:
    """The first ids of what decides, and how many more there are."""
    more = len(findings) - _MOST_NAMED
    return ", ".join(f.id for f in findings[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _print(console: Console, text: Text) -> None:
    """One line as it is: a terminal that is narrower wraps it by itself, nothing is cut and nothing padded."""
    console.print(text, soft_wrap=True)


def _print_line(console: Console, line: LineVerdict, *, verbose: bool, told_below: set[str]) -> None:
    state = (line.verdict, STYLES[line.verdict]) if line.budgeted else ("not budgeted", "dim")
    _print(console, Text.assemble((f"{line.line.title:<12}", "bold"), state))
    shown = [finding for finding in line.findings if verbose or _is_worth_a_row(line, finding)]
    rows = [_cells(line, finding) for finding in shown]
    widths = [max((cell_len(row[column].plain) for row in rows), default=0) for column in range(5)]
    for finding, cells in zip(shown, rows, strict=True):
        _print_row(console, cells, widths, "" if finding.id in told_below else _beside(line, finding))
    folded = len(line.findings) - len(shown)
    if folded:
        _print(console, Text(f"{_INDENT}{folded} more {'rules pass' if folded > 1 else 'rule passes'}", "dim"))


def _print_row(console: Console, cells: tuple[Text, ...], widths: list[int], words: str) -> None:
    """Sign, name and numbers in columns; the sentence beside them where there is room, else below."""
    row = Text(_INDENT)
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if not width:
            continue
        padding = " " * (width - cell_len(cell.plain))
        right = column in (2, 3)
        row = Text.assemble(row, padding if right else "", cell, "" if right else padding, _GAP)
    room = console.width - cell_len(row.plain)
    if not words:
        row.rstrip()
        _print(console, row)
    elif room >= _LEAST_WORDS:
        _print_hanging(console, row, Text(words, "dim"), room)
    else:
        row.rstrip()
        _print(console, row)
        _print_hanging(console, Text(" " * _UNDER), Text(words, "dim"), console.width - _UNDER)


def _print_hanging(console: Console, head: Text, words: Text, room: int) -> None:
    """Words in a column of their own behind a head, however many lines they take."""
    margin = " " * cell_len(head.plain)
    for number, part in enumerate(words.wrap(console, max(room, 10))):
        part.rstrip()
        _print(console, Text.assemble(margin if number else head, part))


def _is_worth_a_row(line: LineVerdict, finding: Finding) -> bool:
    """Numbers of the budget, and whatever does not pass; a rule of the pair that passes is no number to watch."""
    return finding.result is not CheckResult.PASS or (finding.value is not None and line.line is not CODESIGN)


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
    span = interval(finding)
    sure = "" if finding.exactness in (None, Exactness.EXACT) else f"{finding.exactness}".replace("_", " ")
    return ", ".join(part for part in (sure, span) if part)


def _not_known(count: int) -> str:
    """What a pass leaves open."""
    return f"; {count} {'facts are' if count > 1 else 'fact is'} not known, the rows with ? say which" if count else ""


def _print_next_steps(console: Console, steps: tuple[Finding, ...], *, unknown: int) -> None:
    """The counted findings that do not pass, the worst first, each once and in full."""
    if not steps:
        _print(console, Text(f"nothing to do{_not_known(unknown)}", "green"))
        return
    _print(console, Text("next steps", "bold"))
    for finding in steps:
        style = STYLES[finding.result]
        _print(console, Text.assemble(_INDENT, (SIGNS[finding.result], style), _GAP, (finding.id, style)))
        _print_hanging(console, Text(" " * _UNDER), Text(printable(finding.message)), console.width - _UNDER)
    _print(console, Text(f"{_INDENT}specbudget check --explain ID shows a rule, its source and the arithmetic", "dim"))
