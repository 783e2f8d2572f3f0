"""The five lines with what a budget allows, what follows from that alone, and how to see what is spent."""

from __future__ import annotations

from specbudget.budget.model import Budget, KvLine, StagingLine
from specbudget.catalog.alerts import ALERTS, Severity
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, LINES, STAGING, BudgetDef, LineDef, Unit
from specbudget.catalog.looks import LINES_NOT_OK, STATUS, USED_RATIOS, Query
from specbudget.catalog.promql import number
from specbudget.catalog.rule_settings import RuleSettings
from specbudget.catalog.series import BUDGET_LIMIT, BUDGET_SPENT
from specbudget.domain.line_state import AT_RISK
from specbudget.domain.stages import StagingMode
from specbudget.domain.staging_estimate import estimate_staging
from specbudget.generate.runbook import headings
from specbudget.generate.runbook import markdown as md
from specbudget.generate.runbook.places import filled
from specbudget.words import count, percent, seconds, size, span


def render(budget: Budget, s: RuleSettings) -> str:
    """The section."""
    spent = Query(
        shows="The two sides of each ratio, by unit.",
        text=lambda r: "\nor ".join(r.of(each) for each in (*BUDGET_SPENT.values(), *BUDGET_LIMIT.values())),
    )
    queries = "".join(
        f"{query.shows}\n\n{md.block(query.text(s), 'promql')}\n" for query in (USED_RATIOS, LINES_NOT_OK, spent)
    )
    return (
        f"## {headings.LEDGER}\n\nWhat may be spent. What is spent is known only while it runs:\n\n{queries}"
        f"{STATUS.shows}\n\n{md.block(filled(STATUS.text, budget), 'sh')}\n"
        "A line is in breach above a used ratio of 1 and at risk above "
        f"{number(AT_RISK)} (the KV pools: above high_water). Unknown is neither ok nor 0.\n\n"
        + "\n".join(_line(line, budget, s) for line in LINES)
    )


def _line(line: LineDef, budget: Budget, s: RuleSettings) -> str:
    limits, words = _limits(line, budget, s), _words(line, budget, s)
    title = f"### {line.title}\n\n"
    if not limits:
        return f"{title}Not budgeted: nothing here watches it.\n"
    table = md.table(("budget", "limit", "at risk"), ((code_of(each), *cells) for each, cells in limits))
    more = f"\n{md.bullets(words)}" if words else ""
    return f"{title}{line.question}\n\n{table}{more}{_alerts(line)}"


def code_of(budget: BudgetDef) -> str:
    """A budget's name."""
    return md.code(budget.id, in_table=True)


def _alerts(line: LineDef) -> str:
    pages = [alert for alert in ALERTS if alert.line == line.id and alert.severity is Severity.PAGE]
    return "" if pages or line is ACCEPTANCE else "\nNothing of this line pages.\n"


def _limits(line: LineDef, budget: Budget, s: RuleSettings) -> list[tuple[BudgetDef, tuple[str, str]]]:
    """The budgets of a line that have a limit, with the limit and where the risk begins."""
    given = {
        ARTIFACTS.id: budget.budget.artifacts,
        KV.id: budget.budget.kv,
        STAGING.id: budget.budget.staging,
    }
    if line is CODESIGN:
        return [(CODESIGN.budget("pair"), ("0 failing rules", "any warning, or a recheck due"))]
    if line is ACCEPTANCE:
        return _acceptance(budget, s)
    section = given[line.id]
    found = []
    for each in line.budgets:
        limit = getattr(section, each.id, None)
        if limit is not None:
            found.append((each, (_bound(each, limit), _risk(each, limit))))
    return found


def _bound(each: BudgetDef, limit: float) -> str:
    return f"at least {_amount(each, limit)}" if each.floor else _amount(each, limit)


def _risk(each: BudgetDef, limit: float) -> str:
    if each.mark:
        return "above the limit; no breach"
    return f"below {_amount(each, limit / AT_RISK)}" if each.floor else f"above {_amount(each, limit * AT_RISK)}"


def _amount(each: BudgetDef, value: float) -> str:
    match each.unit:
        case Unit.BYTES:
            return size(value)
        case Unit.SECONDS:
            return seconds(value)
        case Unit.TOKENS:
            return f"{value:,.0f} tokens"
        case Unit.RATIO:
            return number(round(value, 4))


def _acceptance(budget: Budget, s: RuleSettings) -> list[tuple[BudgetDef, tuple[str, str]]]:
    line, found = budget.budget.acceptance, []
    if line is None:
        return []
    if line.target_length is not None:
        target = line.target_length
        found.append(
            (
                ACCEPTANCE.budget("target_length"),
                (
                    f"at least {number(target)}, for {percent(line.objective)} of the events",
                    f"below {target / AT_RISK:.2f}",
                ),
            )
        )
    curve = line.break_even_curve()
    if curve is not None:
        lengths = sorted({length for _, length in curve.points})
        span_of = " to ".join(count(length) for length in dict.fromkeys((lengths[0], lengths[-1])))
        found.append((ACCEPTANCE.budget("break_even"), (f"at least {span_of}, by load", "within a tenth above it")))
    for row in s.pages:
        burn = ACCEPTANCE.budget(row.id)
        found.append(
            (burn, (f"{number(round(row.factor, 2))} times the allowed speed", f"above {row.factor * AT_RISK:.2f}"))
        )
    return found


def _words(line: LineDef, budget: Budget, s: RuleSettings) -> list[str]:
    """What follows from the budget alone."""
    lines = budget.budget
    if line is ARTIFACTS and lines.artifacts is not None:
        return _sums(budget)
    if line is KV and lines.kv is not None:
        return _kv(lines.kv, budget)
    if line is ACCEPTANCE and lines.acceptance is not None:
        return _lengths(budget, s)
    if line is STAGING and lines.staging is not None:
        return _staging(lines.staging, budget)
    return []


def _sums(budget: Budget) -> list[str]:
    line = budget.budget.artifacts
    if line is None or line.target is None or line.drafter is None:
        return []
    both = line.target + line.drafter
    found = [f"Target and drafter at their limits are {size(both)} together."]
    for name, limit in (("total", line.total), ("image", line.image)):
        if limit is not None and limit < both:
            found.append(
                f"That is {size(both - limit)} more than `{name}` allows: both cannot be at their limits"
                + (", or the image does not carry both." if name == "image" else ".")
            )
    return found


def _kv(line: KvLine, budget: Budget) -> list[str]:
    found = []
    if line.target is not None and line.drafter is not None:
        both, devices = line.target + line.drafter, budget.parallelism.tensor * budget.parallelism.pipeline
        of_gpu = budget.engine.gpu_memory
        share = "" if of_gpu is None else f", {percent(both / of_gpu)} of a GPU's {size(of_gpu)}"
        found.append(
            f"Both pools at their limits: {size(both)} per device{share}; "
            f"{size(both * devices * budget.parallelism.data)} "
            "per replica."
        )
    if line.concurrency is not None and line.tokens_per_request is not None:
        planned = line.concurrency * line.tokens_per_request
        text = (
            f"Planned: {line.concurrency} requests x {line.tokens_per_request:,} tokens = {planned:,} tokens. Below "
            f"high_water they need a pool of {planned / line.high_water:,.0f} tokens"
        )
        if line.min_target_tokens is not None:
            filling = percent(planned / line.min_target_tokens)
            text += f"; the floor is {line.min_target_tokens:,}, which they would fill to {filling}"
        found.append(f"{text}.")
    found.append(
        "What a token costs, what the drafter needs, gets and costs in target tokens follows from the checkpoints: "
        f"{md.code('specbudget check --budget budget.yaml --no-engine --explain kv.drafter_cost_tokens')}."
    )
    return found


def _lengths(budget: Budget, s: RuleSettings) -> list[str]:
    line, found = budget.budget.acceptance, []
    if line is None:
        return []
    if s.pages:
        found.append(
            f"A page needs {s.guard_events} valid events and {s.guard_steps} verify steps in the short window: see "
            f"{md.link(headings.PAGING, f'#{md.anchor(headings.PAGING)}')}."
        )
    curve = line.break_even_curve()
    if curve is not None and not curve.everywhere:
        first, last = curve.points[0][0], curve.points[-1][0]
        at = sorted({first, last, *(2**power for power in range(12) if first < 2**power < last)})
        found.append("Break-even by running requests: " + ", ".join(f"{n}: {curve.at(n):.2f}" for n in at) + ".")
        found.append(
            f"Above {last} running requests nothing was measured: break-even is {count(curve.points[-1][1])} or more."
        )
    return found


def _staging(line: StagingLine, budget: Budget) -> list[str]:
    found = []
    planned = ", ".join(
        word
        for word in (
            None if line.mode is None else f"mode `{line.mode}`",
            None if line.order is None else f"{' then '.join(line.order)}",
            None if line.warmup is None else f"warm-up {line.warmup}",
        )
        if word is not None
    )
    if planned:
        found.append(f"Planned: {planned}.")
    disk = budget.budget.artifacts
    limit = None if disk is None else disk.total
    if limit is None and disk is not None and disk.target is not None and disk.drafter is not None:
        limit = disk.target + disk.drafter
    if limit is not None and line.storage_bandwidth is not None:
        estimate = estimate_staging(
            least_bytes=limit,
            most_bytes=limit,
            readers=line.readers or budget.parallelism.tensor,
            bandwidth=line.storage_bandwidth,
            mode=None if line.mode is None else StagingMode(line.mode),
        )
        reads = " to ".join(dict.fromkeys((seconds(estimate.low), seconds(estimate.high))))
        text = f"Loading {size(limit)}, what the disk budget allows, at {size(line.storage_bandwidth)}/s takes {reads}"
        if line.cold_start is not None:
            left = line.cold_start - estimate.high
            text += (
                f"; {seconds(left)} are left for pools, graphs and the first generation"
                if left > 0
                else f"; that alone may be more than {seconds(line.cold_start)}"
            )
        found.append(f"{text}.")
    if line.probe_budget is not None:
        found.append(f"The start-up probe gives up after {span(line.probe_budget)}.")
    return found
