"""The verdict for people: the answer first, then what to do, then what is spent against what."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from specbudget.catalog.lines import CODESIGN, KV
from specbudget.check.output.details import print_details
from specbudget.check.output.printing import GAP, INDENT, SIGNS, STYLES, UNDER, print_hanging, print_line
from specbudget.check.output.words import amount, printable, used_ratio
from specbudget.check.report import LineVerdict, Report
from specbudget.domain.finding import CheckResult, Finding

_FAIL = CheckResult.FAIL
_MOST_NAMED, _MOST_OPEN = 3, 6
_PIPE_WIDTH = 120
_TITLE, _WORD = 12, 14
_COST = f"{KV.id}.drafter_cost_tokens"


def print_text(report: Report, *, verbose: bool, console: Console | None = None) -> None:
    """Prints the report; without `verbose` only the answer, what to do, and what has a limit."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH, file=console.file, no_color=True)
    print_line(
        console,
        Text.assemble(
            ("specbudget check ", "bold"), printable(report.service), "  ", (report.verdict, STYLES[report.verdict])
        ),
    )
    print_line(console, Text())
    for line in report.lines:
        _print_answer(console, line)
    print_line(console, Text())
    _print_steps(console, report, verbose=verbose)
    _print_waivers(console, report)
    told = {finding.id for finding in report.steps}
    left_out = sum(print_details(console, line, verbose=verbose, told_above=told) for line in report.lines)
    print_line(console, Text())
    more = f"--verbose shows {left_out} more findings; " if left_out else ""
    print_line(console, Text(f"{more}--explain ID shows a rule, its source and the arithmetic", "dim"))


def _print_answer(console: Console, line: LineVerdict) -> None:
    """One line's verdict and what decides it; below the KV line what the drafter costs the target."""
    word, style = (line.verdict, STYLES[line.verdict]) if line.budgeted else ("not budgeted", "dim")
    sign = SIGNS[line.verdict] if line.budgeted else "-"
    head = Text.assemble((sign, style), " ", (f"{line.line.title:<{_TITLE}}", "bold"), (f"{word:<{_WORD}}", style))
    _print_beside(console, head, _decides(line))
    for finding in line.findings:
        # the sentence that no engine says; an unknown one that has its arithmetic knows the share at least
        if finding.id == _COST and (finding.value is not None or finding.arithmetic):
            _print_beside(console, Text(" " * cell_len(head.plain)), printable(finding.message))


def _print_beside(console: Console, head: Text, words: str) -> None:
    """Words behind a head where there is room, else below it."""
    room = console.width - cell_len(head.plain)
    if words and room < _TITLE + _WORD:
        head.rstrip()
        if head.plain:
            print_line(console, head)
        head, room = Text(" " * UNDER), console.width - UNDER
    if words:
        print_hanging(console, head, Text(words), room)
    else:
        head.rstrip()
        print_line(console, head)


def _decides(line: LineVerdict) -> str:
    """The rules that make a line what it is; of one that passes the budget that is nearest to its limit."""
    if not line.budgeted:
        return ""
    if line.verdict is not CheckResult.PASS:
        deciding = [f for f in line.findings if f.result is line.verdict and _counts(f)]
        return _named([finding.check for finding in deciding], _MOST_NAMED)
    ratios = [(ratio, finding) for finding in line.findings if (ratio := used_ratio(finding)) is not None]
    if line.line is CODESIGN or not ratios:
        return ""
    _, nearest = max(ratios, key=lambda item: item[0])
    bound = "at least" if nearest.floor else "at most"
    value, limit = amount(nearest.value, nearest.unit), amount(nearest.limit, nearest.unit)
    return f"{nearest.check} {value}, {bound} {limit}"


def _counts(finding: Finding) -> bool:
    return finding.required or finding.result is not CheckResult.UNKNOWN


def _print_steps(console: Console, report: Report, *, verbose: bool) -> None:
    """The counted findings that do not pass, the worst first, each once and in full; then what is not known, by name.

    Beside a failure a fact that is not known is mostly what follows from it, so that its name is enough.
    """
    steps = report.steps
    folded = [f for f in steps if f.result is CheckResult.UNKNOWN] if report.verdict is _FAIL and not verbose else []
    told = [finding for finding in steps if finding not in folded]
    print_line(console, Text("next steps", "bold") if told else Text("nothing to do", "green"))
    for finding in told:
        style = STYLES[finding.result]
        print_line(console, Text.assemble(INDENT, (SIGNS[finding.result], style), GAP, (finding.id, style)))
        print_hanging(console, Text(" " * UNDER), Text(printable(finding.message)), console.width - UNDER)
    for what, findings in (("not known, and required", folded), ("not known, and not required", report.left_open)):
        if findings:
            names = Text(f"{what}: {_named([finding.id for finding in findings], _MOST_OPEN)}", "dim")
            print_hanging(console, Text(), names, console.width)


def _print_waivers(console: Console, report: Report) -> None:
    """What somebody accepted, until when and why; then waivers that waive nothing."""
    if report.waivers:
        print_line(console, Text("waived", "bold"))
    for finding, waiver in report.waived:
        head = Text.assemble(INDENT, (SIGNS[finding.result], "dim"), GAP, finding.id, f", until {waiver.until}")
        print_line(console, head)
        words = f"{printable(waiver.reason)} ({printable(finding.message)})"
        print_hanging(console, Text(" " * UNDER), Text(words, "dim"), console.width - UNDER)
    for waiver, why in report.idle_waivers:
        print_hanging(console, Text(f"{INDENT}-{GAP}"), Text(f"{waiver.finding}: {why}"), console.width - UNDER)


def _named(names: list[str], most: int) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
