"""`specbudget check`: gathers a plan, judges it, tells the verdict, and approves it when asked to."""

from __future__ import annotations

import sys
from pathlib import Path

from specbudget.check.approval import NotApproved, approve
from specbudget.check.gather import gather
from specbudget.check.progress import Progress
from specbudget.check.report import Report, judge_plan


def run_check(
    budget: Path,
    *,
    engine_url: str | None = None,
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
        plan = gather(budget, engine_url=engine_url, lock=lock, approving=approving, working=progress.working)
        report = judge_plan(plan)
    if explained is not None:
        from specbudget.check.output.explain import explain

        sys.stdout.write(explain(explained, plan, report))
        return report.exit_code(strict=strict)
    _print(report, form, verbose=verbose)
    if approving:
        try:
            place = approve(plan, report, lock)
        except NotApproved as error:
            print(error, file=sys.stderr)
            return report.exit_code(strict=strict) or 1
        print(f"approved: {place}", file=sys.stderr)
        return report.exit_code(strict=False)
    return report.exit_code(strict=strict)


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
