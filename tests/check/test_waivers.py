"""What a waiver does and what it does not: it is seen, it ends, and it never hides a failure."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from tests.check.plans import PlanFolder
from tests.check.test_output import printed

from specbudget.budget.model import Budget
from specbudget.check.output.as_json import render_json
from specbudget.check.output.as_junit import render_junit
from specbudget.check.output.as_markdown import render_markdown
from specbudget.check.report import TEXTS, Report
from specbudget.check.waivers import check_waivers
from specbudget.cli import main
from specbudget.domain.finding import CheckResult
from specbudget.errors import BudgetError

TODAY = date(2026, 6, 1)
LATER = (datetime.now(UTC).date() + timedelta(days=400)).isoformat()
WARNING = "kv.min_target_tokens"
NEAR: dict[str, Any] = {"budget__kv": {"min_target_tokens": 330_000}}
"""A limit of which little is left: a warning."""


def waive(*findings: str, until: str = LATER, reason: str = "seen <by> ann") -> list[dict[str, str]]:
    """The waivers of a budget."""
    return [{"finding": finding, "reason": reason, "until": until} for finding in findings]


def open_facts(report: Report) -> list[str]:
    """The facts that nobody requires and nobody knows."""
    return [finding.id for finding in report.left_open]


def strict(plans: PlanFolder, *words: str, **budget: Any) -> int:
    """The exit code of `check --strict`."""
    return main(["check", "--budget", str(plans.write(**budget)), "--strict", *words])


def test_strict_passes_once_all_it_stops_at_is_waived(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning and unknown facts stop it one by one; with each waived it is 0, and the verdict stays a warning."""
    facts = open_facts(plans.judge(**NEAR).report)
    assert facts
    assert strict(plans, **NEAR) == 3
    assert strict(plans, **NEAR, waivers=waive(*facts)) == 1
    assert strict(plans, **NEAR, waivers=waive(WARNING)) == 3
    capsys.readouterr()
    assert strict(plans, **NEAR, waivers=waive(WARNING, *facts)) == 0
    assert capsys.readouterr().out.startswith("specbudget check chat  warn\n")


@pytest.mark.parametrize(
    ("budget", "finding", "code", "why"),
    [
        pytest.param(
            {"budget__kv": {"min_target_tokens": 400_000}}, WARNING, 1, "a failure is not waived", id="a failure"
        ),
        pytest.param(
            {"budget__kv": {"min_target_tokens": 1}, "engine__free_before_load": None},
            WARNING,
            3,
            "which is not waived: supply the fact",
            id="a required fact",
        ),
    ],
)
def test_what_counts_without_strict_is_never_waived(
    plans: PlanFolder, budget: dict[str, Any], finding: str, code: int, why: str
) -> None:
    """Verdict and exit code stand, and the waiver is said to do nothing."""
    report = plans.judge(**budget, waivers=waive(finding)).report
    assert report.waived == ()
    assert report.exit_code(strict=False) == report.exit_code(strict=True) == code
    assert finding in {each.id for each in report.steps}
    assert f"{finding}: it" in printed(report)
    assert why in " ".join(printed(report).split())


def test_a_waiver_changes_no_verdict(plans: PlanFolder) -> None:
    """Lines, findings and the whole say what they said without it."""
    plain = plans.judge(**NEAR).report
    waived = plans.judge(**NEAR, waivers=waive(WARNING, *open_facts(plain))).report
    assert (waived.verdict, waived.lines) == (plain.verdict, plain.lines)
    assert waived.exit_code(strict=False) == plain.exit_code(strict=False) == 0


def test_a_waiver_of_nothing_is_told(plans: PlanFolder) -> None:
    """What passes now needs none: it is asked to be taken out."""
    text = printed(plans.judge(waivers=waive("artifacts.target_complete")).report)
    assert "artifacts.target_complete: there is nothing to waive: take the waiver out" in text


def test_a_waived_finding_stays_visible_in_every_form(plans: PlanFolder) -> None:
    """With its own verdict, its reason and its day."""
    report = plans.judge(**NEAR, waivers=waive(WARNING)).report
    text = printed(report)
    assert WARNING not in {finding.id for finding in report.steps}
    assert f"{WARNING}, until {LATER}" in text
    assert "seen <by> ann" in text
    findings = [f for line in json.loads(render_json(report))["lines"] for f in line["findings"]]
    (told,) = [finding for finding in findings if "waived" in finding]
    assert (told["id"], told["verdict"]) == (WARNING, "warn")
    assert told["waived"] == {"reason": "seen <by> ann", "until": LATER}
    markdown = render_markdown(report)
    assert f"*Waived until {LATER}: seen \\<by\\> ann*" in markdown
    case = next(
        case for case in Xml.fromstring(render_junit(report)).iter("testcase") if "min_t" in case.get("name", "")
    )
    assert (case.findtext("system-out") or "").startswith(f"warning: waived until {LATER}, seen <by> ann: ")


def test_without_waivers_no_form_speaks_of_them(plans: PlanFolder) -> None:
    """Pipelines that know of none read what they read before."""
    report = plans.judge(**NEAR).report
    for form in (printed(report), render_json(report), render_markdown(report), render_junit(report)):
        assert "aived" not in form


@pytest.mark.parametrize(
    ("finding", "until", "words"),
    [
        (
            "codesign.trained_for",
            "2026-05-31",
            "waivers.0.until: the waiver of codesign.trained_for ended on 2026-05-",
        ),
        ("codesign.traned_for", "2026-07-01", "no such finding; did you mean codesign.trained_for?"),
        ("xyzzy.xyzzy", "2026-07-01", "no such finding; docs/reference/rules.md lists them"),
    ],
)
def test_a_waiver_that_cannot_stand_is_told(plans: PlanFolder, finding: str, until: str, words: str) -> None:
    """One that ended, and one of a finding that is none: a line with key and fix."""
    budget = Budget.model_validate({"service": "chat", "waivers": waive(finding, until=until)})
    with pytest.raises(BudgetError) as caught:
        check_waivers(budget, plans.file, TODAY)
    (problem,) = caught.value.problems
    assert words in str(problem)


def test_the_last_day_still_counts(plans: PlanFolder) -> None:
    """`until` is the last day on which it holds, and every id of a rule can be waived."""
    for finding in TEXTS:
        budget = Budget.model_validate({"service": "chat", "waivers": waive(finding, until="2026-06-01")})
        check_waivers(budget, plans.file, TODAY)


def test_the_command_refuses_a_waiver_that_ended(plans: PlanFolder, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, nothing judged; it does not go on as if nobody had waived anything."""
    assert strict(plans, waivers=waive("codesign.trained_for", until="2020-01-01")) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "ended on 2020-01-01: settle the finding, or set a later day" in told.err


def test_a_waived_plan_can_be_approved(plans: PlanFolder) -> None:
    """`--approve --strict` writes the lock and is 0; what the lock itself settles needs no waiver."""
    facts = [fact for fact in open_facts(plans.judge(**NEAR).report) if fact != "codesign.approved"]
    assert strict(plans, "--approve", **NEAR, waivers=waive(WARNING, *facts)) == 0
    assert plans.lock.exists()
    assert plans.judge(**NEAR)["codesign.approved"].result is CheckResult.PASS
