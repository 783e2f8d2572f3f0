"""The verdict for people: five lines, what is spent against what, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
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
_PIPE_WIDTH = 120


def print_text(report: Report, *, verbose: bool, console: Console | None = None) -> None:
    """Prints the report; without `verbose` rules that pass and have no number are only counted."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH, file=console.file, no_color=True)
    console.print(
        Text.assemble(
            ("specbudget check ", "bold"), printable(report.service), "  ", (report.verdict, STYLES[report.verdict])
        )
    )
    for line in report.lines:
        console.print()
        _print_line(console, line, verbose=verbose)
    console.print()
    _print_next_steps(console, report)


def _print_line(console: Console, line: LineVerdict, *, verbose: bool) -> None:
    state = (line.verdict, STYLES[line.verdict]) if line.budgeted else ("not budgeted", "dim")
    console.print(Text.assemble((f"{line.line.title:<12}", "bold"), state))
    shown = [finding for finding in line.findings if verbose or _is_worth_a_row(line, finding)]
    table = Table.grid(padding=(0, 2))
    for column in range(6):
        table.add_column(no_wrap=column < 5, justify="right" if column in (2, 3) else "left", overflow="fold")
    for finding in shown:
        table.add_row(*_cells(finding))
    console.print(Padding(table, (0, 0, 0, 2)))
    folded = len(line.findings) - len(shown)
    if folded:
        console.print(Text(f"  {folded} more {'rules pass' if folded > 1 else 'rule passes'}", "dim"))


def _is_worth_a_row(line: LineVerdict, finding: Finding) -> bool:
    """Numbers of the budget, and whatever does not pass; a rule of the pair that passes is no number to watch."""
    return finding.result is not CheckResult.PASS or (finding.value is not None and line.line is not CODESIGN)


def _cells(finding: Finding) -> tuple[Text, ...]:
    style, ratio = STYLES[finding.result], used_ratio(finding)
    limit = amount(finding.limit, finding.unit)
    return (
        Text(SIGNS[finding.result], style),
        Text(finding.check),
        Text(amount(finding.value, finding.unit)),
        Text("" if not limit else f"{'≥' if finding.floor else '≤'} {limit}", "dim"),
        Text("" if ratio is None else bar(ratio, _BAR_CELLS), style),
        Text(_beside(finding), "dim"),
    )


def _beside(finding: Finding) -> str:
    """What the numbers of a row do not say: of a kept limit only how sure they are."""
    if finding.result is not CheckResult.PASS or used_ratio(finding) is None:
        return printable(finding.message)
    span = interval(finding)
    sure = "" if finding.exactness in (None, Exactness.EXACT) else f"{finding.exactness}".replace("_", " ")
    return ", ".join(part for part in (sure, span) if part)


def _print_next_steps(console: Console, report: Report) -> None:
    """The counted findings that do not pass, the worst first, each once and in full."""
    troubles = _by_weight(report.counted)
    if not troubles:
        console.print(Text("nothing to do", "green"))
        return
    console.print(Text("next steps", "bold"))
    for finding in troubles:
        console.print(
            Padding(
                Text.assemble((finding.id, STYLES[finding.result]), f"  {printable(finding.message)}"), (0, 0, 0, 2)
            )
        )
    console.print(Text("  specbudget check --explain ID shows a rule, its source and the arithmetic", "dim"))


def _by_weight(findings: Iterable[Finding]) -> list[Finding]:
    order = (CheckResult.FAIL, CheckResult.UNKNOWN, CheckResult.WARN)
    wanted = [f for f in findings if f.result in order and (f.required or f.result is not CheckResult.UNKNOWN)]
    return sorted(wanted, key=lambda finding: order.index(finding.result))
