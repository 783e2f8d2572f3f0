"""The five lines before a rollout: what to run, and what must be true."""

from __future__ import annotations

from specbudget.budget.model import Budget
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, LINES, STAGING, LineDef
from specbudget.catalog.promql import number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.check.report import TEXTS
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.words import percent, seconds, size


def render(budget: Budget, s: RuleSettings) -> str:
    """The section."""
    line = budget.budget.acceptance
    target = "No acceptance target is budgeted."
    if line is not None and line.target_length is not None:
        target = (
            f"**Acceptance target: {number(line.target_length)} or more for {percent(line.objective)} of the events.**"
        )
    command = "specbudget check --budget budget.yaml --no-engine"
    return (
        f"## {headings.CHECKLIST}\n\n{target}\n\nOne command judges all five lines. It must end with exit code 0; 1 "
        f"is a fail, "
        f"3 something that is not known, and unknown is no pass.\n\n{md.block(command, 'sh')}\n"
        "If a line does not pass, its own command shows the arithmetic:\n\n"
        + md.numbered(_item(each, budget) for each in LINES)
        + "\nWhen all is true, approve the pair. Later changes of either model are then told:\n\n"
        + md.block("specbudget check --budget budget.yaml --no-engine --approve", "sh")
    )


def _item(line: LineDef, budget: Budget) -> str:
    rule, true = _asked(line, budget)
    command = f"specbudget check --budget budget.yaml --no-engine --explain {TEXTS[rule].id}"
    lines = md.block(command, "sh").rstrip("\n").split("\n")
    block = "\n".join(f"   {each}" for each in lines)
    return f"**{line.title}**: {true}\n\n{block}\n"


def _asked(line: LineDef, budget: Budget) -> tuple[str, str]:
    """The rule that decides a line, and what must be true of it."""
    lines = budget.budget
    if line is ARTIFACTS:
        return _artifacts(budget)
    if line is KV:
        if lines.kv is None:
            return (
                "kv.drafter_cost_tokens",
                "not budgeted; see at least what the drafter costs in tokens of the target.",
            )
        if lines.kv.min_target_tokens is None:
            return "kv.drafter_cost_tokens", "the drafter's cost in target tokens is one that you would pay."
        return "kv.min_target_tokens", f"the target's pool holds {lines.kv.min_target_tokens:,} tokens or more."
    if line is ACCEPTANCE:
        if lines.acceptance is None or lines.acceptance.target_length is None:
            return "acceptance.window", "no target is budgeted; see at least how long a length can be."
        least = number(lines.acceptance.target_length)
        return (
            "acceptance.unattainable",
            f"{least} was reached by enough requests of a measurement (`acceptance.reference`).",
        )
    if line is STAGING:
        if lines.staging is None or lines.staging.cold_start is None:
            return "staging.mode", "not budgeted; see at least whether both models can be staged as planned."
        return "staging.cold_start", (
            f"a cold start takes {seconds(lines.staging.cold_start)} or less. Before the very first start the part "
            f"behind loading "
            "is not known."
        )
    assert line is CODESIGN
    return (
        "codesign.approved",
        "no rule of the pair fails, and it is the pair in budget.lock or one that you approve now.",
    )


def _artifacts(budget: Budget) -> tuple[str, str]:
    line = budget.budget.artifacts
    if line is None:
        return "artifacts.drafter_complete", "not budgeted; see at least that both checkpoints are whole."
    for name in ("total", "image", "target", "drafter"):
        limit = getattr(line, name)
        if limit is not None:
            return f"artifacts.{name}_bytes", f"`{name}` is {size(limit)} or less, and both checkpoints are whole."
    return "artifacts.drafter_complete", "both checkpoints are whole."
