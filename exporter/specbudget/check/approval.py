"""Writes `budget.lock`: the pair that passed, so that a later change of either model is noticed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from specbudget.budget.acceptance import BreakEvenPoint
from specbudget.budget.lock import Lock, LockedAcceptance, LockedEngine, lock_path, write_lock
from specbudget.check.plan import Plan
from specbudget.check.report import Report
from specbudget.domain.finding import CheckResult
from specbudget.errors import SpecbudgetError
from specbudget.pair.side import locked_model


class NotApproved(SpecbudgetError):
    """The pair cannot be approved."""


def approve(plan: Plan, report: Report, path: Path | None) -> Path:
    """Writes the lock of a pair that passed and returns where it lies; raises NotApproved, BudgetError.

    A pair that changed since it was last approved is what approval is for: that warning does not stand in its way,
    and neither do others. A failing rule and a required fact that is missing do.
    """
    if report.verdict in (CheckResult.FAIL, CheckResult.UNKNOWN):
        stopping = [f.id for f in report.counted if f.result is report.verdict and f.required]
        raise NotApproved(
            f"--approve: not approved, the verdict is {report.verdict}: settle {', '.join(stopping)} first"
        )
    target = None if plan.target is None else locked_model(plan.target, kv_bytes_per_token=plan.kv.target_token_bytes)
    if target is None:
        raise NotApproved("--approve: not approved, target.path names no checkpoint that can be read")
    drafter = None
    if plan.drafter is not None:
        draft_kv = plan.draft_kv
        drafter = locked_model(plan.drafter, kv_bytes_per_token=None if draft_kv is None else draft_kv.bytes_per_token)
        if drafter is None:
            raise NotApproved("--approve: not approved, drafter.path names no checkpoint that can be read")
    place = path or lock_path(plan.budget_file)
    write_lock(
        place,
        Lock(
            lock=1,
            service=plan.budget.service,
            approved_at=datetime.now(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z"),
            target=target,
            drafter=drafter,
            engine=LockedEngine(
                kind=plan.budget.engine.kind,
                version=plan.facts.version,
                algorithm=plan.algorithm,
                num_draft_tokens=plan.facts.num_draft_tokens or None,
                tensor_parallel=plan.tensor_parallel,
            ),
            acceptance=_acceptance(plan),
            break_even=_break_even(plan),
        ),
    )
    return place


def _acceptance(plan: Plan) -> dict[str, LockedAcceptance]:
    """What the reference measured; profiles whose verify steps are not known are left out."""
    if plan.reference is None:
        return {}
    return {
        name: LockedAcceptance(length=measured.length, verify_steps=measured.verify_steps)
        for name, measured in plan.reference.profiles.items()
        if measured.verify_steps is not None
    }


def _break_even(plan: Plan) -> list[BreakEvenPoint]:
    line = plan.budget.budget.acceptance
    curve = None if line is None else line.break_even_curve()
    return [] if curve is None else [BreakEvenPoint(running=run, length=length) for run, length in curve.points]
