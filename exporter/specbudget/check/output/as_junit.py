"""The verdict as JUnit XML: one suite per budget line, one case per finding."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from specbudget.check.output.words import amount, printable
from specbudget.check.report import LineVerdict, Report
from specbudget.domain.finding import CheckResult, Finding


def render_junit(report: Report) -> str:
    """A fail is a failure, a required unknown an error, another unknown skipped; a warning passes and says why.

    Lines that are not budgeted are left out: they do not count.
    """
    root = Xml.Element("testsuites", name=f"specbudget check {printable(report.service)}")
    for line in report.lines:
        if line.budgeted:
            root.append(_suite(line, report))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(line: LineVerdict, report: Report) -> Xml.Element:
    kinds = [_kind(finding) for finding in line.findings]
    suite = Xml.Element(
        "testsuite",
        name=line.line.id,
        tests=str(len(kinds)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
    )
    for finding, kind in zip(line.findings, kinds, strict=True):
        case = Xml.SubElement(suite, "testcase", classname=f"specbudget.{line.line.id}", name=finding.check)
        message = printable(finding.message)
        if (waiver := report.waiver(finding)) is not None:
            message = f"waived until {waiver.until}, {printable(waiver.reason)}: {message}"
        if kind is None:
            Xml.SubElement(case, "system-out").text = _spoken(finding, message)
        elif kind == "skipped":
            Xml.SubElement(case, "skipped", message=message)
        else:
            Xml.SubElement(case, kind, message=message, type=finding.result).text = message
    return suite


def _kind(finding: Finding) -> str | None:
    match finding.result:
        case CheckResult.FAIL:
            return "failure"
        case CheckResult.UNKNOWN:
            return "error" if finding.required else "skipped"
        case _:
            return None


def _spoken(finding: Finding, message: str) -> str:
    head = "warning: " if finding.result is CheckResult.WARN else ""
    value = amount(finding.value, finding.unit)
    return f"{head}{message}" + (f" [{value}]" if value else "")
