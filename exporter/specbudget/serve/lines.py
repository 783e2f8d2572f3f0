"""What each budget line has spent against its limits, now."""

from __future__ import annotations

from collections.abc import Mapping

from specbudget.budget.model import Budget
from specbudget.catalog.lines import ACCEPTANCE, ARTIFACTS, CODESIGN, KV, STAGING, LineDef
from specbudget.catalog.promql import duration
from specbudget.catalog.sets import Scope
from specbudget.domain.burn import burn
from specbudget.domain.line_state import AT_RISK, Spending
from specbudget.serve.acceptance_book import AcceptanceBook
from specbudget.serve.kv_figures import KvFigures
from specbudget.serve.pair_watch import PairVerdict


def _spend(
    line: LineDef,
    budget: str,
    spent: float | None,
    limit: float | None,
    *,
    can_breach: bool = True,
    ratio: float | None = None,
    why: str = "",
) -> Spending:
    definition = line.budget(budget)
    return Spending(
        line=line.id,
        budget=definition.id,
        spent=spent,
        limit=limit,
        floor=definition.floor,
        at_risk=1.0 if definition.mark else AT_RISK,
        can_breach=can_breach and not definition.mark,
        ratio=ratio,
        why=why if spent is None or limit is None else "",
    )


def artifact_spendings(budget: Budget, disk_bytes: Mapping[str, int | None]) -> list[Spending]:
    """`disk_bytes` by artifact; None where a checkpoint is not readable."""
    line = budget.budget.artifacts
    if line is None:
        return []
    target, drafter = disk_bytes.get("target"), disk_bytes.get("drafter")
    has_drafter = budget.drafter.path is not None
    both = None if target is None or (has_drafter and drafter is None) else target + (drafter or 0)
    spent = {"target": target, "drafter": drafter, "total": both, "image": both}
    return [
        _spend(ARTIFACTS, name, value, limit, why="the checkpoint's weights are not readable")
        for name, value in spent.items()
        if (limit := getattr(line, name)) is not None
    ]


def kv_spendings(budget: Budget, figures: KvFigures) -> list[Spending]:
    """Of the fullest rank."""
    line = budget.budget.kv
    if line is None:
        return []
    found = []
    for name, pools in (("target", figures.target_pools), ("drafter", figures.drafter_pools)):
        limit = getattr(line, name)
        if limit is not None:
            sizes = [p.capacity_bytes for p in pools.values() if p.capacity_bytes is not None]
            found.append(_spend(KV, name, max(sizes, default=None), limit, why=f"the {name}'s pool is not known"))
    usage = [
        p.used_tokens / p.capacity_tokens
        for p in (*figures.target_pools.values(), *figures.drafter_pools.values())
        if p.used_tokens is not None and p.capacity_tokens
    ]
    found.append(
        _spend(
            KV,
            "high_water",
            max(usage, default=None),
            line.high_water,
            why="the engine does not say how much of its pool is used",
        )
    )
    if line.min_target_tokens is not None:
        tokens = [p.capacity_tokens for p in figures.target_pools.values() if p.capacity_tokens is not None]
        found.append(
            _spend(
                KV,
                "min_target_tokens",
                min(tokens, default=None),
                line.min_target_tokens,
                why="the engine does not say how large its pool is",
            )
        )
    return found


def acceptance_spendings(
    budget: Budget, book: AcceptanceBook, *, scope: Scope, break_even: float | None, now: float
) -> list[Spending]:
    """`scope` is whose rolling length is held against break-even."""
    line = budget.budget.acceptance
    if line is None:
        return []
    found = []
    if line.target_length is not None:
        reached = book.length_reached(now)
        found.append(
            _spend(
                ACCEPTANCE,
                "target_length",
                None if reached is None else reached[0],
                line.target_length if reached is None else reached[1],
                why="too few valid events in the last hour",
            )
        )
    if line.break_even is not None:
        found.append(
            _spend(
                ACCEPTANCE,
                "break_even",
                book.rolling_length(scope, 1800.0, now),
                break_even,
                why="how many requests run is not known, on which break-even depends"
                if break_even is None
                else "no verify step in the last 30 minutes",
            )
        )
    for row in book.policy.rows:
        (good, bad, _), (short_good, short_bad, steps) = (
            book.events(row.long_seconds, now),
            book.events(row.short_seconds, now),
        )
        objective = book.policy.objective
        # of no event nobody can say what share was bad; a short window without one, after others, burns nothing
        judged = good + bad > 0
        guarded = short_good + short_bad >= book.policy.guard_events and steps >= book.policy.guard_steps
        found.append(
            _spend(
                ACCEPTANCE,
                row.id,
                min(burn(good, bad, objective), burn(short_good, short_bad, objective)) if judged else None,
                row.factor,
                can_breach=guarded,
                why=f"no valid event in the last {duration(row.long_seconds)}",
            )
        )
    return found


def staging_spendings(budget: Budget, cold_start: float | None) -> list[Spending]:
    """The latest start against the start-up budget; one that is going on counts as far as it is."""
    line = budget.budget.staging
    if line is None or line.cold_start is None:
        return []
    return [_spend(STAGING, "cold_start", cold_start, line.cold_start, why="no start of the engine was observed")]


def codesign_spendings(verdict: PairVerdict | None) -> list[Spending]:
    """The pair's fit: any failing rule makes the ratio 2, a warning or a recheck that is due makes it 1."""
    if verdict is None:
        return []
    spent = None if verdict.ratio is None else float(verdict.failing)
    return [_spend(CODESIGN, "pair", spent, 0.0, ratio=verdict.ratio, why="a fact that a rule needs is missing")]
