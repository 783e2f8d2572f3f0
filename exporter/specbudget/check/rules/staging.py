"""The staging line before rollout: will a cold start be in time, and can it be staged as planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from specbudget.budget.model import StagingLine
from specbudget.catalog.lines import STAGING
from specbudget.check.plan import Plan
from specbudget.check.rules.engine_words import is_sglang, not_read
from specbudget.check.rules.limits import against
from specbudget.check.rules.rule import GateRule, told
from specbudget.domain.finding import CheckResult, Exactness, Outcome, RuleText, fails, passes, unknown, warns
from specbudget.domain.stages import StagingMode
from specbudget.domain.staging_estimate import StagingEstimate, estimate_staging
from specbudget.words import seconds


def _line(plan: Plan) -> StagingLine | None:
    return plan.budget.budget.staging


def _mode(plan: Plan) -> StagingMode | None:
    """How the engine will stage: as its arguments say, else as planned."""
    if plan.facts.prefetches is not None:
        return StagingMode.PREFETCH if plan.facts.prefetches else StagingMode.SERIAL
    line = _line(plan)
    return StagingMode(line.mode) if line is not None and line.mode is not None else None


def _estimate(plan: Plan) -> StagingEstimate | str:
    """The estimate, or why there is none."""
    line = _line(plan)
    bandwidth = None if line is None else line.storage_bandwidth
    if line is None or bandwidth is None:
        return "storage_bandwidth is not in the budget: how long loading takes is not known"
    target = None if plan.target is None else plan.target.checkpoint.disk_bytes
    drafter = 0 if plan.drafter is None else plan.drafter.checkpoint.disk_bytes
    if target is None or drafter is None:
        return "the size of a checkpoint is not known: how long loading takes is not known"
    loaded = plan.drafter_loaded_weights if plan.drafter is not None else None
    return estimate_staging(
        least_bytes=target + (drafter if loaded is None else min(drafter, loaded.charged_bytes)),
        most_bytes=target + drafter,
        readers=line.readers or plan.tensor_parallel,
        bandwidth=bandwidth,
        mode=_mode(plan),
        after_load=_after_load(plan),
    )


def _after_load(plan: Plan) -> float | None:
    """Seconds of the engine's last start beyond loading: its metrics' word, else its log's."""
    phases = None if plan.engine is None else plan.engine.phases
    if phases is not None and phases.engine is not None and phases.load is not None:
        return max(0.0, phases.engine - phases.load)
    return None if plan.start is None else plan.start.after_load


def _last_start(plan: Plan, limit: float) -> Outcome | None:
    """Where nothing tells how fast storage is: what the engine's last start took; None without one."""
    phases = None if plan.engine is None else plan.engine.phases
    taken = None if plan.start is None else plan.start.cold_start
    if taken is None and phases is not None:
        taken = phases.engine
    if taken is None:
        return None
    return against(
        "the last start took",
        value=round(taken, 3),
        limit=limit,
        shown=f"{seconds(taken)} (whether from a cold page cache is not known)",
        limit_shown=seconds(limit),
        fix="raise staging.cold_start, or see the start-up stages for what to shorten",
        exactness=Exactness.FROM_LOG,
    )


def _cold_start(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None:
        return None
    return _held(plan, line.cold_start, "cold_start", "raise staging.cold_start")


def _probe(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.probe_budget is None:
        return None
    return _held(
        plan,
        line.probe_budget,
        "probe_budget",
        "the start-up probe would kill the engine while it loads: raise failureThreshold x periodSeconds",
    )


def _held(plan: Plan, limit: float | None, key: str, fix: str) -> Outcome:
    """The estimate against a limit. Where nothing measured what follows loading, it is of loading and says so."""
    estimate = _estimate(plan)
    if isinstance(estimate, str):
        measured = None if limit is None else _last_start(plan, limit)
        return measured or unknown(estimate, required=limit is not None)
    span = " to ".join(dict.fromkeys((seconds(estimate.low), seconds(estimate.high))))
    whole = estimate.after_load is not None
    what = "a cold start takes" if whole else "loading alone takes"
    scope = "" if whole or key == "probe_budget" else " (what follows it was not measured)"
    if limit is None:
        return told(
            f"{what} {span}{scope}; staging.{key} is not in the budget",
            round(estimate.high, 3),
            low=estimate.low,
            high=estimate.high,
            exactness=Exactness.ESTIMATE,
            arithmetic=estimate.arithmetic,
        )
    outcome = against(
        what,
        value=round(estimate.high, 3),
        low=estimate.low,
        high=estimate.high,
        limit=limit,
        shown=f"{span}{scope}",
        limit_shown=seconds(limit),
        fix=f"{fix}; faster storage, a page cache that is warmed before, or smaller weights shorten it",
        undecided=(
            "whether the readers share a page cache decides: prefetch with --weight-loader-prefetch-checkpoints and "
            "mode: prefetch, or state readers"
        ),
        exactness=Exactness.ESTIMATE,
        arithmetic=estimate.arithmetic,
    )
    if scope and outcome.result in (CheckResult.PASS, CheckResult.WARN):
        # loading is a part of the start: that it is in time does not say that the whole is
        message = f"{outcome.message}; name the log of a start as engine.server_log, or check a running engine"
        return replace(outcome, result=CheckResult.UNKNOWN, message=message)
    return outcome


def _as_planned(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.mode is None:
        return None
    mode = StagingMode(line.mode)
    if mode is StagingMode.OVERLAP:
        if plan.has_drafter and not is_sglang(plan):
            return unknown(not_read(plan, "whether two models can be staged with overlap"), required=False)
        if plan.has_drafter:
            return fails(
                "staging.mode: overlap cannot be had beside a drafter, codesign.staging_mode says why: plan serial or "
                "prefetch",
                value=mode,
            )
        return passes("overlap, without a drafter", value=mode)
    prefetches = plan.facts.prefetches
    if prefetches is None:
        return unknown(not_read(plan, f"mode: {mode}; how the engine stages"), required=False)
    if (mode is StagingMode.PREFETCH) != prefetches:
        verb = "add" if mode is StagingMode.PREFETCH else "drop"
        return warns(
            f"mode: {mode} is planned, the engine's arguments say otherwise: "
            f"{verb} --weight-loader-prefetch-checkpoints",
            value=mode,
        )
    return passes(f"{mode}, as the engine's arguments say", value=mode)


def _order(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.order is None or not plan.has_drafter:
        return None
    if not is_sglang(plan):
        return unknown(not_read(plan, "the order in which the engine loads"), required=False)
    if line.order == ["target", "drafter"]:
        return passes("target, then drafter")
    return fails(
        "order: [drafter, target] cannot be: SGLang loads the target first; plan [target, drafter]",
        value=",".join(line.order),
    )


def _warmup(plan: Plan) -> Outcome | None:
    line = _line(plan)
    if line is None or line.warmup != "required":
        return None
    skips = plan.facts.skips_warmup
    if skips is None:
        return unknown(not_read(plan, "warmup: required; whether the engine warms up"), required=False)
    if skips:
        return fails(
            "warmup: required, and --skip-server-warmup is given: the first user would wait for it; drop the argument"
        )
    return passes("the engine warms itself up before it is ready")


def _rule(what: str, asks: str, check: Callable[[Plan], Outcome | None], source: str, unit: str = "") -> GateRule:
    return GateRule(text=RuleText(id=f"{STAGING.id}.{what}", asks=asks, source=source, unit=unit), check=check)


_BYTES = "bytes x readers / bandwidth; what comes after loading only where a running engine measured it"
_LOADER = "SGLang 0.5.18 and 0.5.23 model_runner_components/startup_weight_load.py; scheduler init_model_worker"

RULES = (
    _rule("cold_start", "Will a cold start be in time?", _cold_start, _BYTES, unit="seconds"),
    _rule("probe_budget", "Does loading end before the start-up probe gives up?", _probe, _BYTES, unit="seconds"),
    _rule("mode", "Can the two models be staged as planned?", _as_planned, _LOADER),
    _rule("order", "Are they loaded in the planned order?", _order, _LOADER),
    _rule("warmup", "Is the engine warm before the first user?", _warmup, "SGLang 0.5.23 --skip-server-warmup"),
)
