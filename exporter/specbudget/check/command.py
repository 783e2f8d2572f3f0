"""`specbudget check`: gathers a plan, judges it, tells the verdict, and approves it when asked to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from specbudget.catalog.lines import CODESIGN
from specbudget.check.approval import NotApproved, approve
from specbudget.check.gather import gather
from specbudget.check.plan import Plan
from specbudget.check.progress import Progress
from specbudget.check.report import Report, judge_plan
from specbudget.check.waivers import check_waivers
from specbudget.errors import BudgetError


def run_check(
    budget: Path,
    *,
    engine_url: str | None = None,
    asks_engine: bool = True,
    lock: Path | None = None,
    approving: bool = False,
    form: str = "text",
    strict: bool = False,
    explained: str | None = None,
    verbose: bool = False,
) -> int:
    """Prints the verdict in the form that is asked for and returns its exit code.

    Raises BudgetError for a budget or lock that cannot be used, EngineSilent for an engine that was named and does
    not answer, UnknownId for an id that no rule has.
    """
    with Progress() as progress:
        plan = gather(
            budget,
            engine_url=engine_url,
            asks_engine=asks_engine,
            lock=lock,
            approving=approving,
            working=progress.working,
        )
        check_waivers(plan.budget, budget, datetime.now(UTC).date())
        report = judge_plan(plan)
    if explained is not None:
        from specbudget.check.output.explain import explain

        text = explain(explained, plan, report)
    # before anything is printed: whoever reads may leave after the first line
    settled = _approved(plan, report, lock, strict=strict) if approving else None
    try:
        if explained is not None:
            sys.stdout.write(text)
        else:
            _print(report, form, verbose=verbose)
        sys.stdout.flush()
    finally:
        if settled is not None:
            print(settled.words, file=sys.stderr)
    return report.exit_code(strict=strict) if settled is None else settled.code


@dataclass(frozen=True, slots=True)
class _Settled:
    """What came of --approve: the line that says so, and the exit code."""

    words: str
    code: int


def _approved(plan: Plan, report: Report, lock: Path | None, *, strict: bool) -> _Settled:
    try:
        place = approve(plan, report, lock)
    except NotApproved as error:
        kept = "" if plan.lock_problem is None else f"; the lock stays, which cannot be used: {plan.lock_problem}"
        return _Settled(f"{error}{kept}", report.exit_code(strict=strict) or 1)
    except BudgetError as error:
        return _Settled(str(error), 2)
    replaced = "" if plan.lock_problem is None else f" (it replaces one that could not be used: {plan.lock_problem})"
    # what the rule on the approved pair said is settled by the lock, everything else stands
    code = report.without(f"{CODESIGN.id}.approved").exit_code(strict=strict)
    return _Settled(f"approved: {place}{replaced}", code)


def _print(report: Report, form: str, *, verbose: bool) -> None:
    match form:
        case "json":
            from specbudget.check.output.as_json import render_json

            sys.stdout.write(render_json(report))
        case "markdown":
            from specbudget.check.output.as_markdown import render_markdown

            sys.stdout.write(render_markdown(report))
        case "junit":
            from specbudget.check.output.as_junit import render_junit

            sys.stdout.write(render_junit(report))
        case _:
            from specbudget.check.output.as_text import print_text

            print_text(report, verbose=verbose)
