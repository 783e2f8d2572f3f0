"""The verdict as Markdown, for a comment on a pull request."""

from __future__ import annotations

from specbudget.check.output.words import amount, interval, printable
from specbudget.check.report import LineVerdict, Report
from specbudget.domain.finding import CheckResult, Finding

_SIGNS = {CheckResult.PASS: "✅", CheckResult.WARN: "⚠️", CheckResult.FAIL: "❌", CheckResult.UNKNOWN: "❔"}


def render_markdown(report: Report) -> str:
    """The five lines as a table, then what is to be done; what nobody requires and all numbers are folded away."""
    parts = [
        f"## specbudget: `{printable(report.service)}` {_SIGNS[report.verdict]} {report.verdict}\n",
        "\n| line | verdict | what decides |\n|---|---|---|\n",
        *(_line(line) for line in report.lines),
    ]
    if report.steps:
        parts.append("\n### What to do\n\n")
        parts.extend(_trouble(finding) for finding in report.steps)
    if report.left_open:
        parts.append(f"\n<details><summary>Not known, and not required: {len(report.left_open)}</summary>\n\n")
        parts.extend(_trouble(finding) for finding in report.left_open)
        parts.append("\n</details>\n")
    if report.waived:
        parts.append("\n### Waived\n\n")
        parts.extend(
            f"{_trouble(finding).rstrip()} *Waived until {waiver.until}: {_escaped(waiver.reason)}*\n"
            for finding, waiver in report.waived
        )
    parts.append("\n<details><summary>All numbers</summary>\n\n| | finding | value | limit |\n|---|---|---|---|\n")
    parts.extend(_row(finding) for finding in report.findings if finding.value is not None)
    parts.append("\n</details>\n")
    return "".join(parts)


def _line(line: LineVerdict) -> str:
    if not line.budgeted:
        return f"| {line.line.title} | not budgeted | |\n"
    worst = next((f for f in line.findings if f.result is line.verdict), None)
    decides = "" if worst is None or line.verdict is CheckResult.PASS else f"`{worst.id}`"
    return f"| {line.line.title} | {_SIGNS[line.verdict]} {line.verdict} | {decides} |\n"


def _trouble(finding: Finding) -> str:
    return f"- {_SIGNS[finding.result]} `{finding.id}`: {_escaped(finding.message)}\n"


def _row(finding: Finding) -> str:
    value = amount(finding.value, finding.unit)
    span = interval(finding)
    shown = f"{value} ({span})" if span else value
    cells = (_escaped(shown), _escaped(amount(finding.limit, finding.unit)))
    return f"| {_SIGNS[finding.result]} | `{finding.id}` | {' | '.join(cells)} |\n"


def _escaped(text: str) -> str:
    """Text that Markdown prints as it stands: no cell ends in it, no markup begins in it."""
    text = printable(text)
    for char in "\\`*_{}[]<>|~#":
        text = text.replace(char, "\\" + char)
    return text.replace("@", "@\u200b")
