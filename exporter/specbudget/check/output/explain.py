"""One rule in full: its question, its source, and the arithmetic with the numbers of this plan."""

from __future__ import annotations

import difflib
from operator import attrgetter

from specbudget.check.output.words import amount, interval, printable
from specbudget.check.plan import Plan
from specbudget.check.report import TEXTS, Report
from specbudget.domain.codesign import RULES
from specbudget.errors import SpecbudgetError


class UnknownId(SpecbudgetError):
    """No rule has the id that was asked for."""


def explain(wanted: str, plan: Plan, report: Report) -> str:
    """The explanation of one id; raises UnknownId, naming the nearest ones."""
    if wanted not in TEXTS:
        # the table shows the last part of an id
        named = [known for known in TEXTS if known.partition(".")[2] == wanted]
        wanted = named[0] if len(named) == 1 else wanted
    text = TEXTS.get(wanted)
    if text is None:
        near = difflib.get_close_matches(wanted, TEXTS, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"known are {', '.join(sorted(TEXTS))}"
        raise UnknownId(f"--explain {printable(wanted)}: no such rule; {hint}")
    lines = [f"{text.id}", f"  {text.asks}", ""]
    found = [finding for finding in report.findings if finding.id == wanted]
    for finding in found:
        lines.append(f"  {finding.result}: {printable(finding.message)}")
        for name, shown in (
            ("value", amount(finding.value, finding.unit)),
            ("interval", interval(finding)),
            ("limit", amount(finding.limit, finding.unit)),
            ("class", str(finding.exactness or "")),
        ):
            if shown:
                lines.append(f"  {name:<9} {shown}")
        lines += [f"    {printable(step)}" for step in finding.arithmetic]
    if not found:
        lines.append("  says nothing of this plan: what it asks about is not part of it")
    lines += _facts(wanted, plan)
    lines += ["", f"  source    {text.source}"]
    if not text.required:
        lines.append("  an unknown here does not make the line unknown")
    return "\n".join(lines) + "\n"


def _facts(wanted: str, plan: Plan) -> list[str]:
    """The facts that a rule on the pair reads, as they are for this pair."""
    rule = next((rule for rule in RULES if rule.id == wanted), None)
    if rule is None or plan.pair is None:
        return []
    told = [f"    {name} = {_fact(attrgetter(name)(plan.pair))}" for name in rule.reads]
    algorithms = "any drafter" if rule.algorithms is None else ", ".join(sorted(rule.algorithms))
    return ["", f"  for       {algorithms}", *(["  reads", *told] if told else [])]


def _fact(value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, tuple):
        return ", ".join(printable(str(getattr(item, "ids", item))) for item in value) or "none"
    return printable(str(value))
