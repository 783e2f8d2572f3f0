"""The verdict: findings by line, the line's word, the whole plan's word, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from specbudget.budget.waiver import Waiver
from specbudget.catalog.lines import CODESIGN, LINES, LineDef
from specbudget.check.plan import Plan
from specbudget.check.rules import acceptance, artifacts, codesign, kv, staging
from specbudget.check.rules.rule import GateRule
from specbudget.domain.codesign import RULES as PAIR_RULES
from specbudget.domain.finding import CheckResult, Finding, RuleText, overall

GATE_RULES: tuple[GateRule, ...] = (
    *artifacts.RULES,
    *kv.RULES,
    *acceptance.RULES,
    *staging.RULES,
    *codesign.RULES,
)

TEXTS: dict[str, RuleText] = {
    text.id: text for text in (*(rule.text for rule in GATE_RULES), *(rule.text for rule in PAIR_RULES))
}
"""The words of every rule by the id of its finding."""

ALWAYS_COUNTED = (
    "artifacts.target_complete",
    "artifacts.drafter_complete",
    *(rule.id for rule in PAIR_RULES if rule.alone),
)

_FAILED, _UNKNOWN = 1, 3
_NOT_KNOWN = CheckResult.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class LineVerdict:
    """One budget line; a line that is not budgeted does not count."""

    line: LineDef
    budgeted: bool
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> CheckResult:
        """Fail if any fails, else unknown if a required fact is missing, else warn, else pass."""
        return overall(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the gate says of a plan. Waivers change the strict exit code and where a finding is told, and no verdict."""

    service: str
    lines: tuple[LineVerdict, ...]
    waivers: tuple[Waiver, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all lines, in their order."""
        return tuple(finding for line in self.lines for finding in line.findings)

    @property
    def counted(self) -> tuple[Finding, ...]:
        """Those of the budgeted lines; a checkpoint that is not whole counts whether its line is budgeted or not."""
        return tuple(
            finding
            for line in self.lines
            for finding in line.findings
            if line.budgeted or (finding.id in ALWAYS_COUNTED and finding.result is CheckResult.FAIL)
        )

    @property
    def deciding(self) -> tuple[Finding, ...]:
        """The counted findings that make the verdict what it is; empty for a pass."""
        if self.verdict is CheckResult.PASS:
            return ()
        return tuple(f for f in self.counted if f.result is self.verdict and (f.required or f.result is not _NOT_KNOWN))

    @property
    def steps(self) -> tuple[Finding, ...]:
        """The counted findings that ask for something to be done, the worst first."""
        order = (CheckResult.FAIL, CheckResult.UNKNOWN, CheckResult.WARN)
        wanted = [f for f in self.counted if f.result in order and (f.required or f.result is not _NOT_KNOWN)]
        asked = [finding for finding in wanted if self.waiver(finding) is None]
        return tuple(sorted(asked, key=lambda finding: order.index(finding.result)))

    @property
    def left_open(self) -> tuple[Finding, ...]:
        """The counted facts that are not known, that no line requires and nobody waived."""
        return tuple(f for f in self.counted if f.result is _NOT_KNOWN and not f.required and self.waiver(f) is None)

    @property
    def waived(self) -> tuple[tuple[Finding, Waiver], ...]:
        """The counted findings that somebody waived, with who may read why."""
        return tuple((f, waiver) for f in self.counted if (waiver := self.waiver(f)) is not None)

    @property
    def idle_waivers(self) -> tuple[tuple[Waiver, str], ...]:
        """The waivers that waive nothing, and why."""
        found = {finding.id: finding for finding in self.counted}
        return tuple((w, _why_idle(found.get(w.finding))) for w in self.waivers if not _can_waive(found.get(w.finding)))

    def waiver(self, finding: Finding) -> Waiver | None:
        """The waiver of a finding; None also where it is of a kind that nobody may waive."""
        if not _can_waive(finding):
            return None
        return next((waiver for waiver in self.waivers if waiver.finding == finding.id), None)

    @property
    def verdict(self) -> CheckResult:
        """The same rule over the budgeted lines."""
        return overall(self.counted)

    def without(self, settled: str) -> Report:
        """The report without the finding of that id."""
        return replace(
            self,
            lines=tuple(
                replace(line, findings=tuple(f for f in line.findings if f.id != settled)) for line in self.lines
            ),
        )

    def exit_code(self, *, strict: bool) -> int:
        """0 for pass and warn, 1 fail, 3 unknown. Strict: a warning is 1, and any unknown at all is 3.

        What is waived does not count among the strict ones.
        """
        match self.verdict:
            case CheckResult.FAIL:
                return _FAILED
            case CheckResult.UNKNOWN:
                return _UNKNOWN
        left = {finding.result for finding in self.counted if self.waiver(finding) is None} if strict else set()
        if CheckResult.UNKNOWN in left:
            return _UNKNOWN
        return _FAILED if CheckResult.WARN in left else 0


def _can_waive(finding: Finding | None) -> bool:
    """What only --strict stops at: warnings, and facts that are not known and not required."""
    if finding is None:
        return False
    return finding.result is CheckResult.WARN or (finding.result is _NOT_KNOWN and not finding.required)


def _why_idle(finding: Finding | None) -> str:
    match None if finding is None else finding.result:
        case CheckResult.FAIL:
            return "it fails, and a failure is not waived"
        case CheckResult.UNKNOWN:
            return "it is required and not known, which is not waived: supply the fact"
        case _:
            return "there is nothing to waive: take the waiver out"


def judge_plan(plan: Plan) -> Report:
    """Every rule applied to the plan."""
    found = [finding for rule in GATE_RULES if (finding := rule.finding(plan)) is not None]
    found += codesign.pair_findings(plan)
    return Report(
        service=plan.budget.service,
        waivers=plan.budget.waivers,
        lines=tuple(
            LineVerdict(line=line, budgeted=_budgeted(plan, line), findings=_of(line, found)) for line in LINES
        ),
    )


def _of(line: LineDef, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.line == line.id)


def _budgeted(plan: Plan, line: LineDef) -> bool:
    """The pair's fit is budgeted wherever there is a pair; the other lines where the budget has them."""
    return plan.has_drafter if line is CODESIGN else getattr(plan.budget.budget, line.id) is not None
